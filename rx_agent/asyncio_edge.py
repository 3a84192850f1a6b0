"""Where asyncio meets Rx: coroutines, async iterators and worker threads as observables.

Everything here is cold: subscribing starts the work, disposing cancels it. The work runs on the event loop of the
scheduler it was subscribed with. Where that scheduler has no loop (virtual time, a plain thread), a coroutine is
stepped through at once: one that never really waits gives its value, one that waits is refused with a way out.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
import time
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import aclosing
from typing import Any, TypeVar, cast

from reactivex import Observable, abc
from reactivex.disposable import Disposable
from reactivex.scheduler import CurrentThreadScheduler
from reactivex.scheduler.eventloop import AsyncIOScheduler

from rx_agent.errors import NoEventLoopError
from rx_agent.reporting import as_exception, reason_of, report

T = TypeVar("T")


def loop_of(scheduler: abc.SchedulerBase | None) -> asyncio.AbstractEventLoop | None:
    """The event loop behind ``scheduler``, or None where it has none."""
    if isinstance(scheduler, AsyncIOScheduler):
        return scheduler._loop  # pyright: ignore[reportPrivateUsage]  (RxPY offers no other way)
    return None


def clock_of(scheduler: abc.SchedulerBase) -> Callable[[], float]:
    """The scheduler's time in seconds, as cheaply as it can be had; only differences mean something."""
    loop = loop_of(scheduler)
    if loop is None:
        return _now_of(scheduler)
    if getattr(loop.time, "__func__", None) is asyncio.BaseEventLoop.time:
        return time.monotonic  # what that method comes to
    return loop.time


def _now_of(scheduler: abc.SchedulerBase) -> Callable[[], float]:
    def now() -> float:
        return scheduler.now.timestamp()

    return now


def default_scheduler() -> abc.SchedulerBase:
    """The running event loop's scheduler; without a loop, the current thread."""
    try:
        return AsyncIOScheduler(asyncio.get_running_loop())
    except RuntimeError:
        return CurrentThreadScheduler.singleton()


class TaskScope:
    """Owns the asyncio tasks that edges start, so that somebody can wait for all of them to be gone."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Starts ``work`` on ``loop``. An exception it lets out is reported."""
        task = loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            if not task.cancelling():
                gave_up = RuntimeError("a task ended by a CancelledError of its own; nobody had cancelled it")
                report(gave_up, "task", task.get_coro())
        elif (error := task.exception()) is not None:
            report(error, "task", task.get_coro())

    def __len__(self) -> int:
        return len(self._tasks)

    def inside(self) -> bool:
        """Whether the caller runs in one of these tasks."""
        return any(_is_current(task) for task in tuple(self._tasks))

    async def join(self) -> None:
        """Returns once every task, and every task that those started here, has ended. From any event loop."""
        current = asyncio.current_task()
        while waiting := [task for task in tuple(self._tasks) if task is not current]:
            await all_ended(waiting)
            self._tasks.difference_update(waiting)


async def all_ended(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Returns once all of ``tasks`` have ended, whichever event loop they belong to (``asyncio.wait`` takes only
    those of its own). A task whose loop has been closed will never go on and counts as ended.
    """
    here = asyncio.get_running_loop()
    done: asyncio.Future[None] = here.create_future()
    left = len(tasks)

    def one_less(_: object = None) -> None:
        nonlocal left
        left -= 1
        if left <= 0 and not done.done():
            done.set_result(None)

    for task in tasks:
        loop = task.get_loop()
        if loop is here:
            task.add_done_callback(one_less)
        elif loop.is_closed():
            one_less()
        else:
            hop(loop, task.add_done_callback, functools.partial(hop, here, one_less))
    await done


def _given_up(error: asyncio.CancelledError, what: str) -> RuntimeError:
    return RuntimeError(f"{what} was cancelled from inside: {error}".rstrip(": "))


def _ending(error: BaseException, what: str) -> RuntimeError:
    """What the observer hears of an exception that ends the program or the thread."""
    return RuntimeError(f"{what} raised {type(error).__name__}: {reason_of(error)}")


def _is_current(task: asyncio.Task[None]) -> bool:
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


def step_through(awaitable: Awaitable[T], what: str) -> T:
    """What an awaitable that never waits gives. Raises :class:`NoEventLoopError` for one that does."""
    steps: Generator[Any, Any, T] = awaitable.__await__()
    try:
        next(steps)
    except StopIteration as stop:
        return stop.value
    except RuntimeError as error:
        if "no running event loop" in str(error):
            raise _needs_loop(what) from error
        raise
    steps.close()
    raise _needs_loop(what)


def _needs_loop(what: str) -> NoEventLoopError:
    return NoEventLoopError(
        f"{what} waits on asyncio, but the run's scheduler has no event loop. Run the agent inside one "
        "(`await agent.prompt(...)`), from a script with `agent.prompt_sync(...)`, or return an Observable, "
        "which also works in virtual time."
    )


def from_awaitable(
    make: Callable[[], Awaitable[T]], scope: TaskScope, *, what: str = "a coroutine"
) -> Observable[T]:
    """One item: what ``make()`` gives when awaited. Disposing cancels the task. ``what`` names it in errors."""

    def subscribe(
        observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        loop = loop_of(scheduler)
        if loop is None:
            try:
                value = step_through(make(), what)
            except BaseException as error:
                observer.on_error(as_exception(error, what))
            else:
                observer.on_next(value)
                observer.on_completed()
            return Disposable()

        async def work() -> None:
            try:
                value = await make()
            except asyncio.CancelledError as error:
                if cancelled.is_disposed:
                    raise
                # The body gave itself up; nobody asked this task to stop.
                observer.on_error(_given_up(error, what))
            except Exception as error:
                if cancelled.is_disposed:
                    report(error, "cleanup of", what)
                observer.on_error(error)
            except BaseException as error:  # the observer must hear of its end, whatever else it ends
                observer.on_error(_ending(error, what))
                raise
            else:
                observer.on_next(value)
                observer.on_completed()

        task = scope.spawn(loop, work())
        cancelled = Disposable(lambda: _cancel(task))
        return cancelled

    return Observable(subscribe)


def from_async_iterable(
    make: Callable[[], AsyncIterable[T]], scope: TaskScope, *, what: str = "an async generator"
) -> Observable[T]:
    """The items of ``make()`` as they come. Disposing cancels the task and closes the generator."""

    def subscribe(
        observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        disposed = False

        async def drain() -> None:
            iterator = make().__aiter__()
            if hasattr(iterator, "aclose"):
                async with aclosing(cast(Any, iterator)):
                    async for item in iterator:
                        observer.on_next(item)
                        if disposed:
                            return
            else:
                async for item in iterator:
                    observer.on_next(item)
                    if disposed:
                        return

        async def work() -> None:
            try:
                await drain()
            except asyncio.CancelledError as error:
                if disposed:
                    raise
                observer.on_error(_given_up(error, what))
            except Exception as error:
                if disposed:
                    report(error, "cleanup of", what)
                observer.on_error(error)
            except BaseException as error:
                observer.on_error(_ending(error, what))
                raise
            else:
                observer.on_completed()

        loop = loop_of(scheduler)
        if loop is None:
            try:
                step_through(drain(), what)
            except BaseException as error:
                observer.on_error(as_exception(error, what))
            else:
                observer.on_completed()
            return Disposable()

        task = scope.spawn(loop, work())

        def dispose() -> None:
            nonlocal disposed
            disposed = True
            # From inside its own on_next the task sees the flag; a cancel would disturb the generator's cleanup.
            if not _is_current(task):
                task.cancel()

        return Disposable(dispose)

    return Observable(subscribe)


def in_worker_thread(function: Callable[[], T], *, name: str = "rx_agent worker") -> Observable[T]:
    """One item: what ``function()`` returns, run in a thread of its own so that the loop never stalls.

    Without an event loop, and on one of virtual time, it runs inline. Context variables are carried over. A
    running function cannot be killed: after disposal it goes on to its end and its result is dropped.
    """

    def subscribe(
        observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        def deliver(value: T | None, error: Exception | None) -> None:
            if disposed.is_disposed:
                if error is not None:
                    report(error, "work after the end of", name)
            elif error is not None:
                observer.on_error(error)
            else:
                observer.on_next(cast(T, value))
                observer.on_completed()

        disposed = Disposable()
        loop = loop_of(scheduler)
        if loop is None or getattr(loop, "is_virtual", False):
            try:
                value = function()
            except BaseException as error:
                deliver(None, as_exception(error, name))
            else:
                deliver(value, None)
            return disposed

        context = contextvars.copy_context()

        def work() -> None:
            try:
                outcome: tuple[T | None, Exception | None] = (context.run(function), None)
            except Exception as error:
                outcome = (None, error)
            except BaseException as error:  # SystemExit and the like must not vanish with the thread
                outcome = (None, _ending(error, name))
            if not hop(loop, deliver, *outcome) and outcome[1] is not None:
                report(outcome[1], "work after the end of", name)

        threading.Thread(target=work, name=name, daemon=True).start()
        return disposed

    return Observable(subscribe)


def hop(loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *args: Any) -> bool:
    """Calls ``callback(*args)`` on the loop's thread, soon. False, and no call, once the loop is closed."""
    try:
        loop.call_soon_threadsafe(callback, *args)
    except RuntimeError:
        if not loop.is_closed():
            raise
        return False
    return True
