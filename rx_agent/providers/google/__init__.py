"""The Gemini API (https://ai.google.dev/api/generate-content), spoken by Google AI and by Vertex AI.

``stream(model, context, options).subscribe(print, scheduler=AsyncIOScheduler(loop))`` sends a request; with
``model = Model.of("google:gemini-2.5-flash")`` it goes to Google AI, with the key in ``GEMINI_API_KEY``.
Vertex AI is a model with the ``base_url`` of its ``publishers/google`` and an ``authorization`` header.
"""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

from reactivex import Observable

from rx_agent.events import AssistantMessageEvent
from rx_agent.models import Model
from rx_agent.providers.base import Context, StreamOptions
from rx_agent.providers.endpoint import endpoint
from rx_agent.providers.google.decoder import GoogleDecoder
from rx_agent.providers.google.request import google_payload
from rx_agent.providers.http_pump import pump
from rx_agent.providers.http_request import WireRequest

__all__ = ["Google", "stream"]


class Google:
    """The :class:`~rx_agent.providers.base.StreamFunction` of this API."""

    needs_event_loop = True
    """Cannot run in virtual time or without a loop: it speaks HTTP."""

    def __call__(
        self, model: Model, context: Context, options: StreamOptions, /
    ) -> Observable[AssistantMessageEvent]:
        """The events of one answer, cold; see :func:`~rx_agent.providers.http_pump.pump`."""
        return pump(self, model, context, options)

    def request(self, model: Model, context: Context, options: StreamOptions) -> WireRequest:
        """The POST to ``base_url/models/{id}:streamGenerateContent``; an id with a slash (``tunedModels/mine``)
        is the whole path.

        The key goes as ``x-goog-api-key``, never in the address, which logs keep; an ``authorization`` header of
        the model or the request (an access token of Vertex AI) does instead. Raises ``ValueError`` where no base
        URL is known and for a tool name that the API takes not.

        >>> model = Model(id="gemini-2.5-flash", api="google", provider="google")
        >>> stream.request(model, Context("", []), StreamOptions()).url.rpartition("/")[2]
        'gemini-2.5-flash:streamGenerateContent?alt=sse'
        """
        name = quote(model.id if "/" in model.id else f"models/{model.id}", safe="/@:")
        place = endpoint(
            model, options, f"{name}:streamGenerateContent?alt=sse", key_header="x-goog-api-key", scheme=""
        )
        if any(header.lower() == "authorization" for header in place.headers):
            place = replace(place, needs_key=False)
        return place.post(google_payload(model, context, options))

    def decoder(self, model: Model, *, timestamp: int) -> GoogleDecoder:
        """A fresh decoder."""
        return GoogleDecoder(model, timestamp=timestamp)


stream = Google()
"""Asks a model over the Gemini API."""
