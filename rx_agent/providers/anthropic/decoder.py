"""Decodes a streamed message: https://docs.anthropic.com/en/docs/build-with-claude/streaming.

``message_start``, then for each content block ``content_block_start``, ``content_block_delta`` … and
``content_block_stop``, then ``message_delta`` (stop reason, usage) and ``message_stop``, the end mark. ``ping``
and ``error`` may come anywhere.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from pydantic_core import from_json

from rx_agent.events import AssistantMessageEvent
from rx_agent.message_builder import MessageBuilder, too_deep
from rx_agent.messages import StopReason
from rx_agent.models import Model, Usage
from rx_agent.providers.anthropic.usage import anthropic_usage, merged_usage
from rx_agent.providers.delta_frame import DeltaFrame
from rx_agent.providers.http_errors import Failure, error_data, incomplete, stream_failure
from rx_agent.providers.sse import SseEvent
from rx_agent.providers.stream_decoder import MalformedEventError, StreamDecoder
from rx_agent.providers.wire_json import wire_json

_LENGTH = frozenset({"max_tokens", "model_context_window_exceeded"})
_REFUSED = frozenset({"refusal", "sensitive"})

Events: TypeAlias = list[AssistantMessageEvent]


class _Block:
    """A content block that is arriving.

    ``delta`` is the type of its deltas and ``field`` where they hold their text, which ``append`` takes.
    ``at`` is its content index in the message, ``fast`` the same once nothing but appending is left to do.
    """

    __slots__ = ("append", "at", "delta", "fast", "field", "given", "signature", "start_signature")

    def __init__(
        self,
        delta: str = "",
        field: str = "",
        append: Callable[[int, str], AssistantMessageEvent] | None = None,
    ) -> None:
        self.delta = delta
        self.field = field
        self.append = append
        self.at: int | None = None
        self.fast: int | None = None
        self.given = ""
        self.signature: list[str] = []
        self.start_signature = ""


_PASSED_OVER = _Block()
"""Stands for every block that the message has no place for: tools of the server and their results …"""


class AnthropicDecoder(StreamDecoder):
    """Decodes one answer.

    Blocks of the server's own tools, citations and kinds unknown here are passed over. ``pause_turn`` is an
    answer like any other (``"stop"``): what came stands, and the model goes on when it is asked again. A second
    ``message_start`` means that the server began anew: the blocks so far are ended, and the message holds only
    what comes after it.

    >>> decoder = AnthropicDecoder(Model(id="m", api="anthropic", provider="anthropic"))
    >>> def feed(data: str) -> list[str]:
    ...     return [event.type for event in decoder.feed(SseEvent("message", data.encode()))]
    >>> feed('{"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hi"}}')
    ['start', 'text_start', 'text_delta']
    >>> feed('{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}')
    []
    >>> feed('{"type": "message_stop"}')
    ['text_end', 'done']
    """

    def __init__(self, model: Model, *, timestamp: int = 0) -> None:
        super().__init__(model, timestamp=timestamp)
        self._events: Mapping[str, Callable[[Any, Events], None]] = {
            "message_start": self._message_start,
            "content_block_start": self._block_start,
            "content_block_delta": self._block_delta,
            "content_block_stop": self._block_stop,
            "message_delta": self._message_delta,
            "message_stop": self._message_stop,
            "error": self._error,
        }
        self._openers: Mapping[str, Callable[[Any, Events], _Block]] = {
            "text": self._open_text,
            "thinking": self._open_thinking,
            "redacted_thinking": self._open_redacted,
            "tool_use": self._open_tool_use,
        }
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._frame: DeltaFrame | None = None
        self._at = 0
        self._go_on: Callable[[int, str], AssistantMessageEvent] = self.builder.text_delta
        self._blocks: dict[int, _Block] = {}
        self._ids: set[str] = set()
        self._id: str | None = None
        self._has_message = False
        self._usage: dict[str, Any] = {}
        self._stop_reason: str | None = None
        self._stop_details: Any = None

    def feed(self, event: SseEvent) -> Events:
        """See :meth:`StreamDecoder.feed`."""
        data = event.data
        if (frame := self._frame) is not None and (text := frame.text_of(data)) is not None:
            return [self._go_on(self._at, text)]
        if self.ended:
            return []
        try:
            said: Any = from_json(data)
        except ValueError:
            text = data.decode("utf-8", "replace").strip()
            if not text or text == "[DONE]":  # the end mark of another API, which some gateways add
                return self.finish() if text else []
            try:
                said = json.loads(text)  # takes the escapes of lone surrogates, which the fast parser refuses
            except (ValueError, RecursionError):
                raise MalformedEventError(data) from None
        events: Events = []
        try:
            kind = said.get("type")
            if kind == "content_block_delta":
                block, delta = self._blocks.get(said["index"]), said["delta"]
                if block is not None and block.fast is not None and delta["type"] == block.delta:
                    text = delta[block.field]
                    if block.append is not None and type(text) is str and text:
                        # The common event. All that follow differ from it in their text alone, most likely.
                        if self._frame is None:
                            self._frame = DeltaFrame.around(data, block.field, text)
                            self._go_on, self._at = block.append, block.fast
                        return [block.append(block.fast, text)]
            self._frame = None
            handler = self._events.get(kind or event.name)
            if handler is not None:
                handler(said, events)
            elif said.get("error"):
                self._error(said, events)
        except (AttributeError, TypeError, KeyError):
            # JSON, but no event of this API. What it said up to there stands.
            events += self.fail(Failure(str(MalformedEventError(data)), "network"))
        return events

    def usage(self) -> Usage | None:
        """See :meth:`StreamDecoder.usage`."""
        return anthropic_usage(self._usage, self.model.cost) if self._usage else None

    def response_id(self) -> str | None:
        """See :meth:`StreamDecoder.response_id`."""
        return self._id

    def whole(self) -> Events | None:
        """See :meth:`StreamDecoder.whole`: the stop reason comes behind all blocks, so the answer is whole with it
        unless a tool call is still open.
        """
        reason = self._stop_reason
        if reason is None or (reason not in _LENGTH and any(map(_is_tool_use, self._blocks.values()))):
            return None
        return self._completed()

    # --- events of the message -----------------------------------------------------------------------------

    def _message_start(self, said: Any, events: Events) -> None:
        message = said["message"]
        id, usage = message.get("id"), merged_usage({}, message.get("usage") or {})
        if self._has_message:
            self._end_blocks(events)
            self.builder = MessageBuilder(self.model, timestamp=self.builder.header.timestamp)
            self._begin_anew()
        self._has_message = True
        events += self.begin()
        self._id = id if isinstance(id, str) and id else None
        self._usage = usage

    def _message_delta(self, said: Any, events: Events) -> None:
        delta: dict[str, Any] = said.get("delta") or {}
        if reason := delta.get("stop_reason"):
            self._stop_reason = str(reason)
        self._stop_details = delta.get("stop_details") or self._stop_details
        self._usage = merged_usage(self._usage, said.get("usage") or {})

    def _message_stop(self, said: Any, events: Events) -> None:
        if self._stop_reason is None and not self.builder.position:
            events += self.fail(incomplete(self.model.provider, why="nothing came before the end mark"))
        else:
            events += self._completed()

    def _error(self, said: Any, events: Events) -> None:
        events += self.fail(stream_failure(error_data(said.get("error") or said), self.model.provider))

    def _completed(self) -> Events:
        self.ended = True
        events = self.begin()
        self._end_blocks(events)
        usage, id = self.usage(), self._id
        if self._stop_reason in _REFUSED:
            events.append(self.builder.error(self._refusal(), kind="refused", usage=usage, response_id=id))
        else:
            events.append(self.builder.done(self._mapped_reason(), usage=usage, response_id=id))
        return events

    def _mapped_reason(self) -> StopReason:
        if self._stop_reason in _LENGTH:
            return "length"
        # What else there is (end_turn, stop_sequence, pause_turn, reasons to come) matters only where no tool
        # is called.
        return "tool_use" if self._ids else "stop"

    def _refusal(self) -> str:
        text = "The model refused to answer"
        details = self._stop_details
        if isinstance(details, dict):
            known = cast("dict[str, Any]", details)
            if category := known.get("category"):
                text += f" (category {category})"
            if explanation := known.get("explanation"):
                text += f": {explanation}"
        return text if text.endswith(".") else f"{text}."

    # --- events of a block ---------------------------------------------------------------------------------

    def _block_start(self, said: Any, events: Events) -> None:
        index, content = said["index"], said["content_block"]
        events += self.begin()
        self._end_block(self._blocks.pop(index, _PASSED_OVER), events)
        opener = self._openers.get(content["type"])
        self._blocks[index] = _PASSED_OVER if opener is None else opener(content, events)

    def _block_delta(self, said: Any, events: Events) -> None:
        index, delta = said["index"], said["delta"]
        kind = delta["type"]
        block = self._blocks.get(index)
        if block is None:
            # A server that leaves out the starts; a tool call cannot do without, for it has the name.
            opener = {"text_delta": self._open_text, "thinking_delta": self._open_thinking}[kind]
            events += self.begin()
            block = self._blocks[index] = opener({}, events)
        if block.append is None:
            return
        if kind == block.delta:
            self._append(block, delta[block.field], events)
        elif kind == "signature_delta":
            block.signature.append(_text(delta["signature"]))
        # Citations, and whatever else may be told of a block, have no place in the message.

    def _block_stop(self, said: Any, events: Events) -> None:
        self._end_block(self._blocks.pop(said["index"], _PASSED_OVER), events)

    def _open_text(self, content: Mapping[str, Any], events: Events) -> _Block:
        # Begins with its first words: blocks without any are common beside tools of the server.
        block = _Block("text_delta", "text", self.builder.text_delta)
        self._append(block, content.get("text"), events)
        return block

    def _open_thinking(self, content: Mapping[str, Any], events: Events) -> _Block:
        block = _Block("thinking_delta", "thinking", self.builder.thinking_delta)
        started = self.builder.thinking_start()
        events.append(started)
        block.at = block.fast = started.content_index
        block.start_signature = _text(content.get("signature"))
        self._append(block, content.get("thinking"), events)
        return block

    def _open_redacted(self, content: Mapping[str, Any], events: Events) -> _Block:
        data = _text(content["data"])
        started = self.builder.thinking_start(redacted=True)
        events += [started, self.builder.thinking_end(started.content_index, signature=data)]
        return _PASSED_OVER

    def _open_tool_use(self, content: Mapping[str, Any], events: Events) -> _Block:
        block = _Block("input_json_delta", "partial_json", self.builder.tool_call_delta)
        id = _text(content.get("id"))
        if not id or id in self._ids:
            id = f"toolu_{uuid.uuid4().hex[:24]}"
        self._ids.add(id)
        started = self.builder.tool_call_start(id, _text(content["name"]))
        events.append(started)
        block.at = started.content_index
        if given := content.get("input"):
            # The input may be whole already; deltas, where some come after all, are what counts.
            block.given = given if isinstance(given, str) else _written(given)
        else:
            block.fast = block.at
        return block

    def _append(self, block: _Block, text: Any, events: Events) -> None:
        if not _text(text):
            return
        if block.at is None:
            started = self.builder.text_start()
            events.append(started)
            block.at = started.content_index
        block.fast = block.at
        block.given = ""
        assert block.append is not None
        events.append(block.append(block.at, text))

    def _end_block(self, block: _Block, events: Events) -> None:
        if block.given:
            self._append(block, block.given, events)
        if block.at is None:
            return
        match block.delta:
            case "text_delta":
                events.append(self.builder.text_end(block.at))
            case "thinking_delta":
                signature = "".join(block.signature) or block.start_signature or None
                events.append(self.builder.thinking_end(block.at, signature=signature))
            case _:
                events.append(self.builder.tool_call_end(block.at))

    def _end_blocks(self, events: Events) -> None:
        for block in self._blocks.values():
            self._end_block(block, events)
        self._blocks.clear()


def _is_tool_use(block: _Block) -> bool:
    return block.delta == "input_json_delta"


def _written(given: Any) -> str:
    return "(nested too deeply to be shown)" if too_deep(given) else wire_json(given).decode()


def _text(value: Any) -> str:
    """``value`` where it is text or nothing; raises ``TypeError`` for anything else."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} instead of a string")
    return value
