"""What a Gemini server would say, and the message that becomes of it."""

from __future__ import annotations

from typing import Any

from rx_agent.events import AssistantMessageEvent, DoneEvent, ErrorEvent
from rx_agent.messages import AssistantMessage
from rx_agent.models import Model, ModelCost
from rx_agent.providers.google.decoder import GoogleDecoder
from rx_agent.providers.sse import SseReader
from tests.providers.loopback import Json, sse

MODEL = Model(
    id="gemini-3-flash-preview",
    api="google",
    provider="google",
    cost=ModelCost(input=1.0, output=2.0, cache_read=0.5),
)
USAGE = {
    "promptTokenCount": 9,
    "cachedContentTokenCount": 4,
    "candidatesTokenCount": 2,
    "thoughtsTokenCount": 3,
    "totalTokenCount": 14,
}


def chunk(*parts: Json, finish: str | None = None, said: str | None = None, **fields: Any) -> Json:
    """An event with one candidate. ``response`` is its id."""
    candidate: Json = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    if said is not None:
        candidate["finishMessage"] = said
    return {"candidates": [candidate], "responseId": "r-1", "modelVersion": "g", **fields}


def text(*pieces: str) -> list[Json]:
    return [chunk({"text": piece}) for piece in pieces]


def thought(*pieces: str) -> list[Json]:
    return [chunk({"text": piece, "thought": True}) for piece in pieces]


def stop(reason: str = "STOP", **fields: Any) -> list[Json]:
    return [chunk(finish=reason, usageMetadata=USAGE, **fields)]


def call(name: str, signature: str | None = None, **fields: Any) -> Json:
    part: Json = {"functionCall": {"name": name, **fields}}
    return part if signature is None else {**part, "thoughtSignature": signature}


def streamed(*pieces: Json, more: bool = True) -> list[Json]:
    """Pieces of arguments of an open call, one event each; the last ends the call unless ``more``."""
    last = len(pieces) - 1
    return [
        chunk(
            {
                "functionCall": {
                    "partialArgs": [piece],
                    **({"willContinue": True} if more or at < last else {}),
                }
            }
        )
        for at, piece in enumerate(pieces)
    ]


def decode_bytes(*pieces: bytes) -> list[AssistantMessageEvent]:
    reader, decoder = SseReader(), GoogleDecoder(MODEL)
    events = [out for piece in pieces for event in reader.feed(piece) for out in decoder.feed(event)]
    events += [out for event in reader.close() for out in decoder.feed(event)]
    return events + decoder.finish(reader.stray)


def decode(*groups: list[Json]) -> list[AssistantMessageEvent]:
    return decode_bytes(sse(*(item for group in groups for item in group), done=False))


def last(events: list[AssistantMessageEvent]) -> AssistantMessage:
    end = events[-1]
    assert isinstance(end, DoneEvent | ErrorEvent)
    return end.message


def message(*groups: list[Json]) -> AssistantMessage:
    return last(decode(*groups))


def types(events: list[AssistantMessageEvent]) -> str:
    return " ".join(event.type for event in events)
