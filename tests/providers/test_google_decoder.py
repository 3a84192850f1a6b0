"""Gemini streams of every kind, as chunks, and the message each becomes."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rx_agent.events import AssistantMessageEvent
from rx_agent.messages import TextContent, ThinkingContent, ToolCall
from rx_agent.models import Usage
from rx_agent.providers.google.decoder import GoogleDecoder
from rx_agent.providers.google.usage import google_usage
from rx_agent.providers.http_errors import Failure
from rx_agent.providers.sse import SseEvent
from rx_agent.providers.stream_decoder import MalformedEventError
from tests.providers.google_chunks import (
    MODEL,
    USAGE,
    call,
    chunk,
    decode,
    decode_bytes,
    last,
    message,
    stop,
    streamed,
    text,
    thought,
    types,
)
from tests.providers.loopback import Json, sse

# --- text and thoughts -------------------------------------------------------------------------------------


def test_text():
    events = decode(text("Hel", "lo"), stop())
    assert types(events) == "start text_start text_delta text_delta text_end done"
    got = last(events)
    assert (got.text, got.stop_reason, got.response_id) == ("Hello", "stop", "r-1")
    assert got.usage == Usage(input=5, output=5, cache_read=4, reasoning=3).priced(MODEL.cost)
    assert got.usage.cost.total == pytest.approx((5 + 2 + 10) / 1e6)


def test_thoughts_before_text():
    events = decode(thought("h", "m"), text("4"), stop())
    assert types(events) == (
        "start thinking_start thinking_delta thinking_delta thinking_end text_start text_delta text_end done"
    )
    assert (last(events).thinking, last(events).text) == ("hm", "4")


def test_a_part_with_a_signature_is_a_block_of_its_own():
    got = message(text("a", "b"), [chunk({"text": "c", "thoughtSignature": "c2ln"})], text("d"), stop())
    assert got.content == (
        TextContent(text="ab"),
        TextContent(text="c", signature="c2ln"),
        TextContent(text="d"),
    )


def test_a_signed_thought_keeps_its_signature():
    got = message([chunk({"text": "hm", "thought": True, "thoughtSignature": "c2ln"})], text("x"), stop())
    assert got.content[0] == ThinkingContent(thinking="hm", signature="c2ln")


def test_a_signature_on_a_text_of_no_characters_is_kept_alone():
    got = message(text("x"), [chunk({"text": "", "thoughtSignature": "c2ln"}, finish="STOP")])
    assert got.content == (
        TextContent(text="x"),
        ThinkingContent(thinking="", signature="c2ln", redacted=True),
    )
    assert got.text == "x"


def test_parts_that_a_message_has_no_place_for_are_kept_whole():
    code: Json = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "c2ln"}
    image: Json = {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}
    got = message([chunk(code, {"text": ""}), chunk({"toolCall": {"id": "1"}}, image)], text("1"), stop())
    kept = [json.loads(block.signature or "") for block in got.content if isinstance(block, ThinkingContent)]
    assert kept == [code, {"toolCall": {"id": "1"}}, image]
    assert (got.text, got.thinking) == ("1", "")


def test_several_parts_in_one_event_and_an_empty_one():
    got = message([chunk({"text": "a"}, {"text": "b"}, {}, {"text": ""}, {"thought": True})], stop())
    assert got.content == (TextContent(text="ab"),)


def test_only_the_first_candidate_counts():
    def both(said: str, other: str) -> Json:
        candidates = [
            {"content": {"parts": [{"text": said}]}},
            {"content": {"parts": [{"text": other}]}, "index": 1},
        ]
        return {"candidates": candidates}

    other_alone = {
        "candidates": [{"index": 1, "content": {"parts": [{"text": "Z"}]}, "finishReason": "SAFETY"}]
    }
    got = message([both("a", "X"), both("b", "Y"), other_alone], stop())
    assert (got.text, got.stop_reason) == ("ab", "stop")


def test_what_is_unknown_is_passed_over():
    odd = {"candidates": [{"content": {"parts": [{"text": "a"}]}, "novelty": [1]}], "novelty": {"x": None}}
    assert message([{"novelty": 1}, odd, {"candidates": []}, {"candidates": [{}]}], stop()).text == "a"


def test_events_after_the_end_do_not_count():
    decoder = GoogleDecoder(MODEL)
    decoder.feed(SseEvent("message", json.dumps({"error": {"message": "no"}}).encode()))
    assert decoder.feed(SseEvent("message", json.dumps(chunk({"text": "late"})).encode())) == []
    assert decoder.finish() == decoder.break_off(Failure("x")) == []


def test_halves_of_an_emoji_and_a_lone_surrogate_are_taken():
    raw = (
        b'data: {"candidates": [{"content": {"parts": [{"text": "a\\ud83d"}]}, "finishReason": "STOP"}]}\n\n'
    )
    assert last(decode_bytes(raw)).text == "a\ud83d"


# --- function calls ----------------------------------------------------------------------------------------


def test_a_call():
    events = decode([chunk(call("add", "c2ln", id="f1", args={"a": 2, "b": "ü"}))], stop())
    assert types(events) == "start toolcall_start toolcall_delta toolcall_end done"
    got = last(events)
    assert got.stop_reason == "tool_use"
    assert got.content == (ToolCall(id="f1", name="add", arguments={"a": 2, "b": "ü"}, signature="c2ln"),)


def test_calls_without_ids_get_the_same_ones_each_time_and_no_two_alike():
    groups = [chunk(call("f"), call("f", args={}))], [chunk(call("g", id="x"), call("g", id="x"))], stop()
    ids = [each.id for each in message(*groups).tool_calls]
    assert ids == ["call_r-1_0", "call_r-1_1", "x", "call_r-1_3"]
    assert [each.id for each in message(*groups).tool_calls] == ids


def test_where_nothing_is_numbered_ids_differ_from_answer_to_answer():
    nameless = [{"candidates": [{"content": {"parts": [call("f")]}, "finishReason": "STOP"}]}]
    assert message(nameless).tool_calls[0].id != message(nameless).tool_calls[0].id


def test_an_id_of_the_server_that_looks_like_one_of_ours_is_no_trouble():
    got = message([chunk(call("f", id="call_r-1_1"), call("g"))], stop())
    assert len({each.id for each in got.tool_calls}) == 2


def test_text_between_calls_stands_in_its_place():
    got = message(text("a"), [chunk(call("f"), {"text": "b"}, call("g"))], stop())
    assert [block.type for block in got.content] == ["text", "tool_call", "text", "tool_call"]


@pytest.mark.parametrize("args", [[1], "x", 7, True])
def test_arguments_that_are_no_object_make_an_invalid_call(args: Any):
    (got,) = message([chunk(call("f", args=args))], stop()).tool_calls
    assert (got.arguments, json.loads(got.invalid_arguments or "")) == ({}, args)


@pytest.mark.parametrize("depth", [150, 900])
@pytest.mark.parametrize("form", ['{"a": %s}', "%s"])
def test_arguments_that_are_nested_too_deeply_make_an_invalid_call(depth: int, form: str):
    args = form % ("[" * depth + "]" * depth)
    raw = sse(*stop(), chunk(call("f", args="HERE")), done=False).replace(b'"HERE"', args.encode())
    (got,) = last(decode_bytes(raw)).tool_calls
    assert got.invalid_arguments is not None


def test_an_end_mark_without_a_call_is_nothing():
    assert message([chunk({"functionCall": {}})], text("a"), stop()).content == (TextContent(text="a"),)


# --- how it ends -------------------------------------------------------------------------------------------


def test_the_length_limit():
    assert message(text("Hel"), stop("MAX_TOKENS")).stop_reason == "length"
    assert message([chunk(call("f"))], stop("MAX_TOKENS")).stop_reason == "length"


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("SAFETY", "refused"),
        ("RECITATION", "refused"),
        ("PROHIBITED_CONTENT", "refused"),
        ("SPII", "refused"),
        ("MALFORMED_FUNCTION_CALL", "unknown"),
        ("UNEXPECTED_TOOL_CALL", "unknown"),
        ("OTHER", "unknown"),
        ("MISSING_THOUGHT_SIGNATURE", "invalid_request"),
    ],
)
def test_an_answer_that_was_stopped_is_an_error_and_keeps_what_came(reason: str, kind: str):
    got = message(text("Hel"), [chunk(call("f", args={}), finish=reason, said="because")])
    assert (got.text, got.stop_reason, got.error_kind) == ("Hel", "error", kind)
    assert reason in (got.error_message or "")
    assert "because" in (got.error_message or "")


def test_a_last_candidate_may_have_a_reason_and_nothing_else():
    got = message(text("a"), [{"candidates": [{"finishReason": "RECITATION"}]}])
    assert (got.text, got.stop_reason, got.error_kind) == ("a", "error", "refused")


def test_a_finish_reason_that_nobody_knows_yet_is_an_end():
    assert message(text("a"), stop("TIRED")).stop_reason == "stop"
    assert message([chunk(call("f"))], stop("TIRED")).stop_reason == "tool_use"


def test_a_finish_reason_of_nothing_is_none():
    assert message(text("a"), stop("FINISH_REASON_UNSPECIFIED")).stop_reason == "error"


def test_a_blocked_prompt_is_a_refusal():
    feedback = {"blockReason": "SAFETY", "blockReasonMessage": "Rude.", "safetyRatings": []}
    got = message([{"promptFeedback": feedback, "usageMetadata": USAGE}])
    assert (got.stop_reason, got.error_kind, got.usage.input) == ("error", "refused", 5)
    assert got.error_message == "google blocked the prompt (SAFETY): Rude."


def test_feedback_that_blocks_nothing_is_no_error():
    harmless = {"safetyRatings": [{"category": "X", "probability": "LOW"}]}
    assert message([chunk({"text": "a"}, promptFeedback=harmless)], text("b"), stop()).text == "ab"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}, "overloaded"),
        ({"code": 429, "message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED"}, "rate_limit"),
        ({"code": 500, "message": "An internal error.", "status": "INTERNAL"}, "unknown"),
        ({"code": 504, "message": "Deadline expired.", "status": "DEADLINE_EXCEEDED"}, "timeout"),
        ({"code": 401, "message": "Bad token.", "status": "UNAUTHENTICATED"}, "auth"),
    ],
)
@pytest.mark.parametrize("listed", [False, True])
def test_an_error_in_the_middle(error: Json, kind: str, listed: bool):
    wire: Any = [{"error": error}] if listed else {"error": error}
    got = last(decode_bytes(sse(*text("Hel"), done=False) + b"data: %s\n\n" % json.dumps(wire).encode()))
    assert (got.text, got.stop_reason, got.error_kind) == ("Hel", "error", kind)
    assert error["message"] in (got.error_message or "")


@pytest.mark.parametrize("reason", [None, "STOP"])
def test_an_error_without_data_in_the_middle_counts_whatever_was_said_before(reason: str | None):
    bare = json.dumps(
        {"error": {"code": 503, "message": "Gone.", "status": "UNAVAILABLE"}}, indent=2
    ).encode()
    got = last(decode_bytes(sse(chunk({"text": "Hel"}, finish=reason), done=False), bare))
    assert (got.text, got.stop_reason, got.error_kind) == ("Hel", "error", "overloaded")
    assert "Gone." in (got.error_message or "")


def test_other_lines_that_are_no_events_do_not_hurt_a_whole_answer():
    assert (
        last(decode_bytes(sse(*text("a"), *stop(), done=False) + b"<!-- served by x -->\n")).stop_reason
        == "stop"
    )


def test_a_stream_without_a_finish_reason_is_cut():
    got = message(text("Hel"), [chunk(call("f", args={}))])
    assert (got.text, got.stop_reason, got.error_kind) == ("Hel", "error", "network")
    assert message([]).stop_reason == "error"
    assert message([{"candidates": [{"content": {}}]}]).stop_reason == "error"


def test_a_connection_that_breaks_behind_the_end_takes_nothing_away():
    decoder = GoogleDecoder(MODEL)
    for item in [*text("a"), *stop()]:
        decoder.feed(SseEvent("message", json.dumps(item).encode()))
    assert last(decoder.break_off(Failure("broken", "network"))).stop_reason == "stop"


def test_old_models_say_stop_with_every_event_which_proves_nothing_where_the_connection_breaks():
    items = [chunk({"text": piece}, finish="STOP") for piece in "abc"]
    assert message(items).text == "abc"
    assert message(items).stop_reason == "stop"
    decoder = GoogleDecoder(MODEL)
    for item in items:
        decoder.feed(SseEvent("message", json.dumps(item).encode()))
    got = last(decoder.break_off(Failure("broken", "network")))
    assert (got.text, got.stop_reason) == ("abc", "error")


def test_an_end_mark_of_another_api_is_understood():
    assert last(decode_bytes(sse(*text("a"), *stop()))).stop_reason == "stop"
    assert last(decode_bytes(sse(*text("a")))).stop_reason == "error"


# --- usage -------------------------------------------------------------------------------------------------


def test_the_last_counts_are_the_counts():
    early = chunk({"text": "a"}, usageMetadata={"promptTokenCount": 9, "candidatesTokenCount": 1})
    late = chunk(usageMetadata={"trafficType": "ON_DEMAND"})
    got = message([early, early], stop(), [late])
    assert (got.usage.input, got.usage.output, got.usage.cache_read) == (5, 5, 4)


@pytest.mark.parametrize("count", [None, -1, 1.5, "9", 10**30, [1]])
def test_counts_that_are_none_are_zero(count: Any):
    assert google_usage({"promptTokenCount": count, "thoughtsTokenCount": count}) == Usage()


# --- garbage -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "odd",
    [
        [],
        [1, 2],
        7,
        None,
        "x",
        {"candidates": 7},
        {"candidates": [7]},
        {"candidates": [{"content": 7}]},
        {"candidates": [{"content": {"parts": 7}}]},
        {"candidates": [{"content": {"parts": ["x"]}}]},
        {"candidates": [{"content": {"parts": [{"text": 7}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "x", "thoughtSignature": 7}]}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": 7}]}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": 7}}]}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "id": 7}}]}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "partialArgs": 7}}]}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "partialArgs": [7]}}]}}]},
        {
            "candidates": [
                {
                    "content": {
                        "parts": [
                            {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": 7}]}},
                        ]
                    }
                }
            ]
        },
        {"candidates": [{"finishReason": ["STOP"]}]},
        {"promptFeedback": 7},
    ],
)
def test_wrong_types_are_an_error_and_what_came_stands(odd: Any):
    got = last(decode_bytes(sse(*text("Hel"), done=False) + b"data: %s\n\n" % json.dumps(odd).encode()))
    assert (got.text, got.stop_reason) == ("Hel", "error")


def test_what_is_no_json_is_malformed():
    with pytest.raises(MalformedEventError, match="nonsense"):
        GoogleDecoder(MODEL).feed(SseEvent("message", b"{nonsense"))
    assert GoogleDecoder(MODEL).feed(SseEvent("message", b" ")) == []


MATERIAL = [
    [*thought("hm"), *text("Hä", "llo"), *stop()],
    [chunk(call("f", "c2ln", args={"a": [1, {"b": None}]}), call("g")), *stop()],
    [
        chunk(call("f", willContinue=True)),
        *streamed({"jsonPath": "$.a[0]", "stringValue": "x", "willContinue": True}),
        *stop("MAX_TOKENS"),
    ],
    [chunk({"text": "", "thoughtSignature": "c2ln"}, {"executableCode": {}}), {"error": {"code": 500}}],
]
SCRAPS: list[Any] = [None, [], {}, 7, "", "x", True, [[]], {"a": 1}, 1e400, 10**400]


def mutated(value: Any, dice: random.Random) -> Any:
    """``value`` with something in it exchanged or taken away."""
    if dice.random() < 0.15:
        return dice.choice(SCRAPS)
    if isinstance(value, dict):
        return {key: mutated(each, dice) for key, each in value.items() if dice.random() > 0.05}
    if isinstance(value, list):
        return [mutated(each, dice) for each in value]
    return value


def test_four_thousand_mutated_streams_each_end_in_a_message():
    for seed in range(4000):
        dice = random.Random(seed)
        decoder = GoogleDecoder(MODEL)
        events: list[AssistantMessageEvent] = []
        for item in dice.choice(MATERIAL):
            events += decoder.feed(SseEvent("message", json.dumps(mutated(item, dice)).encode()))
        events += decoder.finish()
        kinds = [event.type for event in events]
        assert kinds[0] == "start", seed
        assert kinds.count("done") + kinds.count("error") == 1, seed
        assert kinds[-1] in ("done", "error"), seed
        last(events).model_dump_json()


@given(st.data())
def test_any_split_of_the_bytes_gives_the_same_message(data: st.DataObject):
    raw = sse(*thought("hm"), *text("Hä", "llo 😀"), chunk(call("f", args={"a": "ü"})), *stop(), done=False)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert last(decode_bytes(*pieces)) == last(decode_bytes(raw))
