"""What a run remembers of itself: its events, each finished message's text once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from rx_agent.events import (
    AgentEvent,
    BlockUpdate,
    MessageEndEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    TextDeltaEvent,
    TextEndEvent,
    TextStartEvent,
    ThinkingDeltaEvent,
    ThinkingEndEvent,
    ThinkingStartEvent,
    ToolCallDeltaEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
)
from rx_agent.messages import AssistantMessage, TextContent, ThinkingContent, ToolCall

Delta: TypeAlias = TextDeltaEvent | ThinkingDeltaEvent | ToolCallDeltaEvent
Start: TypeAlias = TextStartEvent | ThinkingStartEvent | ToolCallStartEvent
End: TypeAlias = TextEndEvent | ThinkingEndEvent | ToolCallEndEvent


class FinishedMessage:
    """The partials of a message that is whole, block by block: position 3i+1 is block i begun, 3i+2 its text."""

    __slots__ = ("_message",)

    def __init__(self, message: AssistantMessage) -> None:
        self._message = message

    def message_at(self, position: int) -> AssistantMessage:
        whole, begun = divmod(position, 3)
        content = self._message.content[:whole]
        if begun and whole < len(self._message.content):
            block = self._message.content[whole]
            content = (*content, _emptied(block) if begun == 1 else block)
        return self._message.model_copy(
            update={"content": content, "stop_reason": None, "error_message": None, "error_kind": None}
        )


def _emptied(block: TextContent | ThinkingContent | ToolCall) -> TextContent | ThinkingContent | ToolCall:
    match block:
        case TextContent():
            return block.model_copy(update={"text": "", "signature": None})
        case ThinkingContent():
            return block.model_copy(update={"thinking": "", "signature": None})
        case ToolCall():
            return block.model_copy(update={"arguments": {}})


def joined(updates: list[BlockUpdate], message: AssistantMessage) -> Iterator[BlockUpdate]:
    """The updates of a whole message, block after block, each block's deltas as one."""
    source = FinishedMessage(message)
    blocks: dict[int, tuple[list[Start], list[Delta], list[End]]] = {}
    for update in updates:
        starts, deltas, ends = blocks.setdefault(update.content_index, ([], [], []))
        if isinstance(update, TextStartEvent | ThinkingStartEvent | ToolCallStartEvent):
            starts.append(update)
        elif isinstance(update, TextDeltaEvent | ThinkingDeltaEvent | ToolCallDeltaEvent):
            deltas.append(update)
        else:
            ends.append(update)
    for index, (starts, deltas, ends) in blocks.items():
        for start in starts:
            yield replace(start, source=source, position=3 * index + 1)
        if deltas:
            yield replace(
                deltas[0],
                source=source,
                position=3 * index + 2,
                delta=_shared("".join(delta.delta for delta in deltas), message, index),
            )
        for end in ends:
            yield replace(end, source=source, position=3 * index + 3)


def _shared(text: str, message: AssistantMessage, index: int) -> str:
    """``text``, as the very string that the message holds where it says the same."""
    block = message.content[index] if index < len(message.content) else None
    held = (
        block.text
        if isinstance(block, TextContent)
        else block.thinking
        if isinstance(block, ThinkingContent)
        else None
    )
    return held if held == text and held is not None else text


def _delta_of(event: AgentEvent, index: int) -> Delta | None:
    if not isinstance(event, MessageUpdateEvent):
        return None
    update = event.assistant_message_event
    is_delta = isinstance(update, TextDeltaEvent | ThinkingDeltaEvent | ToolCallDeltaEvent)
    return update if is_delta and update.content_index == index else None


class ReplayLog:
    """The events of one run in order.

    Consecutive deltas become one when their block ends; when the message ends, its updates are made anew from
    it, so that the pieces they came in are let go.
    """

    def __init__(self) -> None:
        self._events: list[AgentEvent] = []
        self._message_from: int | None = None

    def append(self, event: AgentEvent) -> None:
        """Remembers ``event``, O(1) amortised."""
        if isinstance(event, MessageStartEvent):
            self._message_from = len(self._events) + 1
        elif isinstance(event, MessageEndEvent) and self._message_from is not None:
            if len(self._events) > self._message_from and isinstance(event.message, AssistantMessage):
                self._join(event.message)
            self._message_from = None
        elif isinstance(event, MessageUpdateEvent) and isinstance(
            event.assistant_message_event, TextEndEvent | ThinkingEndEvent | ToolCallEndEvent
        ):
            self._join_block(event.assistant_message_event.content_index)
        self._events.append(event)

    def _join_block(self, index: int) -> None:
        """Makes the deltas of block ``index`` at the end of the log one, as it was at the last."""
        deltas: list[Delta] = []
        start = len(self._events)
        while start and (delta := _delta_of(self._events[start - 1], index)) is not None:
            deltas.append(delta)
            start -= 1
        if len(deltas) > 1:
            whole = replace(deltas[0], delta="".join(delta.delta for delta in reversed(deltas)))
            self._events[start:] = [MessageUpdateEvent(whole)]

    def _join(self, message: AssistantMessage) -> None:
        """Messages never overlap, so everything since the start is an update of this one."""
        start = self._message_from
        assert start is not None
        updates = [
            event.assistant_message_event
            for event in self._events[start:]
            if isinstance(event, MessageUpdateEvent)
        ]
        del self._events[start:]
        self._events.extend(MessageUpdateEvent(update) for update in joined(updates, message))

    def __iter__(self) -> Iterator[AgentEvent]:
        return iter(list(self._events))

    def __len__(self) -> int:
        return len(self._events)
