"""How events reach listeners: in subscription order, guarded from each other, coroutines awaited in order."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable
from reactivex.notification import Notification, OnCompleted, OnError, OnNext

from rx_agent.asyncio_edge import TaskScope, all_ended, hop, step_through
from rx_agent.reporting import name_of, report

T = TypeVar("T")


class Hub(Observable[T], Generic[T]):
    """A hot observable that survives its observers.

    RxPY's ``Subject`` lets an exception of one observer skip those behind it and travel into the producer. Here
    an observer that raises is reported and unsubscribed; the others, and the producer, see nothing of it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.observers: list[abc.ObserverBase[T]] = []
        """Who listens. The list is replaced, never changed."""
        self._ended = False

    def _subscribe_core(
        self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        if self._ended:
            observer.on_completed()
            return Disposable()
        self.observers = [*self.observers, observer]
        return Disposable(lambda: self._remove(observer))

    def _remove(self, observer: abc.ObserverBase[T]) -> None:
        self.observers = [other for other in self.observers if other is not observer]

    def next(self, value: T, observers: list[abc.ObserverBase[T]] | None = None) -> None:
        """Tells every observer ``value``; or those of ``observers``, a subclass's snapshot."""
        # Whoever leaves or comes meanwhile does not disturb the walk.
        for observer in self.observers if observers is None else observers:
            try:
                observer.on_next(value)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # a CancelledError, say, of something the observer looked at
                self._drop(observer, error)

    def complete(self) -> None:
        """Tells every observer the end."""
        observers, self.observers, self._ended = self.observers, [], True
        for observer in observers:
            try:
                observer.on_completed()
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # a CancelledError, say, of something the observer looked at
                self._drop(observer, error)

    def _drop(self, observer: abc.ObserverBase[T], error: BaseException) -> None:
        report(error, "listener", original_callback(observer))
        self._remove(observer)
        if isinstance(observer, abc.DisposableBase):
            observer.dispose()


class CatchUp(abc.ObserverBase[T], abc.DisposableBase, Generic[T]):
    """Stands for an observer that is told the past first: what comes meanwhile waits, and nothing is missed.

    Subscribe it to the live source, then call :meth:`tell`. What is live may come from another thread, or out
    of the observer itself (one that aborts the run as it hears of its past).
    """

    def __init__(self, observer: abc.ObserverBase[T]) -> None:
        self._observer = observer
        self._on_next = observer.on_next
        self._waiting: deque[Notification[T]] = deque()
        self._behind = True
        self._lock = threading.Lock()

    def tell(self, past: Iterable[T]) -> None:
        """Tells the observer ``past`` and what has come since; from then on it hears for itself."""
        for value in past:
            self._on_next(value)
        while True:
            with self._lock:
                if not self._waiting:
                    self._behind = False
                    return
                notification = self._waiting.popleft()
            notification.accept(self._observer)

    def _waits(self, notification: Notification[T]) -> bool:
        with self._lock:
            if self._behind:
                self._waiting.append(notification)
            return self._behind

    def on_next(self, value: T) -> None:
        if not (self._behind and self._waits(OnNext(value))):
            self._on_next(value)

    def on_error(self, error: Exception) -> None:
        if not (self._behind and self._waits(OnError(error))):
            self._observer.on_error(error)

    def on_completed(self) -> None:
        if not (self._behind and self._waits(OnCompleted())):
            self._observer.on_completed()

    def dispose(self) -> None:
        """Ends the observer."""
        if isinstance(self._observer, abc.DisposableBase):
            self._observer.dispose()


class Leaving(abc.ObserverBase[T], Generic[T]):
    """Stands for an observer for whose sake a source runs: when it raises, ``source`` is disposed, too."""

    def __init__(self, observer: abc.ObserverBase[T], source: abc.DisposableBase) -> None:
        self._observer = observer
        self._on_next = observer.on_next
        self._source = source

    def on_next(self, value: T) -> None:
        try:
            self._on_next(value)
        except Exception:
            self._source.dispose()
            raise

    def on_error(self, error: Exception) -> None:
        self._observer.on_error(error)

    def on_completed(self) -> None:
        self._observer.on_completed()


def original_callback(observer: object) -> object:
    """The user's callback behind RxPY's wrappers, as far as it can be told."""
    seen = observer
    for _ in range(8):
        inner = getattr(seen, "_on_next", None)
        if inner is None:
            return seen
        seen = getattr(inner, "__self__", None) or inner
    return seen


@dataclass(slots=True, eq=False)
class _Delivery:
    """A listener's coroutine for one event."""

    work: Awaitable[Any]
    on_error: Callable[[BaseException], None]
    owner: object

    def close(self) -> None:
        if inspect.iscoroutine(self.work):
            self.work.close()


class AsyncDeliveries:
    """Listeners' coroutines, awaited one after another in the order of the events that caused them."""

    def __init__(self, tasks: TaskScope) -> None:
        self._tasks = tasks
        self._waiting: deque[_Delivery] = deque()
        self._current: _Delivery | None = None
        self._giving_up = False
        self._worker: asyncio.Task[None] | None = None

    def add(self, work: Awaitable[Any], on_error: Callable[[BaseException], None], owner: object) -> None:
        """Queues ``work``; ``on_error`` hears what it raises. Without a loop, it must not wait."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            try:
                step_through(work, f"listener {name_of(work)}")
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                on_error(error)
            return
        self._waiting.append(_Delivery(work, on_error, owner))
        if self._worker is None:
            self._worker = self._tasks.spawn(loop, self._work())

    async def _work(self) -> None:
        try:
            while self._waiting:
                self._current = self._waiting.popleft()
                try:
                    await self._current.work
                except (KeyboardInterrupt, SystemExit):
                    raise
                except BaseException as error:
                    cancelled = isinstance(error, asyncio.CancelledError) and self._cancelled()
                    if not cancelled:
                        self._current.on_error(error)
                else:
                    self._cancelled()  # it may have gone on in spite of it
        finally:
            self._worker = self._current = None
            while self._waiting:
                self._waiting.popleft().close()

    def _cancelled(self) -> bool:
        """Whether the present work was cancelled by :meth:`drop`. Raises where the worker itself was."""
        task = asyncio.current_task()
        given_up, self._giving_up = self._giving_up, False
        if task is None or not task.cancelling():
            return given_up
        if not given_up or task.uncancel():
            raise asyncio.CancelledError
        return True

    def drop(self, owner: object) -> None:
        """Forgets what ``owner`` has waiting, and cancels what it has running. From any thread."""
        worker = self._worker
        if worker is None:
            return
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        loop = worker.get_loop()
        if loop is here:
            self._drop(owner)
        else:
            hop(loop, self._drop, owner)

    def _drop(self, owner: object) -> None:
        for delivery in [each for each in self._waiting if each.owner is owner]:
            self._waiting.remove(delivery)
            delivery.close()
        running = self._current is not None and self._current.owner is owner
        # One that leaves from inside its own coroutine goes on to its end.
        if running and self._worker is not None and not self._giving_up and not self.inside():
            self._giving_up = True
            self._worker.cancel()

    @property
    def busy(self) -> bool:
        """Whether something waits or runs."""
        return self._worker is not None

    def inside(self) -> bool:
        """Whether the caller is one of the listeners' coroutines."""
        try:
            return self._worker is not None and asyncio.current_task() is self._worker
        except RuntimeError:
            return False

    async def join(self) -> None:
        """Returns once all is through. From any event loop."""
        while (worker := self._worker) is not None:
            await all_ended([worker])
            if self._worker is worker:  # its loop was closed under it
                self._worker = None

    def ready(self) -> Awaitable[None] | None:
        """Backpressure: what an HTTP pump awaits before it reads on; None to go on at once."""
        return self.join() if self._worker is not None else None

    async def settle(self) -> None:
        """As :meth:`join`, but returns at once inside a listener, which would wait for itself."""
        if not self.inside():
            await self.join()
