"""The one pump between HTTP and events, shared by all wire APIs: sends a request, reads, retries, closes.

A wire API gives a :class:`WireApi`: how its request looks and how its events are decoded. Everything that
waits or can break is here. Each request has a client of its own that is closed with it: about 1.5 ms and a
handshake, and no pool whose connections outlive an event loop. What is expensive about a client, the TLS
context, is made once.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import reactivex
from reactivex import Observable, abc
from reactivex import operators as ops
from reactivex.disposable import Disposable
from reactivex.scheduler import ImmediateScheduler

from rx_agent.asyncio_edge import hop, loop_of
from rx_agent.errors import ConfigurationError, NoEventLoopError
from rx_agent.events import AssistantMessageEvent, DoneEvent, ErrorEvent
from rx_agent.models import Model
from rx_agent.providers.base import Context, ProviderResponse, StreamOptions
from rx_agent.providers.http_errors import (
    Failure,
    Target,
    Wait,
    http_failure,
    network_failure,
    timeout_failure,
)
from rx_agent.providers.http_request import BrokenError, Exchange, WireApi, WireRequest
from rx_agent.providers.retry import (
    BackOff,
    FinalFailure,
    RetryableFailure,
    retry_after_seconds,
    retry_with,
)
from rx_agent.providers.sse import SseReader
from rx_agent.providers.stream_decoder import MalformedEventError
from rx_agent.reporting import reason_of

MAX_ERROR_BODY = 64 * 1024
ERROR_BODY_PATIENCE = 5.0
"""Seconds for the body of an error response, which is only its explanation."""
LATE = 1.05
"""Idle timers are moved only once 5 % of their time has passed, and so may fire that much late: a timer is
not re-armed at every piece."""


def pump(
    api: WireApi, model: Model, context: Context, options: StreamOptions
) -> Observable[AssistantMessageEvent]:
    """The events of one answer, cold: subscribing sends the request, disposing closes the connection at once.

    Needs the scheduler of an event loop and signals ``NoEventLoopError`` without one. Everything else that
    goes wrong is an ``error`` event. Before the first event of an answer, what is safe to repeat is repeated.
    """
    if options.transport not in ("sse", "auto"):
        reason = f"transport {options.transport!r} is unknown here; use 'sse' or 'auto'"
        return reactivex.throw(ConfigurationError(reason))
    back_off = BackOff(max_retries=options.max_retries, max_delay_ms=options.max_retry_delay_ms)

    def subscribe(
        observer: abc.ObserverBase[AssistantMessageEvent], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        exchange = Exchange(api, model, context, options)

        def give_up(error: Exception, _: Any) -> Observable[AssistantMessageEvent]:
            if not isinstance(error, FinalFailure):
                return reactivex.throw(error, scheduler=_NOW)
            return reactivex.from_iterable(exchange.decoder().fail(error.failure), scheduler=_NOW)

        answer = _attempt(exchange).pipe(retry_with(back_off), ops.catch(give_up))
        # What `defer` does, but that it wraps the observer, which is wrapped already, once more: a cost at every
        # delta.
        return answer._subscribe_core(observer, scheduler)  # pyright: ignore[reportPrivateUsage]

    return Observable(subscribe)


_NOW = ImmediateScheduler.singleton()


def _attempt(exchange: Exchange) -> Observable[AssistantMessageEvent]:
    def subscribe(
        observer: abc.ObserverBase[AssistantMessageEvent], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        loop = loop_of(scheduler)
        if loop is None:
            observer.on_error(
                NoEventLoopError(
                    f"{exchange.model.provider} is asked over HTTP, which needs an event loop, and the run's "
                    "scheduler has none. Use `await agent.prompt(...)` in async code, or "
                    "`agent.prompt_sync(...)` in a script."
                )
            )
            return Disposable()
        attempt = _Attempt(exchange, observer, scheduler)
        task = exchange.options.tasks.spawn(loop, attempt.run())

        def dispose() -> None:
            attempt.disposed = True
            if attempt.emitting or attempt.leaving:
                return  # it looks at `disposed` itself, and a cancel would disturb its closing
            if _runs_here(loop):
                task.cancel()
            else:
                hop(loop, task.cancel)

        return Disposable(dispose)

    return Observable(subscribe)


def _redacted(event: AssistantMessageEvent, target: Target) -> AssistantMessageEvent:
    """The event, with the key cut out of an error that the server may have written it into."""
    if not isinstance(event, ErrorEvent) or not event.message.error_message:
        return event
    text = target.redact(event.message.error_message)
    return ErrorEvent(event.message.model_copy(update={"error_message": text}))


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class _Attempt:
    """One request and its response."""

    def __init__(
        self,
        exchange: Exchange,
        observer: abc.ObserverBase[AssistantMessageEvent],
        scheduler: abc.SchedulerBase | None,
    ) -> None:
        self.exchange = exchange
        self.observer = observer
        self.scheduler = scheduler
        self.disposed = False
        self.emitting = False
        """Stays true where the observer raised."""
        self.leaving = False
        """The exchange is over and the connection is being closed."""
        self.told_end = False
        self.waiting_for: Wait = "first_byte"
        self.decoder = exchange.decoder()

    async def run(self) -> None:
        """Ends the observer exactly once, after the connection has been closed."""
        failure: Failure | None = None
        try:
            await self._exchange_once()
        except BrokenError as broken:
            failure = broken.failure
        except Exception as error:
            if self.emitting:
                raise  # an observer's own exception, which is reported as such
            failure = self._broke_off(error)
        except asyncio.CancelledError as error:
            if self.emitting or self.disposed or _being_cancelled():
                raise
            failure = self._broke_off(error)  # of something that a hook or the network looked at
        finally:
            self.leaving = True
        if self.disposed:
            return
        if failure is not None and failure.retryable and not self.decoder.started:
            self.observer.on_error(RetryableFailure(failure))
            return
        if failure is not None and not self.told_end and not self._emit(self._closing(failure)):
            return
        self.observer.on_completed()

    def _broke_off(self, error: BaseException) -> Failure:
        text = f"{type(error).__name__}: {reason_of(error)}"
        return Failure(self.exchange.target.redact(f"The request broke off: {text}"))

    def _closing(self, failure: Failure) -> list[AssistantMessageEvent]:
        if not self.decoder.ended:
            try:
                return self.decoder.break_off(failure)
            except Exception as error:
                failure = self._broke_off(error)
        # It broke in its very last step: what came stands, what it counted is not to be had.
        return self.decoder.abandon(failure)

    async def _exchange_once(self) -> None:
        wire, body = await self.exchange.prepared(self.scheduler)
        async with self._client() as client:
            request = self._request(client, wire, body)
            response: httpx.Response | None = None
            watch = asyncio.timeout(self.exchange.options.timeouts.first_byte)
            try:
                async with watch:
                    response = await self._send(client, request)
                    await self._respond(response, watch)
            except TimeoutError as error:
                if not watch.expired():
                    raise
                raise BrokenError(self._timed_out()) from error
            finally:
                self.leaving = True
                if response is not None:
                    await response.aclose()

    def _client(self) -> httpx.AsyncClient:
        timeouts = self.exchange.options.timeouts
        return httpx.AsyncClient(
            verify=tls_context(),
            follow_redirects=False,
            timeout=httpx.Timeout(None, connect=timeouts.connect),
        )

    def _request(self, client: httpx.AsyncClient, wire: WireRequest, body: bytes) -> httpx.Request:
        headers = {
            "accept": "text/event-stream",
            # Compressed streams come in bursts: the server's compressor holds deltas back.
            "accept-encoding": "identity",
            "content-type": "application/json",
            **wire.headers,
        }
        for name, value in headers.items():
            # Checked here, for the exceptions of httpx and h11 show the value, and it may be the key.
            if not (value.isascii() and value.isprintable()):
                text = f"The header {name!r} holds characters that no header can; is the key copied right?"
                raise BrokenError(Failure(text, "invalid_request"))
        try:
            return client.build_request("POST", wire.url, headers=headers, content=body)
        except (httpx.InvalidURL, ValueError) as error:
            text = f"The request to {wire.url} cannot be made: {error}"
            raise BrokenError(Failure(self.exchange.target.redact(text), "invalid_request")) from error

    async def _send(self, client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
        try:
            return await client.send(request, stream=True)
        except httpx.ConnectTimeout as error:
            self.waiting_for = "connect"
            raise BrokenError(self._timed_out()) from error
        except httpx.HTTPError as error:
            raise BrokenError(self._network(error)) from error

    async def _respond(self, response: httpx.Response, watch: asyncio.Timeout) -> None:
        exchange = self.exchange
        headers = {name: exchange.target.redact(value) for name, value in response.headers.items()}
        if (on_response := exchange.options.on_response) is not None:
            shown = ProviderResponse(response.status_code, headers)
            loop, deadline = asyncio.get_running_loop(), watch.when()
            asked = loop.time()
            watch.reschedule(None)
            await exchange.hook("on_response", lambda: on_response(shown), self.scheduler)
            # A slow hook is not a slow server.
            watch.reschedule(None if deadline is None else deadline + loop.time() - asked)
        is_page = headers.get("content-type", "").startswith("text/html")
        if not response.is_success or is_page:
            watch.reschedule(None)
            body = await self._error_body(response)
            failure = http_failure(response.status_code, headers, body, exchange.target)
            if response.is_success:
                raise BrokenError(
                    Failure(f"{failure.text} Instead of an answer came a web page: check the base_url.")
                )
            wait = retry_after_seconds(headers, time.time())
            raise BrokenError(Failure(failure.text, failure.kind, failure.retryable, wait))
        await self._stream(response, watch)

    async def _error_body(self, response: httpx.Response) -> bytes:
        body = b""
        pieces = response.aiter_bytes()
        try:
            async with asyncio.timeout(ERROR_BODY_PATIENCE):
                while len(body) < MAX_ERROR_BODY and (piece := await anext(pieces, None)) is not None:
                    body += piece
        except (httpx.HTTPError, TimeoutError):
            pass  # the status alone tells enough; a broken body must not hide it
        finally:
            await self._leave(pieces)
        return body

    async def _leave(self, pieces: AsyncIterator[bytes]) -> None:
        """Ends the read without waiting for the server to end its answer.

        The read is half a dozen generators inside each other. Closing the outermost would leave the others to the
        garbage collector and its tasks; a cancellation reaches the innermost and unwinds them all.
        """
        self.leaving = True
        try:
            async with asyncio.timeout(0):
                while await anext(pieces, None) is not None:
                    pass
        except (TimeoutError, httpx.HTTPError):
            pass  # what is left of an answer that is over does not matter

    async def _stream(self, response: httpx.Response, watch: asyncio.Timeout) -> None:
        loop = asyncio.get_running_loop()
        idle = self.exchange.options.timeouts.idle
        ready = self.exchange.options.ready
        reader = SseReader()
        armed = 0.0
        pieces = response.aiter_bytes()
        try:
            while (piece := await self._next(pieces)) is not None:
                if not self._take(piece, reader):
                    return
                if ready is not None and (wait := ready()) is not None:
                    # A slow listener is not an idle server.
                    watch.reschedule(None)
                    armed = 0.0
                    await wait
                if idle is None:
                    watch.reschedule(None)
                elif (now := loop.time()) - armed > idle * (LATE - 1):
                    armed = now
                    self.waiting_for = "idle"
                    watch.reschedule(now + idle * LATE)
        finally:
            await self._leave(pieces)
        self._end(reader)

    def _take(self, piece: bytes, reader: SseReader) -> bool:
        """Emits what ``piece`` completes; whether there is more to read."""
        decoder = self.decoder
        events: list[AssistantMessageEvent] = []
        try:
            for event in reader.feed(piece):
                events += decoder.feed(event)
                if decoder.ended:
                    break
        except MalformedEventError as error:
            events += decoder.fail(Failure(str(error), "network"))
        except Exception:
            if events and not self._emit(events):
                return False
            raise
        return (not events or self._emit(events)) and not decoder.ended

    def _end(self, reader: SseReader) -> None:
        decoder = self.decoder
        for event in reader.close():
            try:
                events = decoder.feed(event)
            except MalformedEventError:
                break  # cut off in the middle, which `finish` says
            if not self._emit(events) or decoder.ended:
                return
        self._emit(decoder.finish(reader.stray))

    async def _next(self, pieces: AsyncIterator[bytes]) -> bytes | None:
        try:
            return await anext(pieces, None)
        except httpx.HTTPError as error:
            raise BrokenError(self._network(error)) from error

    def _emit(self, events: list[AssistantMessageEvent]) -> bool:
        """Whether anybody still listens afterwards."""
        if self.decoder.ended:
            self.told_end = any(isinstance(event, DoneEvent | ErrorEvent) for event in events)
            events = [_redacted(event, self.exchange.target) for event in events]
        self.emitting = True
        on_next = self.observer.on_next
        for event in events:
            if self.disposed:
                break
            on_next(event)
        self.emitting = False
        return not self.disposed

    def _network(self, error: httpx.HTTPError) -> Failure:
        refused = isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError)
        reason = reason_of(error)
        return network_failure(reason, self.exchange.target, started=self.decoder.started, unsendable=refused)

    def _timed_out(self) -> Failure:
        seconds = getattr(self.exchange.options.timeouts, self.waiting_for)
        return timeout_failure(self.waiting_for, seconds, self.exchange.target)


@functools.cache
def tls_context() -> ssl.SSLContext:
    """The TLS settings of all requests: certificates are verified; ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` count.

    Made at the first request: reading the certificates takes about 30 ms.
    """
    return httpx.create_ssl_context()
