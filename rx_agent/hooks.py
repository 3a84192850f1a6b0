"""The hooks around every step: what they are shown, what they may answer, and how they are called.

A hook may return a value, an awaitable or an observable (its last item counts); None means "no change". It may
leave out trailing parameters (``lambda messages: messages[-10:]``). A hook that raises becomes data: an error
result in the two tool hooks, else an assistant message of stop reason ``error``.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import reactivex
from reactivex import Observable
from reactivex import operators as ops

from rx_agent.asyncio_edge import TaskScope, from_awaitable
from rx_agent.messages import (
    AgentMessage,
    AssistantMessage,
    ImageContent,
    TextContent,
    ToolCall,
    ToolResult,
    ToolResultMessage,
)
from rx_agent.models import Model, ThinkingLevel, Usage
from rx_agent.reporting import name_of
from rx_agent.sequencing import IMMEDIATE, contained

if TYPE_CHECKING:
    from rx_agent.tools import Tool


@dataclass(frozen=True, slots=True)
class AgentContext:
    """What hooks and requests see of the agent."""

    system_prompt: str
    messages: Sequence[AgentMessage]
    tools: Sequence[Tool]
    model: Model
    thinking_level: ThinkingLevel = ThinkingLevel.OFF


@dataclass(frozen=True, slots=True)
class BeforeToolCallContext:
    """``args`` are the validated arguments; changing them in place changes what the tool gets."""

    assistant_message: AssistantMessage
    tool_call: ToolCall
    args: dict[str, Any]
    context: AgentContext


@dataclass(frozen=True, slots=True)
class BeforeToolCallResult:
    """``block`` answers the call with an error of text ``reason`` instead of running it."""

    block: bool = False
    reason: str | None = None
    terminate: bool | None = None


@dataclass(frozen=True, slots=True)
class AfterToolCallContext:
    """A finished call with its ``result`` before any override."""

    assistant_message: AssistantMessage
    tool_call: ToolCall
    args: dict[str, Any]
    context: AgentContext
    result: ToolResult
    is_error: bool


@dataclass(frozen=True, slots=True)
class AfterToolCallResult:
    """Each field that is not None replaces the result's, whole."""

    content: str | Sequence[TextContent | ImageContent] | None = None
    details: Any = None
    is_error: bool | None = None
    usage: Usage | None = None
    terminate: bool | None = None


@dataclass(frozen=True, slots=True)
class PrepareNextTurnContext:
    """A finished turn. ``new_messages`` are those of the run so far, the turn's included."""

    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...]
    context: AgentContext
    new_messages: Sequence[AgentMessage]


@dataclass(frozen=True, slots=True)
class AgentLoopTurnUpdate:
    """What the rest of the run goes on with; None keeps what it has."""

    context: AgentContext | None = None
    model: Model | None = None
    thinking_level: ThinkingLevel | None = None


Hook: TypeAlias = Callable[..., Any]
"""Any hook; its parameters are named in :class:`Hooks`."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of a run.

    ``convert_to_llm(messages)``, ``transform_context(messages, signal)``, ``before_tool_call(context, signal)``,
    ``after_tool_call(context, signal)``, ``prepare_next_turn(context, signal)`` and
    ``prepare_next_turn_with_context(context, signal)`` (the second wins where both are set),
    ``should_stop_after_turn(context, signal)``, ``get_api_key(provider)``.
    """

    convert_to_llm: Hook | None = None
    transform_context: Hook | None = None
    before_tool_call: Hook | None = None
    after_tool_call: Hook | None = None
    prepare_next_turn: Hook | None = None
    prepare_next_turn_with_context: Hook | None = None
    should_stop_after_turn: Hook | None = None
    get_api_key: Hook | None = None


def fitted(function: Callable[..., Any], most: int) -> Callable[..., Any]:
    """``function`` as one of ``most`` positional arguments, dropping trailing ones that it has no room for.

    >>> fitted(lambda event: event, 2)("event", "signal")
    'event'
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return function
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return function
    room = sum(
        parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        for parameter in parameters
    )
    if room >= most:
        return function
    return lambda *args: function(*args[:room])


def call_hook(name: str, hook: Hook, *args: Any, tasks: TaskScope) -> Observable[Any]:
    """One item: what ``hook(*args)`` answers, awaited or observed to its last item where it must be."""

    def start() -> Observable[Any]:
        answer = fitted(hook, len(args))(*args)
        if isinstance(answer, Observable):
            return answer.pipe(ops.last_or_default(None))  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if isinstance(answer, Awaitable):
            pending = cast("Awaitable[Any]", answer)

            def close_unstarted() -> None:
                # A task that is cancelled before its first step never touches the coroutine it was to await.
                if inspect.iscoroutine(pending) and inspect.getcoroutinestate(pending) == "CORO_CREATED":
                    pending.close()

            return from_awaitable(lambda: pending, tasks, what=what).pipe(ops.finally_action(close_unstarted))
        return reactivex.return_value(answer, scheduler=IMMEDIATE)

    what = f"hook {name} ({name_of(hook)})"
    return contained(start, what)


def expect(name: str, answer: Any, kind: type) -> None:
    """Raises ``TypeError`` where a hook answered neither None nor a ``kind``."""
    if answer is not None and not isinstance(answer, kind):
        raise TypeError(
            f"{name} returned {type(answer).__name__} {answer!r:.80}; return {kind.__name__} or None"
        )


def expect_messages(name: str, answer: Any, kinds: type | tuple[type, ...], what: str) -> None:
    """Raises ``TypeError`` where a hook answered no list or tuple of ``kinds`` (``what`` says them in words)."""
    if not isinstance(answer, Sequence) or isinstance(answer, str | bytes):
        raise TypeError(f"{name} returned {type(answer).__name__} {answer!r:.80}; return a list of {what}")
    for place, item in enumerate(cast("Sequence[Any]", answer)):
        if not isinstance(item, kinds):
            raise TypeError(
                f"{name} returned a list whose item {place} is {type(item).__name__} {item!r:.80}; it may hold "
                f"{what}"
            )
