"""A request as a wire API wants it, and what is done to it once however often it is sent: build, hook, encode."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from reactivex import Observable, abc

from rx_agent.models import Model
from rx_agent.providers.base import Context, StreamOptions
from rx_agent.providers.http_errors import Failure, Target, missing_key, secrets_in
from rx_agent.providers.stream_decoder import StreamDecoder
from rx_agent.providers.wire_json import WirePayload, wire_json
from rx_agent.reporting import reason_of


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A POST as a wire API wants it. ``key`` is part of ``headers``; None where a key is needed and missing."""

    url: str
    payload: WirePayload
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    key: str | None = field(default=None, repr=False)
    key_variable: str | None = None
    needs_key: bool = False


class WireApi(Protocol):
    """What differs between wire APIs."""

    def request(self, model: Model, context: Context, options: StreamOptions) -> WireRequest:
        """The request. A ``ValueError`` becomes an error of kind ``invalid_request``."""
        ...

    def decoder(self, model: Model, *, timestamp: int) -> StreamDecoder:
        """A fresh decoder for one response."""
        ...


class BrokenError(Exception):
    """The exchange cannot go on."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


class Exchange:
    """One request, whatever number of attempts it takes: what is prepared once."""

    def __init__(self, api: WireApi, model: Model, context: Context, options: StreamOptions) -> None:
        self.api = api
        self.model = model
        self.context = context
        self.options = options
        self.target = Target(model.provider, model.id, secrets=secrets_in({}, options.api_key))
        self._prepared: tuple[WireRequest, bytes] | None = None

    def decoder(self) -> StreamDecoder:
        # The pump stands at the edge and has a real loop, whose own clock counts from no date.
        return self.api.decoder(self.model, timestamp=round(time.time() * 1000))

    async def prepared(self, scheduler: abc.SchedulerBase | None) -> tuple[WireRequest, bytes]:
        """The request and its body, made and shown to ``on_payload`` at the first attempt only."""
        if self._prepared is None:
            try:
                request = self.api.request(self.model, self.context, self.options)
            except ValueError as error:
                raise BrokenError(Failure(self.target.redact(str(error)), "invalid_request")) from error
            self.target = Target(
                self.model.provider,
                self.model.id,
                request.url,
                request.key_variable,
                secrets_in(request.headers, request.key, self.options.api_key),
            )
            if request.needs_key and not request.key:
                raise BrokenError(missing_key(self.target))
            self._prepared = request, await self._body(request, scheduler)
        return self._prepared

    async def _body(self, request: WireRequest, scheduler: abc.SchedulerBase | None) -> bytes:
        on_payload = self.options.on_payload
        try:
            if on_payload is None:
                return request.payload.to_bytes()
            payload = request.payload.to_dict()
        except ValueError as error:
            reason = f"The request cannot be written as JSON: {error}"
            raise BrokenError(Failure(self.target.redact(reason), "invalid_request")) from error
        changed = await self.hook("on_payload", lambda: on_payload(payload), scheduler)
        if changed is not None and not isinstance(changed, dict):
            raise BrokenError(
                Failure(f"on_payload returned {type(changed).__name__}; return a dict or None", "unknown")
            )
        try:
            return wire_json(payload if changed is None else changed)
        except ValueError as error:
            reason = f"What on_payload made cannot be written as JSON: {error}"
            raise BrokenError(Failure(self.target.redact(reason), "invalid_request")) from error

    async def hook(self, name: str, call: Callable[[], Any], scheduler: abc.SchedulerBase | None) -> Any:
        """What the hook answers, awaited or observed to its last item where it must be."""
        try:
            answer = call()
            if isinstance(answer, Observable):
                return await _last(cast("Observable[Any]", answer), scheduler)
            return await cast("Awaitable[Any]", answer) if isinstance(answer, Awaitable) else answer
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise BrokenError(Failure(f"The {name} hook was cancelled from inside")) from error
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            reason = f"The {name} hook raised {type(error).__name__}: {reason_of(error)}"
            raise BrokenError(Failure(self.target.redact(reason))) from error


async def _last(source: Observable[Any], scheduler: abc.SchedulerBase | None) -> Any:
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    seen: list[Any] = [None]

    def settle(set_outcome: Callable[[Any], None], outcome: Any) -> None:
        if not future.done():
            set_outcome(outcome)

    subscription = source.subscribe(
        lambda item: seen.__setitem__(0, item),
        lambda error: settle(future.set_exception, error),
        lambda: settle(future.set_result, seen[0]),
        scheduler=scheduler,
    )
    try:
        return await future
    finally:
        subscription.dispose()
