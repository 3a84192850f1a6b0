"""A run: an observable of its own events, from the start, whenever it is subscribed."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import Any

from reactivex import abc

from rx_agent.asyncio_edge import hop
from rx_agent.delivery import CatchUp, Hub
from rx_agent.errors import RxAgentError
from rx_agent.events import AgentEndEvent, AgentEvent
from rx_agent.marble_text import drawn
from rx_agent.messages import AgentMessage
from rx_agent.replay import Beat, ReplayLog
from rx_agent.timeline import lanes_of


class Run(Hub[AgentEvent]):
    """What ``agent.prompt`` and ``agent.continue_`` return; it has started already.

    - ``run.subscribe(...)``: the events from the start, then live. Disposing that subscription only stops that
      observer. It completes after ``agent_end``.
    - ``run.dispose()``: aborts the run, as ``agent.abort()`` does. When it returns, the brackets are closed and
      the transcript is valid; connections and tasks close behind it (``await agent.wait_for_idle()``).
    - ``await run``: the :class:`AgentEndEvent`, once coroutine listeners have been through. As often as you
      like. Cancelling the task that awaits (``asyncio.timeout``, an interrupted notebook cell) aborts the run;
      ``asyncio.shield`` it if it is to go on.
    - ``async for event in run``: the events; leaving the loop early aborts the run. The provider's stream is
      read only as fast as the loop body takes the events.

    The last two signal :class:`RxAgentError` inside a coroutine listener, tool or hook of the run's own agent
    while it is active: they would wait for themselves.
    """

    def __init__(
        self,
        abort: Callable[[], None],
        settle: Callable[[], Any],
        inside: Callable[[], bool],
        now: Callable[[], float],
        stranded: Callable[[], bool],
    ) -> None:
        super().__init__()
        self._inside = inside
        self._log = ReplayLog(now)
        self._abort = abort
        self._settle = settle
        self._stranded = stranded
        self._end: AgentEndEvent | None = None
        self._readers: list[_Reader] = []
        self._lock = threading.RLock()
        self._acquire, self._release = self._lock.acquire, self._lock.release
        self.completion: Hub[None] = Hub()
        """Emits nothing and completes after the run has: for who only waits, and need not hear every delta."""

    # --- fed by the agent ----------------------------------------------------------------------------------

    def record(self, event: AgentEvent) -> None:
        """Remembers ``event`` and tells it to the run's observers."""
        # A subscriber from another thread hears of each event once: from the log or live. By hand, for every delta
        # is recorded, and `with` takes twice as long.
        self._acquire()
        try:
            self._log.append(event)
            observers = self.observers
        finally:
            self._release()
        if type(event) is AgentEndEvent:
            self._end = event
        if observers:
            self.next(event, observers)

    def complete(self) -> None:
        """Tells every observer the end."""
        super().complete()
        self.completion.complete()

    # --- an observable -------------------------------------------------------------------------------------

    def _subscribe_core(
        self, observer: abc.ObserverBase[AgentEvent], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        catching_up = CatchUp(observer)
        with self._lock:
            past = iter(self._log)
            live = super()._subscribe_core(catching_up, scheduler)
        try:
            catching_up.tell(past)
        except BaseException:
            live.dispose()
            raise
        return live

    def dispose(self) -> None:
        """Aborts the run if it is active; else does nothing."""
        self._abort()

    # --- what it came to -----------------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether the run has ended."""
        return self._end is not None

    @property
    def end(self) -> AgentEndEvent | None:
        """The last event, once there."""
        return self._end

    @property
    def messages(self) -> tuple[AgentMessage, ...]:
        """The run's new messages; empty until it has ended."""
        return self._end.messages if self._end else ()

    @property
    def text(self) -> str:
        """The answer's text; empty until the run has ended."""
        return self._end.text if self._end else ""

    @property
    def beats(self) -> list[Beat]:
        """The events so far with their times, in seconds since the first; deltas of a block are one beat."""
        with self._lock:
            return self._log.beats()

    def to_marbles(self, width: int = 100) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The run so far as a text diagram: a time axis and a lane for each thing that happened.

        At most ``width`` characters wide; longer runs go on in a further block. Moments nearer to each other than
        a two-thousandth of the run are drawn as one. ``print`` it. (RxPY's operator of this name, which draws
        what is yet to come, is there as ``reactivex.operators.to_marbles``.)

        >>> from rx_agent import Agent
        >>> from rx_agent.providers.scripted import scripted
        >>> print(Agent(stream_function=scripted(["Hello!"])).prompt("Hi").to_marbles())  # doctest: +ELLIPSIS
        time      0 s...
        run       ^...
        """
        beats = self.beats
        return drawn(lanes_of(beats), width=width, finest=beats[-1].time / 2000 if beats else 0.0)

    def __repr__(self) -> str:
        return f"Run({self._end.reason if self._end else 'active'}, {len(self._log)} events)"

    # --- asyncio -------------------------------------------------------------------------------------------

    def __await__(self) -> Generator[Any, None, AgentEndEvent]:
        return self._result().__await__()

    def _refuse_inside(self) -> None:
        if not self.done and self._inside():
            raise RxAgentError(
                "awaiting a run inside a listener, tool or hook of its own agent would wait for itself; await it "
                "elsewhere, or start a task for it"
            )

    def _end_if_stranded(self) -> None:
        if not self.done and self._stranded():
            self.dispose()  # its event loop was closed under it: nothing else will ever end it

    async def _result(self) -> AgentEndEvent:
        self._refuse_inside()
        self._end_if_stranded()
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            hop(loop, settle, ended)

        subscription = self.completion.subscribe(on_completed=wake)
        try:
            await ended
            await self._settle()
        except asyncio.CancelledError:
            self.dispose()
            raise
        finally:
            subscription.dispose()
        if self._end is None:
            raise RuntimeError("a run completed without agent_end")
        return self._end

    def __aiter__(self) -> AsyncIterator[AgentEvent]:
        return self._iterate()

    async def _iterate(self) -> AsyncIterator[AgentEvent]:
        self._refuse_inside()
        self._end_if_stranded()
        reader = _Reader(asyncio.get_running_loop())
        self._readers.append(reader)
        subscription = self.subscribe(reader.put, on_completed=reader.end)
        try:
            while (event := await reader.take()) is not None:
                yield event
        finally:
            # Reached at the end, on cancellation, and (through asyncio's hook for abandoned generators) when the
            # loop body was left early.
            subscription.dispose()
            self._readers.remove(reader)
            reader.close()
            if not self.done:
                self.dispose()

    def caught_up(self) -> Awaitable[None] | None:
        """Backpressure: awaits the slowest ``async for`` over this run; None where none is behind."""
        return next((reader.caught_up() for reader in self._readers if reader.behind), None)


class _Reader:
    """The mailbox of one ``async for``."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._events: deque[AgentEvent] = deque()
        self._ended = False
        self._wake: asyncio.Future[None] | None = None
        self._caught_up: asyncio.Future[None] | None = None

    @property
    def behind(self) -> bool:
        """Whether events wait to be taken."""
        return bool(self._events)

    def put(self, event: AgentEvent) -> None:
        self._events.append(event)
        self._notify()

    def end(self) -> None:
        self._ended = True
        self._notify()

    def _notify(self) -> None:
        wake, self._wake = self._wake, None
        if wake is not None:
            hop(self._loop, settle, wake)

    async def take(self) -> AgentEvent | None:
        """The next event, or None after the last."""
        while not self._events:
            settle(self._caught_up)
            if self._ended:
                return None
            self._wake = self._loop.create_future()
            await self._wake
        return self._events.popleft()

    async def caught_up(self) -> None:
        """Returns once every event so far has been taken and the reader asks for more, or has left."""
        if self._events:
            if self._caught_up is None or self._caught_up.done():
                self._caught_up = self._loop.create_future()
            await asyncio.shield(self._caught_up)

    def close(self) -> None:
        self._events.clear()
        settle(self._caught_up)


def settle(future: asyncio.Future[None] | None) -> None:
    """Resolves ``future`` unless it is resolved, cancelled or not there."""
    if future is not None and not future.done():
        future.set_result(None)
