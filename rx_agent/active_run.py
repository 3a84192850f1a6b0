"""A run in progress, as the agent holds it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

from reactivex import Observable, abc
from reactivex.disposable import SingleAssignmentDisposable

from rx_agent.abort import AbortSignal
from rx_agent.asyncio_edge import clock_of, hop, loop_of
from rx_agent.delivery import AsyncDeliveries
from rx_agent.events import AgentEvent
from rx_agent.run import Run, settle


class ActiveRun:
    """A run in progress: its thread, its signal, its subscription of the loop."""

    def __init__(
        self, scheduler: abc.SchedulerBase, deliveries: AsyncDeliveries, inside: Callable[[], bool]
    ) -> None:
        self.scheduler = scheduler
        self.signal = AbortSignal()
        self.run = Run(self.abort, deliveries.settle, inside, clock_of(scheduler), lambda: self.stranded)
        self._deliveries = deliveries
        self._thread = threading.get_ident()
        self._subscription = SingleAssignmentDisposable()
        self._over = False

    def start(
        self,
        source: Observable[AgentEvent],
        on_event: Callable[[AgentEvent], None],
        on_completed: Callable[[], None],
    ) -> None:
        """Subscribes the loop. ``on_completed`` is followed by the run's own completion."""

        def completed() -> None:
            self._over = True
            on_completed()
            self.run.complete()

        try:
            self._subscription.disposable = source.subscribe(
                on_event, on_completed=completed, scheduler=self.scheduler
            )
        except BaseException:  # such as Ctrl-C in the middle of a synchronous run
            self._abort()
            raise

    def ready(self) -> Awaitable[None] | None:
        """Backpressure: what a provider awaits before it reads on; None to go on at once."""
        return self._deliveries.ready() or self.run.caught_up()

    def on_its_thread(self) -> bool:
        """Whether the caller is on the thread that the run emits on."""
        return threading.get_ident() == self._thread

    def call(self, action: Callable[[], object]) -> None:
        """Calls ``action()`` on the run's thread, at once if this is it."""
        loop = loop_of(self.scheduler)
        if loop is None or self.on_its_thread() or loop.is_closed():
            action()
        else:
            hop(loop, action)

    @property
    def stranded(self) -> bool:
        """Whether its event loop was closed under it, so that nothing will ever end it."""
        loop = loop_of(self.scheduler)
        return loop is not None and loop.is_closed()

    def abort(self) -> None:
        """Aborts on the run's thread; does nothing once the run is over."""
        self.call(self._abort)

    def _abort(self) -> None:
        if not self._over:
            self.signal.set()

    async def ended(self) -> None:
        """Returns once the run is over."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            hop(loop, settle, done)

        subscription = self.run.completion.subscribe(on_completed=wake)
        try:
            await done
        finally:
            subscription.dispose()
