"""How the core strings observables together without spending virtual time or stack.

RxPY's creation operators schedule on whatever scheduler they are subscribed with, which costs a tick in virtual
time and a loop iteration under asyncio; here events are emitted on the spot. Sequences are generators joined by
``concat_with_iterable`` on a trampoline of their own: the generator resumes when the step before has completed, so
that it can read plain state, and a million synchronous steps use one stack frame. (``expand`` and a recursive
``defer`` overflow at a few hundred. RxPY's shared current-thread trampoline would put a sequence off that is
subscribed while some other pipeline runs on it, and lose it if that pipeline raised.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC
from typing import Any, TypeVar, cast

import reactivex
from reactivex import Observable, abc
from reactivex.disposable import Disposable
from reactivex.scheduler import ImmediateScheduler, TrampolineScheduler

from rx_agent.reporting import report

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
        return joined._subscribe_core(observer, TrampolineScheduler())  # pyright: ignore[reportPrivateUsage]

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
