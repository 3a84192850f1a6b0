"""How a tool's body runs: whatever kind it is of, an observable of partial results and one final."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, cast

import reactivex
from reactivex import Observable, abc
from reactivex import operators as ops
from reactivex.disposable import CompositeDisposable, Disposable, SerialDisposable
from reactivex.notification import Notification, OnError, OnNext
from reactivex.scheduler import ImmediateScheduler

from rx_agent.abort import AbortSignal
from rx_agent.asyncio_edge import (
    default_scheduler,
    from_async_iterable,
    from_awaitable,
    hop,
    in_worker_thread,
    loop_of,
)
from rx_agent.errors import ToolTimeoutError
from rx_agent.messages import ToolResult
from rx_agent.reporting import as_exception
from rx_agent.sequencing import guarded
from rx_agent.tools.context import ToolContext
from rx_agent.tools.results import to_result


@dataclass(frozen=True, slots=True)
class ToolEmission:
    """One item of a running tool: a partial result, or the ``final`` one that ends it."""

    result: ToolResult
    final: bool = False


class BodyKind(Enum):
    """How a body has to be called."""

    BLOCKING = auto()
    """A plain function: in a worker thread where there is an event loop."""
    INLINE = auto()
    """A plain function that says it returns an observable or something to await: where it is called."""
    COROUTINE = auto()
    GENERATOR = auto()
    ASYNC_GENERATOR = auto()


# --- bodies ------------------------------------------------------------------------------------------------


def start_body(
    call: Callable[[], Any], kind: BodyKind, context: ToolContext[Any], tool_name: str
) -> Observable[ToolEmission]:
    """The body ``call()`` as an observable of emissions, for one subscription."""
    what = f"tool {tool_name!r}"
    resolve = _Resolver(context, what)
    match kind:
        case BodyKind.COROUTINE:
            return from_awaitable(call, context.tasks, what=what).pipe(ops.flat_map(resolve))
        case BodyKind.ASYNC_GENERATOR | BodyKind.GENERATOR:
            # Calling the function runs nothing of its body yet.
            return _immediately(call).pipe(ops.flat_map(resolve))
        case BodyKind.INLINE:
            unstarted = _Unstarted(call)
            value = _immediately(unstarted)
        case BodyKind.BLOCKING:
            unstarted = _Unstarted(call)
            value = in_worker_thread(unstarted, name=f"rx_agent {what}")
    return value.pipe(ops.flat_map(resolve), ops.finally_action(unstarted.close))


def _immediately(call: Callable[[], Any]) -> Observable[Any]:
    """What ``call()`` returns, when subscribed; without spending a virtual tick."""
    once = reactivex.return_value(None, scheduler=ImmediateScheduler.singleton())
    return once.pipe(ops.map(lambda _: call()))


class _Unstarted:
    """Calls a function; closes a coroutine that it returned if nobody came to await it."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._closed = False
        self._coroutine: Coroutine[Any, Any, Any] | None = None

    def __call__(self) -> Any:
        value = self._call()
        if inspect.iscoroutine(value):
            self._coroutine = value
            if self._closed:  # disposed while the thread was at work
                self.close()
        return value

    def close(self) -> None:
        self._closed = True
        coroutine = self._coroutine
        if coroutine is not None and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
            coroutine.close()


@dataclass(frozen=True, slots=True)
class _Resolver:
    """What a body returned, as emissions: a value is the result; what can be waited for is waited for."""

    context: ToolContext[Any]
    what: str

    def __call__(self, value: Any) -> Observable[ToolEmission]:
        if isinstance(value, Observable):  # first: an observable can be awaited too
            return _streamed(cast("Observable[Any]", value))
        if inspect.isgenerator(value):
            return _streamed(_from_iterator(cast("Iterable[Any]", value), self.context, self.what))
        if inspect.isawaitable(value):
            awaited = from_awaitable(lambda: value, self.context.tasks, what=self.what)
            return awaited.pipe(ops.flat_map(self))
        if hasattr(value, "__aiter__"):
            items = cast("AsyncIterable[Any]", value)
            source = from_async_iterable(lambda: _until_result(items), self.context.tasks, what=self.what)
            return _streamed(source)
        final = ToolEmission(to_result(value), final=True)
        return reactivex.return_value(final, scheduler=ImmediateScheduler.singleton())


async def _until_result(items: AsyncIterable[Any]) -> AsyncIterator[Any]:
    """``items`` up to a ``ToolResult``, which comes out once the source has cleaned up behind itself."""
    source = aiter(items)
    result: ToolResult | None = None
    try:
        async for item in source:
            if isinstance(item, ToolResult):
                result = item
                break
            yield item
    finally:
        if (close := getattr(source, "aclose", None)) is not None:
            await close()
    if result is not None:
        yield result


def _from_iterator(items: Iterable[Any], context: ToolContext[Any], what: str) -> Observable[Any]:
    """The items of a generator up to a ``ToolResult``, drawn in a worker thread where there is a loop."""

    def subscribe(
        observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        stopped = Disposable()

        def draw() -> None:
            result: ToolResult | None = None
            try:
                for item in items:
                    # Without a loop the draw is over before the subscription exists: the signal has to tell.
                    if stopped.is_disposed or context.signal.aborted:
                        return
                    if isinstance(item, ToolResult):
                        result = item
                        break
                    observer.on_next(item)
                    if stopped.is_disposed or context.signal.aborted:
                        return
            finally:
                if (close := getattr(items, "close", None)) is not None:
                    close()
            if result is not None:
                observer.on_next(result)

        work = in_worker_thread(draw, name=f"rx_agent {what}").subscribe(
            on_error=observer.on_error, on_completed=observer.on_completed, scheduler=scheduler
        )
        return CompositeDisposable(stopped, work)

    return Observable(subscribe)


_NOTHING_YET: Notification[ToolEmission] = OnNext(ToolEmission(ToolResult()))


def _streamed(source: Observable[Any]) -> Observable[ToolEmission]:
    """Plain items are partial results; a ``ToolResult`` is the end, without one the last item becomes it."""

    def close(
        before: Notification[ToolEmission], now: Notification[ToolEmission]
    ) -> Notification[ToolEmission]:
        if now.kind == "C" and isinstance(before, OnNext) and not before.value.final:
            return OnNext(replace(before.value, final=True))
        return now

    return source.pipe(
        ops.map(lambda item: ToolEmission(to_result(item), final=isinstance(item, ToolResult))),
        ops.take_while(lambda emission: not emission.final, inclusive=True),
        ops.materialize(),
        ops.scan(close, _NOTHING_YET),
        ops.dematerialize(),
    )


# --- one execution -----------------------------------------------------------------------------------------


def execution(
    start: Callable[[ToolContext[Any]], Observable[ToolEmission]],
    context: ToolContext[Any],
    *,
    tool_name: str,
    timeout: float | None,
) -> Observable[ToolEmission]:
    """``start(context)`` with ``context.update`` mixed in and ``timeout`` (seconds) watched, on one thread.

    An ``Observable(subscribe)``, since RxPY's ``merge`` and ``observe_on`` would each cost a virtual tick.
    """

    def subscribe(
        observer: abc.ObserverBase[ToolEmission], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        on = scheduler or default_scheduler()
        running = _Execution(observer, loop_of(on))
        running.own(context.signal.subscribe(running.signal.set))
        own_context = context.bound(running.announce, running.signal)
        body = SerialDisposable()
        running.own(body)
        try:
            started = start(own_context).subscribe(running.put_next, running.put_error, scheduler=on)
        except BaseException as error:
            running.put_error(as_exception(error, f"tool {tool_name!r}"))
        else:
            body.disposable = guarded(started, f"tool {tool_name!r}")
        # Behind the body, so that one that ends right on time has not taken longer.
        if timeout is not None and not running.ended:

            def time_out(*_: Any) -> None:
                running.stop_with(
                    ToolTimeoutError(
                        f'Tool "{tool_name}" was stopped: it took longer than {timeout:g} s. '
                        "It may have had effects."
                    )
                )

            running.own(on.schedule_relative(timeout, time_out))
        return Disposable(running.stop)

    return Observable(subscribe)


class _Execution:
    """Brings what the body and its updates say to one observer, in order, on the run's thread, to the end."""

    def __init__(
        self, observer: abc.ObserverBase[ToolEmission], loop: asyncio.AbstractEventLoop | None
    ) -> None:
        self.signal = AbortSignal()
        self.ended = False
        self._observer = observer
        self._loop = loop
        self._owned = CompositeDisposable()
        self._waiting: deque[Notification[ToolEmission]] = deque()
        self._lock = threading.Lock()
        self._delivering = False
        self._verdict: OnError[ToolEmission] | None = None

    def own(self, resource: abc.DisposableBase) -> None:
        """Disposes ``resource`` at the end."""
        self._owned.add(resource)

    def announce(self, result: ToolResult) -> None:
        """A partial result, from any thread."""
        self._put(OnNext(ToolEmission(result)))

    def put_next(self, emission: ToolEmission) -> None:
        self._put(OnNext(emission))

    def put_error(self, error: Exception) -> None:
        self._put(OnError(error))

    def stop(self) -> None:
        """Ends without a word, and tells the body."""
        if not self.ended:
            self.ended = True
            self.signal.set()
        self._owned.dispose()

    def stop_with(self, error: Exception) -> None:
        """Ends with ``error``, the body being stopped first; what it says to that is not heard any more."""
        if not self.ended:
            self._verdict = OnError(error)
            self.signal.set()
            self._owned.dispose()
            self._put(self._verdict)

    def _put(self, notification: Notification[ToolEmission]) -> None:
        # Everything passes through one queue: what comes directly cannot overtake what is still hopping.
        self._waiting.append(notification)
        if self._loop is None or _is_running(self._loop):
            self._deliver()
        else:
            hop(self._loop, self._deliver)

    def _deliver(self) -> None:
        with self._lock:
            if self._delivering:  # whoever is at it takes this one too
                return
            self._delivering = True
        while True:
            with self._lock:
                if not self._waiting:
                    self._delivering = False
                    return
                notification = self._waiting.popleft()
            try:
                self._hand_over(notification)
            except BaseException:
                self._delivering = False
                raise

    def _hand_over(self, notification: Notification[ToolEmission]) -> None:
        if self.ended:
            return
        notification = self._verdict or notification
        final = isinstance(notification, OnNext) and notification.value.final
        self.ended = final or notification.kind == "E"
        notification.accept(self._observer)
        if final:
            self._observer.on_completed()


def _is_running(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether this thread is the one that runs ``loop``."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
