"""The agent's state as users see and assign it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

from reactivex import Observable, abc

from rx_agent.active_run import ActiveRun
from rx_agent.agent_inputs import checked, chosen, model_of, tools_of, transcript_of
from rx_agent.delivery import CatchUp, Hub
from rx_agent.errors import AgentBusyError, ConfigurationError
from rx_agent.events import AgentEvent, MessageUpdateEvent
from rx_agent.messages import AgentMessage
from rx_agent.models import Model, ThinkingLevel
from rx_agent.sequences import AppendOnly
from rx_agent.state import AgentState, reduce
from rx_agent.tools import Tool


class StatefulAgent:
    """The part of :class:`~rx_agent.agent.Agent` that holds the state: a fold of events and assignments."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._latest: MessageUpdateEvent | None = None
        self._states: Hub[AgentState] = Hub()
        self._active: ActiveRun | None = None
        self._max_concurrency: int | None = None

    @property
    def state(self) -> AgentState:
        """A snapshot of the state now."""
        if self._latest is not None:
            # Updates only move the streaming message, so of many in a row the last one is all that counts.
            latest, self._latest = self._latest, None
            self._state = reduce(self._state, latest)
        return self._state

    @property
    def states(self) -> Observable[AgentState]:
        """The present state, then one per change."""

        def subscribe(
            observer: abc.ObserverBase[AgentState], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            catching_up = CatchUp(observer)
            live = self._states.subscribe(catching_up, scheduler=scheduler)
            try:
                catching_up.tell([self.state])
            except BaseException:
                live.dispose()
                raise
            return live

        return Observable(subscribe)

    def _fold(self, event: AgentEvent) -> None:
        if type(event) is MessageUpdateEvent:
            self._latest = event
        else:
            self._state = reduce(self.state, event)
        if self._states.observers:
            self._states.next(self.state)

    def _refuse_if_busy(self, what: str) -> None:
        if self._active is not None and self._active.stranded:
            self._active.abort()
        if self._active is not None:
            raise AgentBusyError(
                f"{what}: the agent is busy with a run. Queue the message with steer(...) or follow_up(...), wait "
                "with `await agent.wait_for_idle()`, stop the run with abort(), or use an independent "
                "agent.fork()"
            )

    # --- what the user assigns -----------------------------------------------------------------------------

    def _set(self, **fields: Any) -> None:
        self._state = replace(self.state, **fields)
        if self._states.observers:
            self._states.next(self._state)

    @property
    def system_prompt(self) -> str:
        """The system prompt; a change takes effect with the next run, as for model, tools and messages."""
        return self._state.system_prompt

    @system_prompt.setter
    def system_prompt(self, value: str) -> None:
        self._set(system_prompt=checked("system_prompt", value, str))

    @property
    def model(self) -> Model:
        """The model of the next run (within one, ``prepare_next_turn`` changes it)."""
        return self._state.model

    @model.setter
    def model(self, value: Model) -> None:
        self._set(model=model_of(value, None))

    @property
    def thinking_level(self) -> ThinkingLevel:
        """How much the model may think."""
        return self._state.thinking_level

    @thinking_level.setter
    def thinking_level(self, value: ThinkingLevel) -> None:
        self._set(thinking_level=chosen("thinking_level", value, ThinkingLevel))

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools; functions are made into tools when assigned."""
        return self._state.tools

    @tools.setter
    def tools(self, value: Iterable[Tool | Callable[..., Any]]) -> None:
        self._set(tools=tools_of(value))

    @property
    def max_concurrency(self) -> int | None:
        """How many tools of one batch run at once; None for no bound. A change takes effect with the next run."""
        return self._max_concurrency

    @max_concurrency.setter
    def max_concurrency(self, value: int | None) -> None:
        if value is not None and (not isinstance(cast(object, value), int) or value < 1):
            raise ConfigurationError(
                f"max_concurrency: {value!r} must be a whole number from 1 up; None for no bound"
            )
        self._max_concurrency = value

    @property
    def messages(self) -> Sequence[AgentMessage]:
        """The transcript. Assigning replaces it; raises :class:`AgentBusyError` while a run is active."""
        return self.state.messages

    @messages.setter
    def messages(self, value: Iterable[AgentMessage]) -> None:
        self._refuse_if_busy("assigning messages")
        self._set(messages=AppendOnly(transcript_of(value)))
