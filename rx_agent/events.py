"""The two event vocabularies: what a provider emits, and what an agent run emits.

All are frozen and slotted, with a ``type`` tag for matching. Where an event shows a message that still streams, it
holds the builder and a position in it: the message is made when somebody reads it, as it was at that instant.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from rx_agent.messages import (
    AgentMessage,
    AssistantMessage,
    StopReason,
    ToolCall,
    ToolResult,
    ToolResultMessage,
)


class PartialSource(Protocol):
    """Whatever can tell how a streaming message looked at a position (an operation count)."""

    def message_at(self, position: int) -> AssistantMessage: ...


@dataclass(frozen=True, slots=True)
class StartEvent:
    """The response has begun."""

    source: PartialSource = field(repr=False, compare=False)
    position: int = field(repr=False, compare=False)
    type: ClassVar[Literal["start"]] = "start"

    @property
    def partial(self) -> AssistantMessage:
        """The message so far."""
        return self.source.message_at(self.position)


class UnfrozenDelta:
    """What a delta event is made as: of every class with frozen fields, Python makes instances at half the speed.

    Nearly all events are deltas, so :class:`MessageBuilder` makes one of these and then turns it into what it is
    to be, which needs the same slots in the same base.
    """

    __slots__ = ("content_index", "delta", "position", "source")

    def __init__(self, content_index: int, source: PartialSource, position: int, delta: str) -> None:
        self.content_index = content_index
        self.source = source
        self.position = position
        self.delta = delta


@dataclass(frozen=True, slots=True)
class BlockEvent(UnfrozenDelta):
    """Base of the nine block events; ``content_index`` is the block's place in ``message.content``."""

    content_index: int
    source: PartialSource = field(repr=False, compare=False)
    position: int = field(repr=False, compare=False)

    @property
    def partial(self) -> AssistantMessage:
        """The message so far, this event included."""
        return self.source.message_at(self.position)


@dataclass(frozen=True, slots=True)
class TextStartEvent(BlockEvent):
    type: ClassVar[Literal["text_start"]] = "text_start"


@dataclass(frozen=True, slots=True)
class TextDeltaEvent(BlockEvent):
    delta: str
    type: ClassVar[Literal["text_delta"]] = "text_delta"


@dataclass(frozen=True, slots=True)
class TextEndEvent(BlockEvent):
    content: str
    type: ClassVar[Literal["text_end"]] = "text_end"


@dataclass(frozen=True, slots=True)
class ThinkingStartEvent(BlockEvent):
    type: ClassVar[Literal["thinking_start"]] = "thinking_start"


@dataclass(frozen=True, slots=True)
class ThinkingDeltaEvent(BlockEvent):
    delta: str
    type: ClassVar[Literal["thinking_delta"]] = "thinking_delta"


@dataclass(frozen=True, slots=True)
class ThinkingEndEvent(BlockEvent):
    content: str
    type: ClassVar[Literal["thinking_end"]] = "thinking_end"


@dataclass(frozen=True, slots=True)
class ToolCallStartEvent(BlockEvent):
    type: ClassVar[Literal["toolcall_start"]] = "toolcall_start"


@dataclass(frozen=True, slots=True)
class ToolCallDeltaEvent(BlockEvent):
    """``delta`` is a piece of the arguments' JSON text."""

    delta: str
    type: ClassVar[Literal["toolcall_delta"]] = "toolcall_delta"


@dataclass(frozen=True, slots=True)
class ToolCallEndEvent(BlockEvent):
    tool_call: ToolCall
    type: ClassVar[Literal["toolcall_end"]] = "toolcall_end"


@dataclass(frozen=True, slots=True)
class DoneEvent:
    """The response is whole."""

    message: AssistantMessage
    type: ClassVar[Literal["done"]] = "done"

    @property
    def reason(self) -> StopReason | None:
        return self.message.stop_reason


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """The response failed or was aborted; ``message`` holds what came and says why."""

    message: AssistantMessage
    type: ClassVar[Literal["error"]] = "error"

    @property
    def reason(self) -> StopReason | None:
        return self.message.stop_reason


BlockUpdate: TypeAlias = (
    TextStartEvent
    | TextDeltaEvent
    | TextEndEvent
    | ThinkingStartEvent
    | ThinkingDeltaEvent
    | ThinkingEndEvent
    | ToolCallStartEvent
    | ToolCallDeltaEvent
    | ToolCallEndEvent
)
AssistantMessageEvent: TypeAlias = StartEvent | BlockUpdate | DoneEvent | ErrorEvent
"""What a provider's stream emits: ``start``, block events, then exactly one ``done`` or ``error``."""


@dataclass(frozen=True, slots=True)
class AgentStartEvent:
    """A run begins."""

    type: ClassVar[Literal["agent_start"]] = "agent_start"


EndReason: TypeAlias = Literal["completed", "stopped", "aborted", "error"]


@dataclass(frozen=True, slots=True)
class AgentEndEvent:
    """A run has ended; ``messages`` are the new ones, in order.

    ``reason``: ``completed``, ``stopped`` (by ``terminate`` or ``should_stop_after_turn``), ``aborted`` or
    ``error``.
    """

    messages: tuple[AgentMessage, ...]
    reason: EndReason = "completed"
    type: ClassVar[Literal["agent_end"]] = "agent_end"

    @property
    def text(self) -> str:
        """The text of the last assistant message, or an empty string."""
        for message in reversed(self.messages):
            if isinstance(message, AssistantMessage):
                return message.text
        return ""

    @property
    def error_message(self) -> str | None:
        """Why the last assistant message failed, if it did."""
        for message in reversed(self.messages):
            if isinstance(message, AssistantMessage):
                return message.error_message
        return None


@dataclass(frozen=True, slots=True)
class TurnStartEvent:
    """A turn begins: one response and the tools it calls."""

    type: ClassVar[Literal["turn_start"]] = "turn_start"


@dataclass(frozen=True, slots=True)
class TurnEndEvent:
    """A turn has ended with the assistant's ``message`` and its calls' results, in source order."""

    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...] = ()
    type: ClassVar[Literal["turn_end"]] = "turn_end"


@dataclass(frozen=True, slots=True)
class MessageStartEvent:
    """A message begins (an assistant's has no content yet)."""

    message: AgentMessage
    type: ClassVar[Literal["message_start"]] = "message_start"


@dataclass(frozen=True, slots=True)
class MessageUpdateEvent:
    """An assistant message grew."""

    assistant_message_event: BlockUpdate
    type: ClassVar[Literal["message_update"]] = "message_update"

    @property
    def message(self) -> AssistantMessage:
        """The message as it was at this instant, made when read."""
        return self.assistant_message_event.partial


@dataclass(frozen=True, slots=True)
class MessageEndEvent:
    """A message is whole and part of the transcript."""

    message: AgentMessage
    type: ClassVar[Literal["message_end"]] = "message_end"


@dataclass(frozen=True, slots=True)
class ToolExecutionStartEvent:
    """A tool call is taken up; ``args`` as the model gave them."""

    tool_call_id: str
    tool_name: str
    args: dict[str, Any]
    type: ClassVar[Literal["tool_execution_start"]] = "tool_execution_start"


@dataclass(frozen=True, slots=True)
class ToolExecutionUpdateEvent:
    """A running tool told of its progress."""

    tool_call_id: str
    tool_name: str
    args: dict[str, Any]
    partial_result: ToolResult
    type: ClassVar[Literal["tool_execution_update"]] = "tool_execution_update"


@dataclass(frozen=True, slots=True)
class ToolExecutionEndEvent:
    """A tool call has its result."""

    tool_call_id: str
    tool_name: str
    result: ToolResult
    is_error: bool = False
    type: ClassVar[Literal["tool_execution_end"]] = "tool_execution_end"


AgentEvent: TypeAlias = (
    AgentStartEvent
    | AgentEndEvent
    | TurnStartEvent
    | TurnEndEvent
    | MessageStartEvent
    | MessageUpdateEvent
    | MessageEndEvent
    | ToolExecutionStartEvent
    | ToolExecutionUpdateEvent
    | ToolExecutionEndEvent
)
"""The ten lifecycle events of a run."""
