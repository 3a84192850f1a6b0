"""What a Messages server would say, and the message that becomes of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from rx_agent.events import AssistantMessageEvent, DoneEvent, ErrorEvent
from rx_agent.messages import AssistantMessage
from rx_agent.models import Model, ModelCost
from rx_agent.providers.anthropic.decoder import AnthropicDecoder
from rx_agent.providers.sse import SseEvent, SseReader
from tests.providers.loopback import Answer, Json

MODEL = Model(
    id="claude-sonnet-4-5",
    api="anthropic",
    provider="anthropic",
    cost=ModelCost(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75),
)


def start(id: str = "msg_1", **usage: Any) -> list[Json]:
    counts = {"input_tokens": 9, "output_tokens": 1, **usage}
    message = {"id": id, "type": "message", "role": "assistant", "content": [], "usage": counts}
    return [{"type": "message_start", "message": message}]


def opened(index: int, type: str, **fields: Any) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": {"type": type, **fields}}


def delta(index: int, type: str, **fields: Any) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": {"type": type, **fields}}


def closed(index: int) -> Json:
    return {"type": "content_block_stop", "index": index}


def said(index: int, piece: str) -> Json:
    return delta(index, "text_delta", text=piece)


def thought(index: int, piece: str) -> Json:
    return delta(index, "thinking_delta", thinking=piece)


def signed(index: int, piece: str) -> Json:
    return delta(index, "signature_delta", signature=piece)


def wrote(index: int, piece: str) -> Json:
    return delta(index, "input_json_delta", partial_json=piece)


def text(*pieces: str, at: int = 0) -> list[Json]:
    """A whole block of text."""
    return [opened(at, "text", text=""), *(said(at, piece) for piece in pieces), closed(at)]


def thinking(*pieces: str, signature: str | None = "sig", at: int = 0) -> list[Json]:
    """A whole block of thinking."""
    signatures = [signed(at, signature)] if signature is not None else []
    deltas = [thought(at, piece) for piece in pieces]
    return [opened(at, "thinking", thinking="", signature=""), *deltas, *signatures, closed(at)]


def called(at: int, name: str, id: str | None = None, **fields: Any) -> Json:
    """The start of a call."""
    return opened(at, "tool_use", id=id or f"toolu_{at}", name=name, **{"input": {}, **fields})


def call(name: str, *pieces: str, at: int = 0, id: str | None = None) -> list[Json]:
    """A whole call, its input in pieces."""
    return [called(at, name, id), *(wrote(at, piece) for piece in pieces), closed(at)]


def reason(why: str | None, usage: Json | None = None, **fields: Any) -> list[Json]:
    counts = {"output_tokens": 7} if usage is None else usage
    return [{"type": "message_delta", "delta": {"stop_reason": why, **fields}, "usage": counts}]


END: list[Json] = [{"type": "message_stop"}]
PING: list[Json] = [{"type": "ping"}]


def stop(why: str = "end_turn", **fields: Any) -> list[Json]:
    """Why the answer ends, and the end mark."""
    return [*reason(why, **fields), *END]


def error(type: str, message: str) -> list[Json]:
    return [{"type": "error", "error": {"type": type, "message": message}}]


def raw(events: Iterable[Json], end: str = "\n") -> bytes:
    """The events as the server writes them, each with its name."""
    lines = [
        line for event in events for line in (f"event: {event['type']}", f"data: {json.dumps(event)}", "")
    ]
    return "".join(line + end for line in lines).encode()


def answers(*groups: Iterable[Json]) -> Answer:
    """A response, one piece for each event."""
    return Answer([raw([event]) for group in groups for event in group])


def feed(decoder: AnthropicDecoder, *groups: Iterable[Any]) -> list[AssistantMessageEvent]:
    items = (item for group in groups for item in group)
    return [out for item in items for out in decoder.feed(SseEvent("message", json.dumps(item).encode()))]


def decode_bytes(*pieces: bytes) -> list[AssistantMessageEvent]:
    reader, decoder = SseReader(), AnthropicDecoder(MODEL)
    events = [out for piece in pieces for event in reader.feed(piece) for out in decoder.feed(event)]
    events += [out for event in reader.close() for out in decoder.feed(event)]
    return events + decoder.finish(reader.stray)


def decode(*groups: Iterable[Json]) -> list[AssistantMessageEvent]:
    return decode_bytes(raw(event for group in groups for event in group))


def last(events: list[AssistantMessageEvent]) -> AssistantMessage:
    end = events[-1]
    assert isinstance(end, DoneEvent | ErrorEvent)
    return end.message


def message(*groups: Iterable[Json]) -> AssistantMessage:
    return last(decode(*groups))


def types(events: list[AssistantMessageEvent]) -> str:
    return " ".join(event.type for event in events)
