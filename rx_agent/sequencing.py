"""How the core strings observables together without spending virtual time or stack.

RxPY's creation operators schedule on whatever scheduler they are subscribed with, which costs a tick in virtual
time and a loop iteration under asyncio; here events are emitted on the spot. Sequences are generators joined by
``concat_with_iterable`` on a trampoline of their own: the generator resumes when the step before has completed, so
that it can read plain state, and a million synchronous steps use one stack frame. (``expand`` and a recursive
``defer`` overflow at a few hundred. RxPY's shared current-thread trampoline would put a sequence off that is
subscribed while some other pipeline runs on it, and lose it if that pipeline raised.)
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC
from typing import Any, TypeVar, cast

import reactivex
from reactivex import Observable, abc, typing
from reactivex.disposable import Disposable, SingleAssignmentDisposable
from reactivex.scheduler import ImmediateScheduler, TimeoutScheduler
from reactivex.scheduler.scheduler import Scheduler

from rx_agent.reporting import as_exception, report

T = TypeVar("T")

IMMEDIATE = ImmediateScheduler.singleton()


def guarded(subscription: abc.DisposableBase, what: str) -> abc.DisposableBase:
    """``subscription``, whose disposal may raise (a user's ``finally_action``): that is reported, not raised.

    Disposing happens in the middle of ending a run; an exception there would keep the rest from being ended.
    """

    def dispose() -> None:
        try:
            subscription.dispose()
        except Exception as error:
            report(error, "disposal of", what)

    return Disposable(dispose)


def contained(make: Callable[[], Observable[T]], what: str) -> Observable[T]:
    """What ``make()`` gives, made and subscribed at each subscription; whatever that raises is ``on_error``.

    ``reactivex.defer`` for users' code: a ``BaseException`` (a ``CancelledError``, say) would pass through it and
    leave the run waiting for ever.
    """

    def subscribe(
        observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        try:
            return make().subscribe(
                observer.on_next, observer.on_error, observer.on_completed, scheduler=scheduler
            )
        except BaseException as error:
            observer.on_error(as_exception(error, what))
            return Disposable()

    return Observable(subscribe)


class _Emission(Observable[T]):
    """A few items at once. ``sequence`` passes them on without the cost of a subscription."""

    def __init__(self, items: tuple[T, ...]) -> None:
        super().__init__(self._run)
        self.items = items

    def _run(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        for item in self.items:
            observer.on_next(item)
        observer.on_completed()
        return Disposable()


def emit(*items: T) -> Observable[T]:
    """``items`` at once, in this instant, on this stack."""
    return _Emission(items)


def pause(seconds: float) -> Observable[Any]:
    """Nothing for so long, on the scheduler subscribed with; then completion."""

    def subscribe(
        observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        def end(_: abc.SchedulerBase, __: Any = None) -> None:
            observer.on_completed()

        return (scheduler or TimeoutScheduler.singleton()).schedule_relative(seconds, end)

    return Observable(subscribe)


class _Trampoline(Scheduler):
    """Runs what is scheduled on it one after another, on the thread that finds it idle. Knows no time.

    RxPY's own looks for more work and goes idle in two steps; what another thread schedules between the two is
    never run. Here both happen under one lock.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._actions: deque[Callable[[], object]] = deque()
        self._busy = False

    def schedule(self, action: abc.ScheduledAction[Any], state: Any = None) -> abc.DisposableBase:
        subscription = SingleAssignmentDisposable()

        def work() -> None:
            if not subscription.is_disposed:
                self.invoke_action(action, state)

        with self._lock:
            self._actions.append(work)
            if self._busy:
                return subscription
            self._busy = True
        try:
            while (due := self._next()) is not None:
                due()
        except BaseException:
            # Whoever raised has torn this sequence down; what was scheduled behind it is void.
            with self._lock:
                self._actions.clear()
                self._busy = False
            raise
        return subscription

    def _next(self) -> Callable[[], object] | None:
        with self._lock:
            if self._actions:
                return self._actions.popleft()
            self._busy = False
            return None

    def schedule_relative(
        self, duetime: typing.RelativeTime, action: abc.ScheduledAction[Any], state: Any = None
    ) -> abc.DisposableBase:
        raise NotImplementedError("sequences have no time of their own")

    def schedule_absolute(
        self, duetime: typing.AbsoluteTime, action: abc.ScheduledAction[Any], state: Any = None
    ) -> abc.DisposableBase:
        raise NotImplementedError("sequences have no time of their own")


class _Step:
    """One step as ``concat`` takes it: bound to the sequence's scheduler, not to concat's trampoline."""

    __slots__ = ("_scheduler", "_source", "_unless")

    def __init__(
        self,
        source: Observable[Any],
        scheduler: abc.SchedulerBase | None,
        unless: Callable[[], bool] | None,
    ) -> None:
        self._source = source
        self._scheduler = scheduler
        self._unless = unless

    def subscribe(
        self,
        on_next: Callable[[Any], None],
        on_error: Callable[[Exception], None],
        on_completed: Callable[[], None],
        *,
        scheduler: abc.SchedulerBase | None = None,
    ) -> abc.DisposableBase:
        source = self._source
        if not isinstance(source, _Emission):
            return source.subscribe(on_next, on_error, on_completed, scheduler=self._scheduler)
        for item in source.items:
            if self._unless is not None and self._unless():
                break
            on_next(item)
        on_completed()
        return _NOTHING


_NOTHING = Disposable()


def sequence(
    steps: Callable[[], Iterator[Observable[T]]], *, unless: Callable[[], bool] | None = None
) -> Observable[T]:
    """The observables that ``steps()`` yields, one after another; each subscription runs a fresh generator.

    Once ``unless()`` is true, no further step is pulled. A disposal alone is not enough for that: one that comes
    out of a synchronous step finds the step's subscription not yet assigned, and the steps would go on unheard.

    >>> def count():
    ...     for n in range(3):
    ...         yield emit(n)
    >>> seen = []
    >>> subscription = sequence(count).subscribe(seen.append)
    >>> seen
    [0, 1, 2]
    """

    def subscribe(
        observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        pinned = (_Step(step, scheduler, unless) for step in _until(steps(), unless))
        joined = reactivex.concat_with_iterable(cast("Iterable[Observable[T]]", pinned))
        # `subscribe` would wrap the observer, which is wrapped already, once more: a cost at every delta.
        return joined._subscribe_core(observer, _Trampoline())  # pyright: ignore[reportPrivateUsage]

    return Observable(subscribe)


def _until(steps: Iterator[Observable[T]], unless: Callable[[], bool] | None) -> Iterator[Observable[T]]:
    for step in steps:
        yield step
        if unless is not None and unless():
            return


def now_ms(scheduler: abc.SchedulerBase | None) -> int:
    """The scheduler's time in milliseconds since the epoch."""
    now = (scheduler or IMMEDIATE).now
    return round((now if now.tzinfo else now.replace(tzinfo=UTC)).timestamp() * 1000)
