"""What users hand to an agent, made into what it works with, or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeGuard, cast

from reactivex import abc

from rx_agent.errors import ConfigurationError
from rx_agent.messages import (
    AgentMessage,
    AssistantMessage,
    CustomMessage,
    ImageContent,
    TextContent,
    ToolResultMessage,
    UserMessage,
)
from rx_agent.models import Model
from rx_agent.providers.base import StreamFunction
from rx_agent.sequencing import now_ms
from rx_agent.tools import Tool, as_tool

PromptInput: TypeAlias = str | AgentMessage | Sequence[AgentMessage]
"""Text, a message, or a list of messages."""


def messages_of(
    input: PromptInput, images: Sequence[ImageContent] = (), scheduler: abc.SchedulerBase | None = None
) -> list[AgentMessage]:
    """The messages that ``input`` stands for; text gets the scheduler's time. Raises ``ConfigurationError``."""
    if isinstance(input, str):
        content = (TextContent(text=input), *images)
        return [UserMessage(content=content, timestamp=now_ms(scheduler))]
    messages = [input] if is_message(input) else list(_items(input))
    for message in messages:
        if not is_message(message):
            raise ConfigurationError(
                f"prompt: {message!r:.80} ({type(message).__name__}) is no text, message or list of messages"
            )
    if not messages:
        raise ConfigurationError("prompt: an empty list; give text, a message or a list of messages")
    if images:
        raise ConfigurationError("images: go with a text prompt; put them into the message's content here")
    return messages


_NO_LISTS: tuple[type, ...] = (bytes, dict)


def _items(given: object) -> Iterable[Any]:
    if hasattr(given, "__iter__") and not isinstance(given, _NO_LISTS):
        return cast("Iterable[Any]", given)
    raise ConfigurationError(
        f"prompt: {given!r:.80} ({type(given).__name__}) is no text, message or list of messages"
    )


def is_message(value: object) -> TypeGuard[AgentMessage]:
    """Whether ``value`` may stand in a transcript."""
    return isinstance(value, UserMessage | AssistantMessage | ToolResultMessage | CustomMessage)


def model_of(model: Model | None, stream_function: StreamFunction | None) -> Model:
    """``model``, or the one that the stream function brings. Raises ``ConfigurationError`` where neither is."""
    found = model or getattr(stream_function, "model", None)
    if not isinstance(found, Model):
        raise ConfigurationError(
            f"model: {found!r} is no Model; give Agent(model=...), for instance "
            'resolve_model("openai:gpt-5-mini") from rx_agent.providers.catalog, or a stream_function that '
            "brings its own, such as scripted([...])"
        )
    return found


def tools_of(tools: Iterable[Tool | Callable[..., Any]]) -> tuple[Tool, ...]:
    """``tools`` with functions made into tools. Raises ``ConfigurationError`` where two share a name."""
    made = tuple(as_tool(item) for item in tools)
    seen: set[str] = set()
    for item in made:
        if item.name in seen:
            raise ConfigurationError(
                f"tools: two are named {item.name!r}; give one another name with @tool(name=...)"
            )
        seen.add(item.name)
    return made
