"""The Messages API of Anthropic (https://docs.anthropic.com/en/api/messages), also spoken by some others.

``stream(model, context, options).subscribe(print, scheduler=AsyncIOScheduler(loop))`` sends a request; with
``model = Model.of("anthropic:claude-sonnet-4-5")`` it goes to Anthropic, with the key in
``ANTHROPIC_API_KEY``.
"""

from __future__ import annotations

from dataclasses import replace

from reactivex import Observable

from rx_agent.events import AssistantMessageEvent
from rx_agent.models import Model
from rx_agent.providers.anthropic.decoder import AnthropicDecoder
from rx_agent.providers.anthropic.profiles import INTERLEAVED, profile_of
from rx_agent.providers.anthropic.request import anthropic_payload
from rx_agent.providers.base import Context, StreamOptions
from rx_agent.providers.endpoint import endpoint
from rx_agent.providers.http_pump import pump
from rx_agent.providers.http_request import WireRequest

__all__ = ["Anthropic", "stream"]

VERSION = "2023-06-01"


class Anthropic:
    """The :class:`~rx_agent.providers.base.StreamFunction` of this API."""

    needs_event_loop = True
    """Cannot run in virtual time or without a loop: it speaks HTTP."""

    def __call__(
        self, model: Model, context: Context, options: StreamOptions, /
    ) -> Observable[AssistantMessageEvent]:
        """The events of one answer, cold; see :func:`~rx_agent.providers.http_pump.pump`."""
        return pump(self, model, context, options)

    def request(self, model: Model, context: Context, options: StreamOptions) -> WireRequest:
        """The POST to ``base_url/messages``. Raises ``ValueError`` where no base URL is known.

        The key goes as ``x-api-key``; an ``authorization`` header of the model or the request (an access
        token, a gateway's key) does instead. An ``anthropic-beta`` header of theirs is sent as well.
        """
        payload = anthropic_payload(model, context, options)
        place = endpoint(model, options, "messages", key_header="x-api-key", scheme="")
        own = {name.lower(): name for name in place.headers}
        if "authorization" in own:
            place = replace(place, needs_key=False)
        if "anthropic-version" not in own:
            place.headers["anthropic-version"] = VERSION
        if "budget_tokens" in (payload.fields.get("thinking") or ()) and profile_of(model).interleaves:
            name = own.get("anthropic-beta", "anthropic-beta")
            given = [part for part in place.headers.get(name, "").split(",") if part.strip()]
            place.headers[name] = ",".join([*given, INTERLEAVED])
        return place.post(payload)

    def decoder(self, model: Model, *, timestamp: int) -> AnthropicDecoder:
        """A fresh decoder."""
        return AnthropicDecoder(model, timestamp=timestamp)


stream = Anthropic()
"""Asks a model over the Messages API."""
