"""The Chat Completions API (https://platform.openai.com/docs/api-reference/chat), spoken by OpenAI and many others.

``stream(model, context, options).subscribe(print, scheduler=AsyncIOScheduler(loop))`` sends a request; with
``model = resolve_model("ollama:llama3.2:3b")`` it goes to Ollama on this machine.
"""

from __future__ import annotations

import os

from reactivex import Observable

from rx_agent.events import AssistantMessageEvent
from rx_agent.models import Model
from rx_agent.providers.base import Context, StreamOptions
from rx_agent.providers.catalog import vendor_of
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
        vendor = vendor_of(model.provider)
        base_url = model.base_url or (vendor.base_url if vendor else "")
        if not base_url:
            raise ValueError(
                f"Model {model.id!r} of provider {model.provider!r} has no base_url; give it one."
            )
        variable = vendor.key_variable if vendor else None
        key = (options.api_key or (os.environ.get(variable) if variable else None) or "").strip() or None
        headers = {**model.headers, **options.headers}
        if key and not any(name.lower() == "authorization" for name in headers):
            headers["authorization"] = f"Bearer {key}"
        address, mark, query = base_url.partition("?")
        return WireRequest(
            url=f"{address.rstrip('/')}/chat/completions{mark}{query}",
            payload=chat_payload(model, context, options),
            headers=headers,
            key=key,
            key_variable=variable,
            # Whoever runs a server of their own, or sends other headers, knows whether it wants a key.
            needs_key=(
                vendor is not None
                and vendor.needs_key
                and base_url == vendor.base_url
                and "authorization" not in map(str.lower, headers)
            ),
        )

    def decoder(self, model: Model, *, timestamp: int) -> ChatDecoder:
        """A fresh decoder."""
        return ChatDecoder(model, timestamp=timestamp)


stream = OpenAIChat()
"""Asks a model over Chat Completions."""
