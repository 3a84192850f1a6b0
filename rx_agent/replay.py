"""What a run remembers of itself: its events, each finished message's text once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias

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


_DELTAS = frozenset({TextDeltaEvent, ThinkingDeltaEvent, ToolCallDeltaEvent})


class ReplayLog:
    """The events of one run in order.

    Consecutive deltas of a block are one, and the events they came in are let go at once: they are by far the
    most. When the message ends, its updates are made anew from it, so that the pieces are let go too.
    """

    def __init__(self) -> None:
        self._events: list[AgentEvent] = []
        self._message_from: int | None = None
        # The deltas that came since the last other event, all of one block.
        self._pieces: list[str] = []
        self._latest: Any = None
        self._index = -1

    def append(self, event: AgentEvent) -> None:
        """Remembers ``event``, O(1) amortised."""
        if isinstance(event, MessageUpdateEvent):
            update: Any = event.assistant_message_event
            if type(update) in _DELTAS:
                if update.content_index != self._index:
                    self._join_pieces()
                    self._index = update.content_index
                self._pieces.append(update.delta)
                self._latest = update
                return
            self._join_pieces()
        else:
            self._join_pieces()
            if isinstance(event, MessageStartEvent):
                self._message_from = len(self._events) + 1
            elif isinstance(event, MessageEndEvent) and self._message_from is not None:
                if len(self._events) > self._message_from and isinstance(event.message, AssistantMessage):
                    self._join(event.message)
                self._message_from = None
        self._events.append(event)

    def _join_pieces(self) -> None:
        if self._pieces:
            self._events.append(self._joined_pieces())
            self._pieces = []
            self._latest, self._index = None, -1

    def _joined_pieces(self) -> AgentEvent:
        return MessageUpdateEvent(replace(self._latest, delta="".join(self._pieces)))

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
        events = list(self._events)
        if self._pieces:
            events.append(self._joined_pieces())
        return iter(events)

    def __len__(self) -> int:
        return len(self._events) + bool(self._pieces)
