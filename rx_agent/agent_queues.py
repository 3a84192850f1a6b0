"""The agent's two queues as users see and fill them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactivex import Observable, abc

from rx_agent.agent_inputs import PromptInput, checked, chosen, messages_of
from rx_agent.agent_state import StatefulAgent
from rx_agent.asyncio_edge import default_scheduler
from rx_agent.errors import ConfigurationError
from rx_agent.queues import MessageQueue, QueueMode
from rx_agent.reporting import report
from rx_agent.state import AgentState


class QueueingAgent(StatefulAgent):
    """The part of :class:`~rx_agent.agent.Agent` that queues messages."""

    def __init__(
        self,
        state: AgentState,
        steering_mode: QueueMode,
        follow_up_mode: QueueMode,
        scheduler: abc.SchedulerBase | None,
    ) -> None:
        super().__init__(state)
        self.scheduler = None if scheduler is None else checked("scheduler", scheduler, abc.SchedulerBase)
        self._steering = MessageQueue(chosen("steering_mode", steering_mode, QueueMode))
        self._follow_ups = MessageQueue(chosen("follow_up_mode", follow_up_mode, QueueMode))

    def _scheduler(self) -> abc.SchedulerBase:
        return self.scheduler or default_scheduler()

    def steer(self, message: PromptInput, *, interrupt: bool = False) -> None:
        """Queues a message for the end of the turn (see ``steering_mode`` and ``steering_point``).

        ``interrupt`` cancels the stream or the tools in flight at once, closes what is open, and goes on with the
        message.
        """
        messages = messages_of(message, scheduler=self._scheduler())
        for place, item in enumerate(messages, 1):
            self._steering.put(item, interrupt=interrupt and place == len(messages), tell=False)
        if interrupt:
            # It has its place in the queue at once; the run is cut short on its own thread.
            if self._active is not None:
                self._active.call(self._steering.interrupt)
            else:
                self._steering.interrupt()

    def follow_up(self, message: PromptInput) -> None:
        """Queues a message for when the run would otherwise end."""
        for item in messages_of(message, scheduler=self._scheduler()):
            self._follow_ups.put(item)

    def steer_from(self, source: Observable[Any], *, interrupt: bool = False) -> abc.DisposableBase:
        """Steers with each item of ``source`` until disposed; what is no message, or an error, is reported."""
        return self._each(source, lambda item: self.steer(item, interrupt=interrupt), "steering source")

    def follow_up_from(self, source: Observable[Any]) -> abc.DisposableBase:
        """Queues each item of ``source`` as a follow-up until disposed, as :meth:`steer_from` does."""
        return self._each(source, self.follow_up, "follow-up source")

    def _each(self, source: Observable[Any], put: Callable[[Any], None], role: str) -> abc.DisposableBase:
        def take(item: Any) -> None:
            try:
                put(item)
            except ConfigurationError as error:
                # One item that is no message must not tear the source down for those behind it.
                report(error, role, source)

        return source.subscribe(take, lambda error: report(error, role, source))

    @property
    def steering_queue(self) -> MessageQueue:
        """The steering messages that wait: a sequence, with ``contents`` as an observable."""
        return self._steering

    @property
    def follow_up_queue(self) -> MessageQueue:
        """The follow-ups that wait: a sequence, with ``contents`` as an observable."""
        return self._follow_ups

    def has_queued_messages(self) -> bool:
        """Whether either queue holds something."""
        return bool(self._steering) or bool(self._follow_ups)

    def clear_steering_queue(self) -> None:
        """Drops the steering messages that wait."""
        self._steering.clear()

    def clear_follow_up_queue(self) -> None:
        """Drops the follow-ups that wait."""
        self._follow_ups.clear()

    def clear_all_queues(self) -> None:
        """Drops everything that waits."""
        self._steering.clear()
        self._follow_ups.clear()

    @property
    def steering_mode(self) -> QueueMode:
        """How much of the steering queue a turn takes; may change at any time."""
        return self._steering.mode

    @steering_mode.setter
    def steering_mode(self, mode: QueueMode) -> None:
        self._steering.mode = chosen("steering_mode", mode, QueueMode)

    @property
    def follow_up_mode(self) -> QueueMode:
        """How much of the follow-up queue a turn takes; may change at any time."""
        return self._follow_ups.mode

    @follow_up_mode.setter
    def follow_up_mode(self, mode: QueueMode) -> None:
        self._follow_ups.mode = chosen("follow_up_mode", mode, QueueMode)
