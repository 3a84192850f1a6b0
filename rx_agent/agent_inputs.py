"""What users hand to an agent, made into what it works with, or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, TypeAlias, TypeGuard, TypeVar

from pydantic import BaseModel
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
    images = _images_of(images)
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


_NO_LISTS: tuple[type, ...] = (str, bytes, dict, BaseModel)


def _items(given: object) -> Iterable[Any]:
    if _is_iterable(given):
        return given
    hint = "; images go with a text: prompt(text, images=[...])" if isinstance(given, ImageContent) else ""
    raise ConfigurationError(
        f"prompt: {given!r:.80} ({type(given).__name__}) is no text, message or list of messages{hint}"
    )


def _is_iterable(given: object) -> TypeGuard[Iterable[Any]]:
    return hasattr(given, "__iter__") and not isinstance(given, _NO_LISTS)


def _images_of(given: object) -> tuple[ImageContent, ...]:
    if not _is_iterable(given):
        raise ConfigurationError(f"images: {given!r:.80} ({type(given).__name__}) is no list of ImageContent")
    images = tuple(given)
    for image in images:
        checked("images", image, ImageContent)
    return images


T = TypeVar("T")
Choice = TypeVar("Choice", bound=StrEnum)


def checked(name: str, value: object, kind: type[T]) -> T:
    """``value``, or a ``ConfigurationError`` that says which field is no ``kind``."""
    if not isinstance(value, kind):
        raise ConfigurationError(f"{name}: {value!r:.80} ({type(value).__name__}) is no {kind.__name__}")
    return value


def chosen(name: str, value: object, kind: type[Choice]) -> Choice:
    """``value`` as one of ``kind``'s, or a ``ConfigurationError`` that names the known ones.

    >>> from rx_agent.models import ThinkingLevel
    >>> chosen("thinking_level", "high", ThinkingLevel)
    <ThinkingLevel.HIGH: 'high'>
    """
    try:
        return kind(value)
    except ValueError as error:
        known = ", ".join(repr(str(item)) for item in kind)
        raise ConfigurationError(f"{name}: {value!r:.80} is unknown; known are {known}") from error


def hook_of(name: str, value: T) -> T:
    """``value``, or a ``ConfigurationError`` where it cannot be called."""
    if value is not None and not callable(value):
        raise ConfigurationError(
            f"{name}: {value!r:.80} ({type(value).__name__}) cannot be called; give a function, or None"
        )
    return value


def transcript_of(given: object) -> list[AgentMessage]:
    """``given`` as the messages it holds, or a ``ConfigurationError`` that says which is none."""
    if not _is_iterable(given):
        raise ConfigurationError(f"messages: {given!r:.80} ({type(given).__name__}) is no list of messages")
    messages = list(given)
    for place, message in enumerate(messages):
        if not is_message(message):
            raise ConfigurationError(
                f"messages: item {place}, {message!r:.80} ({type(message).__name__}), is no message; a user's "
                "text is UserMessage(content=text)"
            )
    return messages


def is_message(value: object) -> TypeGuard[AgentMessage]:
    """Whether ``value`` may stand in a transcript."""
    return isinstance(value, UserMessage | AssistantMessage | ToolResultMessage | CustomMessage)


def model_of(model: Model | None, stream_function: StreamFunction | None) -> Model:
    """``model``, or the one that the stream function brings. Raises ``ConfigurationError`` where neither is."""
    found = model or getattr(stream_function, "model", None)
    if not isinstance(found, Model):
        raise ConfigurationError(
            f"model: {found!r} is no Model; give Agent(model=...), for instance "
            'Model.of("openai:gpt-5-mini"), or a stream_function that brings its own, such as scripted([...])'
        )
    return found


def tools_of(tools: Iterable[Tool | Callable[..., Any]]) -> tuple[Tool, ...]:
    """``tools`` with functions made into tools. Raises ``ConfigurationError`` where two share a name."""
    if not _is_iterable(tools):
        raise ConfigurationError(
            f"tools: {tools!r:.80} ({type(tools).__name__}) is no list of tools; write [...]"
        )
    made = tuple(as_tool(item) for item in tools)
    seen: set[str] = set()
    for item in made:
        if item.name in seen:
            raise ConfigurationError(
                f"tools: two are named {item.name!r}; give one another name with @tool(name=...)"
            )
        seen.add(item.name)
    return made
