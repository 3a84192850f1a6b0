"""What a run remembers of itself: its events, each finished message's text once."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
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
from rx_agent.surrogates import with_joined_pairs

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
                delta=_shared(with_joined_pairs("".join(delta.delta for delta in deltas)), message, index),
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


@dataclass(frozen=True, slots=True)
class Beat:
    """An event of a run and when it came, in seconds since the run's start.

    For deltas that were joined, ``times`` are those of the single ones; else it is ``(time,)``.
    """

    time: float
    event: AgentEvent
    times: Sequence[float]


class ReplayLog:
    """The events of one run in order, each with the time at which it came (``now()``, in seconds).

    Consecutive deltas of a block are one, and the events they came in are let go at once: they are by far the
    most. When the message ends, its updates are made anew from it, so that the pieces are let go too.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._events: list[AgentEvent] = []
        self._times: list[float | array[float]] = []
        self._message_from: int | None = None
        # The deltas that came since the last other event, all of one block.
        self._pieces: list[str] = []
        self._piece_times = array("d")
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
                self._piece_times.append(self._now())
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
        self._times.append(self._now())

    def _join_pieces(self) -> None:
        if self._pieces:
            self._events.append(self._joined_pieces())
            self._times.append(self._piece_times)
            self._pieces, self._piece_times = [], array("d")
            self._latest, self._index = None, -1

    def _joined_pieces(self) -> AgentEvent:
        return MessageUpdateEvent(replace(self._latest, delta=with_joined_pairs("".join(self._pieces))))

    def _join(self, message: AssistantMessage) -> None:
        """Messages never overlap, so everything since the start is an update of this one."""
        start = self._message_from
        assert start is not None
        updates: list[BlockUpdate] = []
        times: dict[tuple[int, str], Any] = {}
        for event, when in zip(self._events[start:], self._times[start:], strict=True):
            if isinstance(event, MessageUpdateEvent):
                update = event.assistant_message_event
                updates.append(update)
                key = (update.content_index, update.type)
                if key in times and isinstance(when, array):
                    times[key] = times[key] + when  # of a block that others came between
                else:
                    times[key] = when
        del self._events[start:], self._times[start:]
        for update in joined(updates, message):
            self._events.append(MessageUpdateEvent(update))
            self._times.append(times[update.content_index, update.type])

    def beats(self) -> list[Beat]:
        """The events with their times, counted from the first."""
        events, times = list(self), list(self._times)
        if self._pieces:
            times.append(self._piece_times)
        start = _first(times[0]) if times else 0.0
        return [
            Beat(
                _first(when) - start,
                event,
                tuple(moment - start for moment in (when if isinstance(when, array) else (when,))),
            )
            for event, when in zip(events, times, strict=True)
        ]

    def __iter__(self) -> Iterator[AgentEvent]:
        events = list(self._events)
        if self._pieces:
            events.append(self._joined_pieces())
        return iter(events)

    def __len__(self) -> int:
        return len(self._events) + bool(self._pieces)


def _first(when: float | array[float]) -> float:
    return when[0] if isinstance(when, array) else when
