"""The Chat Completions API (https://platform.openai.com/docs/api-reference/chat), spoken by OpenAI and many others.

``stream(model, context, options).subscribe(print, scheduler=AsyncIOScheduler(loop))`` sends a request; with
``model = Model.of("ollama:llama3.2:3b")`` it goes to Ollama on this machine.
"""

from __future__ import annotations

from reactivex import Observable

from rx_agent.events import AssistantMessageEvent
from rx_agent.models import Model
from rx_agent.providers.base import Context, StreamOptions
from rx_agent.providers.endpoint import endpoint
from rx_agent.providers.http_pump import pump
from rx_agent.providers.http_request import WireRequest
from rx_agent.providers.openai_chat.decoder import ChatDecoder
from rx_agent.providers.openai_chat.request import chat_payload

__all__ = ["OpenAIChat", "stream"]


class OpenAIChat:
    """The :class:`~rx_agent.providers.base.StreamFunction` of this API."""

    needs_event_loop = True
    """Cannot run in virtual time or without a loop: it speaks HTTP."""

    def __call__(
        self, model: Model, context: Context, options: StreamOptions, /
    ) -> Observable[AssistantMessageEvent]:
        """The events of one answer, cold; see :func:`~rx_agent.providers.http_pump.pump`."""
        return pump(self, model, context, options)

    def request(self, model: Model, context: Context, options: StreamOptions) -> WireRequest:
        """The POST to ``base_url/chat/completions``. Raises ``ValueError`` where no base URL is known."""
        return endpoint(model, options, "chat/completions").post(chat_payload(model, context, options))

    def decoder(self, model: Model, *, timestamp: int) -> ChatDecoder:
        """A fresh decoder."""
        return ChatDecoder(model, timestamp=timestamp)


stream = OpenAIChat()
"""Asks a model over Chat Completions."""
