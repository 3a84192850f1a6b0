"""The Responses API (https://platform.openai.com/docs/api-reference/responses), spoken by OpenAI and some others.

``stream(model, context, options).subscribe(print, scheduler=AsyncIOScheduler(loop))`` sends a request; with
``model = Model.of("openai:gpt-5-mini")`` it goes to OpenAI, with the key in ``OPENAI_API_KEY``. Nothing is
stored there: reasoning goes back and forth encrypted.
"""

from __future__ import annotations

from reactivex import Observable

from rx_agent.events import AssistantMessageEvent
from rx_agent.models import Model
from rx_agent.providers.base import Context, StreamOptions
from rx_agent.providers.endpoint import endpoint
from rx_agent.providers.http_pump import pump
from rx_agent.providers.http_request import WireRequest
from rx_agent.providers.openai_responses.decoder import ResponsesDecoder
from rx_agent.providers.openai_responses.request import responses_payload

__all__ = ["OpenAIResponses", "stream"]


class OpenAIResponses:
    """The :class:`~rx_agent.providers.base.StreamFunction` of this API."""

    needs_event_loop = True
    """Cannot run in virtual time or without a loop: it speaks HTTP."""

    def __call__(
        self, model: Model, context: Context, options: StreamOptions, /
    ) -> Observable[AssistantMessageEvent]:
        """The events of one answer, cold; see :func:`~rx_agent.providers.http_pump.pump`."""
        return pump(self, model, context, options)

    def request(self, model: Model, context: Context, options: StreamOptions) -> WireRequest:
        """The POST to ``base_url/responses``. Raises ``ValueError`` where no base URL is known and for a tool
        name that the API takes not.
        """
        return endpoint(model, options, "responses").post(responses_payload(model, context, options))

    def decoder(self, model: Model, *, timestamp: int) -> ResponsesDecoder:
        """A fresh decoder."""
        return ResponsesDecoder(model, timestamp=timestamp)


stream = OpenAIResponses()
"""Asks a model over the Responses API."""
