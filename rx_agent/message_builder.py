"""A streaming assistant message: an append-only log of operations that tells any earlier state when asked."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeAlias, cast

from pydantic_core import from_json

from rx_agent.events import (
    DoneEvent,
    ErrorEvent,
    StartEvent,
    TextDeltaEvent,
    TextEndEvent,
    TextStartEvent,
    ThinkingDeltaEvent,
    ThinkingEndEvent,
    ThinkingStartEvent,
    ToolCallDeltaEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
    UnfrozenDelta,
)
from rx_agent.messages import (
    AssistantMessage,
    ErrorKind,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from rx_agent.models import Model, Usage
from rx_agent.surrogates import repaired_text, with_joined_pairs, with_joined_pairs_inside

Block: TypeAlias = TextContent | ThinkingContent | ToolCall


def partial_arguments(text: str) -> dict[str, Any]:
    """What can be read of JSON arguments that are still arriving (unfinished strings included)."""
    try:
        value = from_json(repaired_text(text), allow_partial="trailing-strings")
    except ValueError:
        return {}
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


MAX_DEPTH = 100
"""Levels that arguments may be nested; deeper ones would break the recursion limits of whatever reads them."""


def final_tool_call(tool_call: ToolCall, text: str) -> ToolCall:
    """``tool_call`` with the arguments of ``text``; no text at all means no arguments."""
    if not text.strip():
        return tool_call
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and not too_deep(value):
        return tool_call.model_copy(update={"arguments": with_joined_pairs_inside(value)})
    saved = partial_arguments(text)
    return tool_call.model_copy(
        update={"arguments": {} if too_deep(saved) else saved, "invalid_arguments": text}
    )


def too_deep(value: Any) -> bool:
    """Whether lists and dicts in ``value`` are nested deeper than :data:`MAX_DEPTH`.

    >>> too_deep({"a": [[1]]})
    False
    """
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(cast(dict[Any, Any], item).values())
            elif isinstance(item, list | tuple):
                inner.extend(cast(list[Any], item))
        if not inner:
            return False
        level = inner
    return True


def _given(arguments: dict[str, Any]) -> dict[str, Any]:
    if not too_deep(arguments):
        return {"arguments": with_joined_pairs_inside(arguments)}
    return {"arguments": {}, "invalid_arguments": "(nested too deeply to be shown)"}


class _OpenBlock:
    """One block as it grows: its opening state, the pieces that came, and the final block once there."""

    __slots__ = ("final", "opening", "pieces")

    def __init__(self, opening: Block) -> None:
        self.opening = opening
        self.pieces: list[str] = []
        self.final: Block | None = None

    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces[:] = [with_joined_pairs("".join(self.pieces))]
        return self.pieces[0] if self.pieces else ""

    def block(self) -> Block:
        if self.final is not None:
            return self.final
        match self.opening:
            case TextContent():
                return self.opening.model_copy(update={"text": self.text()})
            case ThinkingContent():
                return self.opening.model_copy(update={"thinking": self.text()})
            case ToolCall():
                return self.opening.model_copy(update={"arguments": partial_arguments(self.text())})


class _Replay:
    """The blocks after the first ``position`` operations; only ever moves forward."""

    __slots__ = ("blocks", "position")

    def __init__(self) -> None:
        self.position = 0
        self.blocks: list[_OpenBlock] = []

    def advance(self, log: list[tuple[int, Block | str, bool]], position: int) -> None:
        blocks = self.blocks
        for index, value, is_end in log[self.position : position]:
            if index >= len(blocks) and (isinstance(value, str) or is_end):
                continue  # a careless provider's; reading a message must never fail
            if isinstance(value, str):
                blocks[index].pieces.append(with_joined_pairs(value))
            elif is_end:
                blocks[index].final = value
            else:
                blocks.append(_OpenBlock(value))
        self.position = position


class MessageBuilder:
    """Grows an :class:`AssistantMessage` and makes the provider events that tell of it.

    Each method appends one operation (O(1)) and returns the event to emit. Nothing is materialised until
    somebody reads ``event.partial``.

    >>> builder = MessageBuilder(Model(id="m", api="scripted", provider="scripted"))
    >>> start = builder.start()
    >>> opened = builder.text_start()
    >>> builder.text_delta(opened.content_index, "hel").partial.text
    'hel'
    >>> builder.text_delta(opened.content_index, "lo").partial.text
    'hello'
    >>> builder.text_end(opened.content_index).content
    'hello'
    >>> builder.done("stop").message.stop_reason
    'stop'
    """

    __slots__ = ("_log", "_now", "_past", "header")

    def __init__(self, model: Model | None = None, *, timestamp: int = 0) -> None:
        self.header = AssistantMessage(
            api=model.api if model else "",
            provider=model.provider if model else "",
            model=model.id if model else "",
            stop_reason=None,
            timestamp=timestamp,
        )
        self._log: list[tuple[int, Block | str, bool]] = []
        self._now = _Replay()
        self._past = _Replay()

    # --- reading -------------------------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """How many operations there were."""
        return len(self._log)

    def message_at(self, position: int) -> AssistantMessage:
        """The message after the first ``position`` operations. Reading forward costs only what is new."""
        if position >= self._past.position:
            replay = self._past
        else:
            replay = self._past = _Replay()
        replay.advance(self._log, position)
        return self.header.model_copy(update={"content": tuple(open_.block() for open_ in replay.blocks)})

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The content as it is now; blocks without an end so far are included as they stand."""
        self._now.advance(self._log, len(self._log))
        return tuple(open_.block() for open_ in self._now.blocks)

    @property
    def next_index(self) -> int:
        """The content index that the next block will have."""
        self._now.advance(self._log, len(self._log))
        return len(self._now.blocks)

    def open_indexes(self) -> tuple[int, ...]:
        """Content indexes of the blocks that have started and not ended."""
        self._now.advance(self._log, len(self._log))
        return tuple(index for index, open_ in enumerate(self._now.blocks) if open_.final is None)

    def kind_of(self, index: int) -> Literal["text", "thinking", "tool_call"]:
        """What kind of block stands at ``index``."""
        self._now.advance(self._log, len(self._log))
        return self._now.blocks[index].opening.type

    def has_pieces(self, index: int) -> bool:
        """Whether anything was appended to the block at ``index``."""
        self._now.advance(self._log, len(self._log))
        return bool(self._now.blocks[index].pieces)

    # --- growing -------------------------------------------------------------------------------------------

    def start(self) -> StartEvent:
        return StartEvent(self, len(self._log))

    def _open(self, block: Block) -> int:
        # Only starts and ends replay the log: a delta is one append.
        index = self.next_index
        self._log.append((index, block, False))
        return index

    def _close(self, index: int) -> _OpenBlock:
        self._now.advance(self._log, len(self._log))
        return self._now.blocks[index]

    def text_start(self) -> TextStartEvent:
        index = self._open(TextContent(text=""))
        return TextStartEvent(index, self, len(self._log))

    def text_delta(self, index: int, delta: str) -> TextDeltaEvent:
        log = self._log
        log.append((index, delta, False))
        event: Any = UnfrozenDelta(index, self, len(log), delta)
        event.__class__ = TextDeltaEvent
        return event

    def text_end(self, index: int, *, signature: str | None = None) -> TextEndEvent:
        block = TextContent(text=self._close(index).text(), signature=signature)
        self._log.append((index, block, True))
        return TextEndEvent(index, self, len(self._log), block.text)

    def thinking_start(self, *, redacted: bool = False) -> ThinkingStartEvent:
        index = self._open(ThinkingContent(thinking="", redacted=redacted))
        return ThinkingStartEvent(index, self, len(self._log))

    def thinking_delta(self, index: int, delta: str) -> ThinkingDeltaEvent:
        log = self._log
        log.append((index, delta, False))
        event: Any = UnfrozenDelta(index, self, len(log), delta)
        event.__class__ = ThinkingDeltaEvent
        return event

    def thinking_end(self, index: int, *, signature: str | None = None) -> ThinkingEndEvent:
        open_ = self._close(index)
        block = open_.opening.model_copy(update={"thinking": open_.text(), "signature": signature})
        assert isinstance(block, ThinkingContent)
        self._log.append((index, block, True))
        return ThinkingEndEvent(index, self, len(self._log), block.thinking)

    def tool_call_start(self, id: str, name: str) -> ToolCallStartEvent:
        index = self._open(ToolCall(id=id, name=name))
        return ToolCallStartEvent(index, self, len(self._log))

    def tool_call_delta(self, index: int, delta: str) -> ToolCallDeltaEvent:
        log = self._log
        log.append((index, delta, False))
        event: Any = UnfrozenDelta(index, self, len(log), delta)
        event.__class__ = ToolCallDeltaEvent
        return event

    def tool_call_end(
        self,
        index: int,
        *,
        id: str | None = None,
        name: str | None = None,
        arguments: dict[str, Any] | None = None,
        signature: str | None = None,
    ) -> ToolCallEndEvent:
        """Ends the call. ``arguments`` replaces what the deltas said; ``id`` and ``name`` what the start said."""
        open_ = self._close(index)
        opening = open_.opening
        assert isinstance(opening, ToolCall)
        opening = opening.model_copy(
            update={"id": id or opening.id, "name": name or opening.name, "signature": signature}
        )
        call = (
            final_tool_call(opening, open_.text())
            if arguments is None
            else opening.model_copy(update=_given(arguments))
        )
        self._log.append((index, call, True))
        return ToolCallEndEvent(index, self, len(self._log), call)

    def end_open_blocks(self) -> list[TextEndEvent | ThinkingEndEvent | ToolCallEndEvent]:
        """Ends, in order, whatever has started and not ended."""
        events: list[TextEndEvent | ThinkingEndEvent | ToolCallEndEvent] = []
        for index in self.open_indexes():
            match self.kind_of(index):
                case "text":
                    events.append(self.text_end(index))
                case "thinking":
                    events.append(self.thinking_end(index))
                case "tool_call":
                    events.append(self.tool_call_end(index))
        return events

    # --- ending --------------------------------------------------------------------------------------------

    def final(self, **fields: Any) -> AssistantMessage:
        """The message as it stands, with ``fields`` set."""
        return self.header.model_copy(update={"content": self.blocks, **fields})

    def done(self, stop_reason: StopReason, *, usage: Usage | None = None, **fields: Any) -> DoneEvent:
        """The ``done`` event. ``fields``: further ones of the message, such as ``response_id``."""
        return DoneEvent(self.final(stop_reason=stop_reason, usage=usage or self.header.usage, **fields))

    def error(
        self,
        error_message: str,
        *,
        kind: ErrorKind | None = None,
        stop_reason: StopReason = "error",
        usage: Usage | None = None,
        **fields: Any,
    ) -> ErrorEvent:
        """The ``error`` event: what came stays in the message, ``error_message`` says why it ended."""
        return ErrorEvent(
            self.final(
                stop_reason=stop_reason,
                error_message=error_message,
                error_kind=kind,
                usage=usage or self.header.usage,
                **fields,
            )
        )
