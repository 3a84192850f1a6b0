"""Whatever a server sends, each run ends with one ``done`` or ``error``; nothing hangs and nothing crashes."""

from __future__ import annotations

import asyncio
import gzip
import random
from collections.abc import Mapping
from typing import Any

import pytest

from rx_agent.messages import AssistantMessage, UserMessage
from rx_agent.models import Model
from rx_agent.providers.anthropic.decoder import AnthropicDecoder
from rx_agent.providers.base import Context, StreamOptions, Timeouts
from rx_agent.providers.google.decoder import GoogleDecoder
from rx_agent.providers.http_errors import Failure
from rx_agent.providers.openai_chat import stream
from rx_agent.providers.openai_chat.decoder import ChatDecoder
from rx_agent.providers.openai_responses.decoder import ResponsesDecoder
from rx_agent.providers.sse import SseReader
from rx_agent.providers.stream_decoder import MalformedEventError, StreamDecoder
from tests.providers import anthropic_events as anthropic
from tests.providers import google_chunks as google
from tests.providers.loopback import (
    FOREVER,
    Answer,
    ChatServer,
    body,
    chunk,
    events_of,
    finish,
    sse,
    text,
    thinking,
    tool_call,
    usage,
)

WHOLE = sse(*text("Hello"), *finish("stop"))


def answered(answer: Answer, **options: Any) -> AssistantMessage:
    async def main() -> AssistantMessage:
        async with ChatServer(answer) as server:
            context = Context("", [UserMessage(content="hi")])
            settings = StreamOptions(max_retries=0, timeouts=Timeouts(first_byte=5, idle=5), **options)
            events = await events_of(stream(server.model(), context, settings))
            assert [event.type in ("done", "error") for event in events] == [False] * (len(events) - 1) + [
                True
            ]
            return events[-1].message

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (body(b"<html><title>Log in</title></html>", type="text/html"), "Log in"),
        (body(b"<html><title>Log in</title></html>", type="text/plain"), "web page"),
        (body(b""), "ended before it was complete"),
        (Answer([], 204, {}), "ended before it was complete"),
        (body(b"data: {nonsense}\n\n"), "not an event of this API"),
        (body(b"data: [1, 2]\n\n"), "not an event of this API"),
        (body(b'{"error": {"message": "bad luck"}}', type="application/json"), "bad luck"),
        (body(b'{"error": {"message": "bad luck"}}', status=400, type="application/json"), "bad luck"),
        (body(WHOLE[:30]), "ended before it was complete"),
        (body(b": only\n\n: comments\n\n"), "ended before it was complete"),
        (body(b"data: [DONE]\n\n"), "nothing came"),
        (body(b"not gzip", content_encoding="gzip"), "No answer"),
        (body(gzip.compress(WHOLE)[:60], content_encoding="gzip"), "ended before it was complete"),
    ],
)
def test_garbage_is_an_error_that_names_it(answer: Answer, words: str):
    got = answered(answer)
    assert got.stop_reason == "error"
    assert words in (got.error_message or "")


def test_what_is_odd_but_whole_is_an_answer():
    assert answered(body(gzip.compress(WHOLE), content_encoding="gzip", size=7)).text == "Hello"
    assert answered(body(WHOLE, type="text/plain")).text == "Hello"
    assert answered(body(b"\xef\xbb\xbf" + WHOLE.replace(b"\n", b"\r"))).text == "Hello"
    assert answered(body(WHOLE + b"data: {more}\n\n<html>")).text == "Hello"
    assert answered(Answer([WHOLE.removesuffix(b"data: [DONE]\n\n")], cut=True)).text == "Hello"


def test_ten_megabytes_in_one_event():
    large = "x" * 10_000_000
    assert answered(body(sse(*text(large), *finish("stop")), size=10_000)).text == large


CHAT = [
    sse(*thinking("hm"), *text("Hä", "llo"), *finish("stop"), *usage(3, 2)),
    sse(*tool_call("f", {"a": [1, {"b": None}]}), *tool_call("g", {}, index=1), *finish("tool_calls")),
    sse(
        chunk({"content": [{"type": "text", "text": "a"}], "reasoning_details": [{"type": "t", "text": "x"}]})
    ),
    sse(*text("a"), {"error": {"message": "no", "code": 429}}),
]
ANTHROPIC = [
    anthropic.raw(
        [
            *anthropic.start(input_tokens=7),
            *anthropic.thinking("hm"),
            *anthropic.text("Hä", "llo", at=1),
            *anthropic.call("f", '{"a": ', "[1]}", at=2),
            *anthropic.stop("tool_use"),
        ]
    ),
    anthropic.raw([*anthropic.start(), *anthropic.text("a", "b", "c"), *anthropic.stop()]),
    anthropic.raw([*anthropic.start(), *anthropic.text("a"), *anthropic.error("overloaded_error", "no")]),
]
AT = {"output_index": 0, "item_id": "i"}
RESPONSES = [
    sse(
        {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
        {"type": "response.output_item.added", **AT, "item": {"type": "reasoning", "id": "i", "summary": []}},
        {"type": "response.reasoning_summary_text.delta", **AT, "summary_index": 0, "delta": "hm"},
        {
            "type": "response.output_item.done",
            **AT,
            "item": {
                "type": "reasoning",
                "id": "i",
                "encrypted_content": "x",
                "summary": [{"type": "summary_text", "text": "hm"}],
            },
        },
        {"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "id": "m"}},
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Hä"},
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "llo"},
        {
            "type": "response.output_item.added",
            "output_index": 2,
            "item": {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": ""},
        },
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"a": 1}'},
        {
            "type": "response.output_item.done",
            "output_index": 2,
            "item": {
                "type": "function_call",
                "id": "fc",
                "call_id": "c",
                "name": "f",
                "arguments": '{"a": 1}',
            },
        },
        {
            "type": "response.completed",
            "response": {"id": "r", "status": "completed", "usage": {"input_tokens": 3, "output_tokens": 2}},
        },
    ),
    sse(
        {"type": "response.output_item.added", **AT, "item": {"type": "message", "id": "m"}},
        {"type": "response.refusal.delta", **AT, "content_index": 0, "delta": "No."},
        {
            "type": "response.incomplete",
            "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
        },
    ),
    sse({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "no"}}}),
    sse({"type": "error", "code": "rate_limit_exceeded", "message": "no"}),
]
GOOGLE = [
    sse(*google.thought("hm"), *google.text("Hä", "llo"), *google.stop()),
    sse(google.chunk(google.call("f", args={"a": [1, None]}), google.call("g")), *google.stop()),
    sse(*google.text("a"), *google.stop("SAFETY")),
    sse({"promptFeedback": {"blockReason": "SAFETY"}}),
]
DECODERS: Mapping[str, tuple[type[StreamDecoder], list[bytes]]] = {
    "openai_chat": (ChatDecoder, CHAT),
    "anthropic": (AnthropicDecoder, ANTHROPIC),
    "openai_responses": (ResponsesDecoder, RESPONSES),
    "google": (GoogleDecoder, GOOGLE),
}
SCRAPS = [
    b"null",
    b"[]",
    b"{}",
    b"7",
    b'""',
    b"\x00",
    b"\xff",
    b"\r",
    b"\n\n",
    b"data: ",
    b'"',
    b"}",
    b"{",
    b"true",
    b"[[[",
]


def mutated(dice: random.Random, material: list[bytes]) -> bytes:
    """A stream with some bytes cut out, doubled, or replaced by others."""
    raw = bytearray(dice.choice(material))
    for _ in range(dice.randint(1, 4)):
        start = dice.randrange(len(raw) + 1)
        end = min(len(raw), start + dice.choice((0, 1, 1, 2, 5, 20)))
        match dice.randrange(4):
            case 0:
                del raw[start:end]
            case 1:
                raw[start:start] = raw[start:end]
            case 2:
                raw[start:end] = dice.choice(SCRAPS)
            case _:
                # A whole JSON value in exchange for another.
                at = raw.find(b":", start)
                stop = min(
                    (raw.find(mark, at + 1) for mark in (b",", b"}") if raw.find(mark, at + 1) > 0), default=0
                )
                raw[at + 1 : stop or at + 1] = dice.choice(SCRAPS)
    return bytes(raw)


@pytest.mark.parametrize("api", DECODERS)
def test_six_thousand_mutated_streams_each_end_in_a_message(api: str):
    made, material = DECODERS[api]
    model = Model(id="m", api=api, provider="p")
    for seed in range(6000):
        dice = random.Random(seed)
        reader, decoder = SseReader(), made(model)
        raw, size = mutated(dice, material), dice.choice((1, 7, 10_000))
        events: list[Any] = []
        try:
            for at in range(0, len(raw), size):
                for event in reader.feed(raw[at : at + size]):
                    events += decoder.feed(event)
            for event in reader.close():
                events += decoder.feed(event)
        except MalformedEventError as error:
            events += decoder.fail(Failure(str(error), "network"))
        events += decoder.finish(reader.stray)
        kinds = [event.type for event in events]
        assert kinds[0] == "start", seed
        assert kinds.count("done") + kinds.count("error") == 1, seed
        assert events[-1].message.stop_reason is not None, seed
        assert all(event.partial is not None for event in events[:-1]), seed
        events[-1].message.model_dump()


@pytest.mark.parametrize(("status", "kind"), [(401, "auth"), (503, "overloaded"), (400, "invalid_request")])
@pytest.mark.parametrize("said", [b"", b'{"error": {"message": "go aw'])
def test_a_status_is_told_although_its_explanation_never_ends(
    status: int, kind: str, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rx_agent.providers.http_pump.ERROR_BODY_PATIENCE", 0.1)
    got = answered(Answer([said, FOREVER], status))
    assert got.error_kind == kind
    assert str(status) in (got.error_message or "")


@pytest.mark.parametrize("count", [10**400, -5, 1.5, "many", True, 2**60])
def test_token_counts_that_are_none_cost_no_answer(count: Any) -> None:
    counts = {"prompt_tokens": count, "completion_tokens": 3}
    got = answered(body(sse(*text("Hello"), *finish("stop"), {"choices": [], "usage": counts})))
    assert (got.text, got.stop_reason, got.usage.output) == ("Hello", "stop", 3)


def test_a_decoder_that_breaks_in_its_very_last_step_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: ChatDecoder) -> None:
        raise OverflowError("too many tokens")

    monkeypatch.setattr(ChatDecoder, "usage", broken)
    got = answered(body(WHOLE))
    assert (got.text, got.stop_reason) == ("Hello", "error")
    assert "OverflowError: too many tokens" in (got.error_message or "")
