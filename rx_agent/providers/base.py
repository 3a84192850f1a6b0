"""The contract between the loop and a provider."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from reactivex import Observable

from rx_agent.asyncio_edge import TaskScope
from rx_agent.events import AssistantMessageEvent
from rx_agent.messages import Message
from rx_agent.models import Model, ThinkingLevel


class ToolSpec(Protocol):
    """What a provider needs to know of a tool."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]:
        """A JSON schema of type object."""
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """What one request says: already converted to what a model understands, not yet to a wire format."""

    system_prompt: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()


@dataclass(frozen=True, slots=True)
class ProviderResponse:
    """What ``on_response`` is shown once the response's head is there."""

    status: int
    headers: Mapping[str, str]


OnPayload: TypeAlias = Callable[[dict[str, Any]], Any]
"""May change the payload in place or return another; may also return an awaitable or an observable of it."""
OnResponse: TypeAlias = Callable[[ProviderResponse], Any]
Transport: TypeAlias = Literal["sse", "auto"]
CacheRetention: TypeAlias = Literal["none", "short", "long"]
"""How long a provider shall keep a prompt in its cache: not at all, minutes, or an hour and more."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait, in seconds; None waits for ever."""

    connect: float | None = 15.0
    first_byte: float | None = 300.0
    """From the request to the response's first byte (a big local model may read a long prompt for minutes)."""
    idle: float | None = 120.0
    """Between two pieces of a stream that has begun."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How one request is to be made; everything that is neither model nor content.

    ``api_key`` never shows in ``repr``. ``max_retry_delay_ms``: the longest ``Retry-After`` that is waited for
    (milliseconds; 0 waits for any). ``tool_choice``: ``"auto"``, ``"none"``, ``"required"`` or a tool's name.
    ``session_id`` names the conversation, for APIs that cache or route by it. ``cache_retention`` counts where
    caching is asked for in the request. ``extra_body`` is merged into the payload last. ``ready`` is
    backpressure: an HTTP pump awaits what it returns (None: go on) before it reads the next piece. ``tasks`` owns
    the asyncio tasks that a provider starts.
    """

    api_key: str | None = field(default=None, repr=False)
    thinking_level: ThinkingLevel = ThinkingLevel.OFF
    thinking_budgets: Mapping[ThinkingLevel, int] = field(default_factory=dict[ThinkingLevel, int])
    max_tokens: int | None = None
    temperature: float | None = None
    tool_choice: str | None = None
    session_id: str | None = None
    cache_retention: CacheRetention = "short"
    transport: Transport = "auto"
    max_retries: int = 2
    max_retry_delay_ms: int = 60_000
    timeouts: Timeouts = field(default_factory=Timeouts)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    extra_body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    on_payload: OnPayload | None = None
    on_response: OnResponse | None = None
    ready: Callable[[], Awaitable[None] | None] | None = field(default=None, repr=False)
    tasks: TaskScope = field(default_factory=TaskScope, repr=False)


class StreamFunction(Protocol):
    """``(model, context, options) -> Observable[AssistantMessageEvent]``, cold.

    Subscribing sends the request, disposing closes it. The stream is ``start``, block events, then one ``done``
    or ``error``, then completion. A request, model or network failure is an ``error`` event with a final
    message, never ``on_error``. Delays and timestamps read the scheduler that it is subscribed with.
    """

    def __call__(
        self, model: Model, context: Context, options: StreamOptions, /
    ) -> Observable[AssistantMessageEvent]: ...
