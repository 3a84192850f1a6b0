"""An asyncio event loop in virtual time: what waits, waits on its clock, which jumps to whatever comes next.

RxPY's timers reach it through ``AsyncIOScheduler``, coroutines through ``asyncio.sleep``, ``asyncio.timeout``, locks
and queues; both see the same time, and a day of waiting takes as long as what happens in it. Nothing here polls,
sleeps or opens a socket, and what would, fails and is noted in :attr:`VirtualLoop.offences`.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import heapq
import itertools
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn, cast
from unittest import mock

from reactivex.scheduler.eventloop import AsyncIOScheduler

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""The date at time 0, so that timestamps are milliseconds of virtual time."""
PATIENCE = 2.0
"""Seconds of wall clock after which one callback is said to have waited on it."""


class WallClockError(RuntimeError):
    """Something would have waited on the wall clock in a test of virtual time."""


class NetworkError(RuntimeError):
    """Something would have touched the network in a test of virtual time."""


class _Timer(asyncio.TimerHandle):
    """A timer whose like at the same instant come in a fixed order: that of being set, unless told otherwise."""

    __slots__ = ("order",)

    order: tuple[float, int]

    def __lt__(self, other: object) -> bool:
        mine, theirs = self.when(), cast(_Timer, other).when()
        return mine < theirs or (mine == theirs and self.order < cast(_Timer, other).order)


class _Clockwork:
    """Stands where a loop asks the system what has happened: moves the clock instead."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None or timeout > 0:
            self._loop.advance()
        return []

    def close(self) -> None:
        pass


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop. ``order`` may permute the timers of one instant: each gets the number it returns when it is set.

    >>> loop = VirtualLoop()
    >>> loop.run_until_complete(asyncio.sleep(86_400))
    >>> loop.time()
    86400.0
    >>> loop.close()
    """

    is_virtual = True
    """Plain functions that would get a thread run inline here."""

    def __init__(self, *, order: Callable[[], float] | None = None) -> None:
        super().__init__()
        self._selector = _Clockwork(self)
        self._clock_resolution = 1e-9
        self._now = 0.0
        self._numbers = itertools.count()
        self._order = order
        self.horizon = float("inf")
        """The clock never goes past this; a timer beyond it is as good as none."""
        self.offences: list[str] = []
        """What touched the wall clock or the network, in words."""

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._now

    def timers(self) -> list[asyncio.TimerHandle]:
        """What waits for its time, next first."""
        return sorted(handle for handle in self._heap() if not handle.cancelled())

    def rest(self) -> None:
        """Runs everything until nothing is due before the horizon."""
        thresholds = gc.get_threshold()
        # A run makes many short-lived objects and little garbage in cycles: looking for it at each 700 of them takes
        # a quarter of the time.
        gc.set_threshold(max(50_000, thresholds[0]), *thresholds[1:])
        try:
            with guarded_clock(self):
                self.run_forever()
        finally:
            gc.set_threshold(*thresholds)

    def _heap(self) -> list[Any]:
        return cast(Any, self)._scheduled

    # --- what asyncio asks of a loop -----------------------------------------------------------------------

    def advance(self) -> None:
        """Moves the clock to the next timer; stops the loop where there is none before the horizon."""
        heap = self._heap()
        if heap and heap[0].when() <= self.horizon:
            self._now = max(self._now, heap[0].when())
        else:
            self.stop()

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        cast(Any, self)._check_closed()
        timer = _Timer(round(when, 9), callback, args, self, context)
        timer.order = (self._order() if self._order is not None else 0.0, next(self._numbers))
        heapq.heappush(self._heap(), timer)
        cast(Any, timer)._scheduled = True
        return timer

    def _run_once(self) -> None:
        began = time.perf_counter()
        cast(Any, super())._run_once()
        took = time.perf_counter() - began
        if took > PATIENCE:
            self.offences.append(
                f"something waited {took:.1f} s on the wall clock at {self._now:g} s: a lock, a queue or a "
                "computation; let it wait with asyncio or on the scheduler"
            )

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        """Runs ``func`` here and now: a thread would take wall-clock time and an order of its own."""
        future: asyncio.Future[Any] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def offend(self, kind: type[RuntimeError], what: str) -> NoReturn:
        """Notes ``what`` and raises it."""
        self.offences.append(f"{what} (at {self._now:g} s)")
        raise kind(what)

    def _no_network(self, *args: Any, **_: Any) -> Any:
        where = ":".join(str(part) for part in args if isinstance(part, str | int))
        self.offend(
            NetworkError, f"the network would be used ({where or 'a socket'}); give the agent a FakeModel"
        )

    create_connection = _no_network
    create_server = _no_network
    create_datagram_endpoint = _no_network
    create_unix_connection = _no_network
    getaddrinfo = _no_network
    getnameinfo = _no_network
    sock_connect = _no_network
    subprocess_exec = _no_network
    subprocess_shell = _no_network


@contextmanager
def guarded_clock(loop: VirtualLoop) -> Generator[None]:
    """While it lasts, what would sleep, start a thread or connect a socket raises and is noted as an offence."""
    real_wait = threading.Event.wait

    def sleep(seconds: float) -> None:
        loop.offend(
            WallClockError,
            f"time.sleep({seconds:g}) would wait on the wall clock; use asyncio.sleep or an Rx operator",
        )

    def wait(event: threading.Event, timeout: float | None = None) -> bool:
        if timeout is None or timeout <= 0 or event.is_set():
            return real_wait(event, timeout)
        loop.offend(
            WallClockError, f"a wait of {timeout:g} s for a threading.Event would wait on the wall clock"
        )

    def start(thread: threading.Thread) -> None:
        loop.offend(
            WallClockError,
            f"thread {thread.name!r} would run outside of virtual time; pass the scheduler on (an Rx operator "
            "without one starts a timer thread)",
        )

    def connect(_: socket.socket, address: Any) -> Any:
        loop.offend(NetworkError, f"the network would be used ({address}); give the agent a FakeModel")

    with ExitStack() as patches:
        for owner, name, stand_in in (
            (time, "sleep", sleep),
            (threading.Event, "wait", wait),
            (threading.Thread, "start", start),
            (socket.socket, "connect", connect),
            (socket.socket, "connect_ex", connect),
        ):
            patches.enter_context(mock.patch.object(owner, name, stand_in))
        yield


class VirtualScheduler(AsyncIOScheduler):
    """RxPY's asyncio scheduler on a :class:`VirtualLoop`; its dates begin at :data:`EPOCH`."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__(loop)
        self._virtual = loop

    @property
    def now(self) -> datetime:
        """The virtual date."""
        return EPOCH + timedelta(seconds=self._virtual.time())
