"""Messages streams of every kind, as events, and the message each becomes."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rx_agent.messages import TextContent, ThinkingContent, ToolCall
from rx_agent.models import ModelCost, Usage
from rx_agent.providers.anthropic.decoder import AnthropicDecoder
from rx_agent.providers.anthropic.usage import anthropic_usage, merged_usage
from rx_agent.providers.http_errors import Failure
from rx_agent.providers.sse import SseEvent
from rx_agent.providers.stream_decoder import MalformedEventError
from tests.providers.anthropic_events import (
    END,
    MODEL,
    PING,
    call,
    called,
    closed,
    decode,
    decode_bytes,
    delta,
    error,
    feed,
    last,
    message,
    opened,
    raw,
    reason,
    said,
    signed,
    start,
    stop,
    text,
    thinking,
    thought,
    types,
    wrote,
)
from tests.providers.loopback import Json

# --- text and thinking -------------------------------------------------------------------------------------


def test_text():
    events = decode(start(), text("Hel", "lo"), stop())
    assert types(events) == "start text_start text_delta text_delta text_end done"
    got = last(events)
    assert (got.text, got.stop_reason, got.response_id) == ("Hello", "stop", "msg_1")
    assert (got.api, got.provider, got.model) == ("anthropic", "anthropic", MODEL.id)


def test_the_start_is_told_before_any_block():
    assert types(feed(AnthropicDecoder(MODEL), start())) == "start"


def test_text_that_stands_in_the_start_of_its_block():
    got = message(start(), [opened(0, "text", text="Hel"), said(0, "lo"), closed(0)], stop())
    assert got.content == (TextContent(text="Hello"),)


def test_a_text_block_without_a_word_is_none():
    events = decode(start(), text(), text("", "a", at=1), text("", at=2), stop())
    assert types(events) == "start text_start text_delta text_end done"
    assert last(events).content == (TextContent(text="a"),)


def test_thinking_is_signed_at_its_end():
    events = decode(start(), thinking("h", "m", signature="c2ln"), text("4", at=1), stop())
    assert types(events) == (
        "start thinking_start thinking_delta thinking_delta thinking_end text_start text_delta text_end done"
    )
    assert last(events).content == (
        ThinkingContent(thinking="hm", signature="c2ln"),
        TextContent(text="4"),
    )


def test_a_signature_in_pieces_is_joined():
    got = message(
        start(),
        [opened(0, "thinking"), thought(0, "hm"), signed(0, "c2"), signed(0, "ln"), closed(0)],
        stop(),
    )
    assert got.content == (ThinkingContent(thinking="hm", signature="c2ln"),)


def test_a_signature_in_the_start_of_the_block_counts_until_a_later_one_comes():
    begun = opened(0, "thinking", thinking="hm", signature="early")
    assert message(start(), [begun, closed(0)], stop()).content == (
        ThinkingContent(thinking="hm", signature="early"),
    )
    assert message(start(), [begun, signed(0, "late"), closed(0)], stop()).content == (
        ThinkingContent(thinking="hm", signature="late"),
    )


def test_thinking_that_is_kept_to_itself_is_a_signature_alone():
    got = message(start(), thinking(signature="c2ln"), text("4", at=1), stop())
    assert got.content[0] == ThinkingContent(thinking="", signature="c2ln")


def test_thinking_without_a_signature():
    assert message(start(), thinking("hm", signature=None), stop()).content == (
        ThinkingContent(thinking="hm"),
    )


def test_redacted_thinking():
    events = decode(
        start(), [opened(0, "redacted_thinking", data="b3c="), closed(0)], text("4", at=1), stop()
    )
    assert types(events) == "start thinking_start thinking_end text_start text_delta text_end done"
    assert last(events).content[0] == ThinkingContent(thinking="", signature="b3c=", redacted=True)
    assert last(events).thinking == ""


def test_a_server_that_leaves_out_the_starts():
    got = message([thought(0, "hm"), signed(0, "s"), said(1, "4")], stop())
    assert got.content == (ThinkingContent(thinking="hm", signature="s"), TextContent(text="4"))


def test_halves_of_an_emoji_and_a_lone_surrogate_are_taken():
    assert message(start(), text("a\ud83d", "\ude00b"), stop()).text == "a\U0001f600b"
    assert message(start(), text("a\ud83d", "b"), stop()).text == "a\ud83db"


# --- tool calls --------------------------------------------------------------------------------------------


def test_a_call():
    events = decode(start(), call("add", '{"a": 2,', ' "b": "ü"}', id="toolu_9"), stop("tool_use"))
    assert types(events) == "start toolcall_start toolcall_delta toolcall_delta toolcall_end done"
    got = last(events)
    assert got.stop_reason == "tool_use"
    assert got.content == (ToolCall(id="toolu_9", name="add", arguments={"a": 2, "b": "ü"}),)


def test_pieces_of_nothing_are_no_deltas():
    events = decode(start(), call("add", "", '{"a":', "", " 1}", ""), stop("tool_use"))
    assert types(events).count("toolcall_delta") == 2
    assert last(events).tool_calls[0].arguments == {"a": 1}


@pytest.mark.parametrize("pieces", [[], [""], ["{}"]])
def test_a_call_without_arguments(pieces: list[str]):
    (got,) = message(start(), call("now", *pieces), stop("tool_use")).tool_calls
    assert (got.arguments, got.invalid_arguments) == ({}, None)


@pytest.mark.parametrize("given", [{"a": [1, "ü"]}, '{"a": [1, "ü"]}'])
@pytest.mark.parametrize("pieces", [[], [""]])
def test_an_input_that_is_whole_at_the_start(given: Any, pieces: list[str]):
    written = [wrote(0, piece) for piece in pieces]
    events = decode(start(), [called(0, "add", input=given), *written, closed(0)], stop("tool_use"))
    assert types(events) == "start toolcall_start toolcall_delta toolcall_end done"
    assert last(events).tool_calls[0].arguments == {"a": [1, "ü"]}


def test_an_input_at_the_start_gives_way_to_deltas():
    got = message(
        start(), [called(0, "add", input={"a": 1}), wrote(0, '{"a"'), wrote(0, ": 2}"), closed(0)], stop()
    )
    assert got.tool_calls[0].arguments == {"a": 2}


def test_calls_in_a_row_with_text_between():
    got = message(
        start(),
        call("f", '{"a": 1}'),
        text("and", at=1),
        call("g", '{"b": 2}', at=2),
        call("f", at=3),
        stop("tool_use"),
    )
    assert [block.type for block in got.content] == ["tool_call", "text", "tool_call", "tool_call"]
    assert [(each.id, each.name, each.arguments) for each in got.tool_calls] == [
        ("toolu_0", "f", {"a": 1}),
        ("toolu_2", "g", {"b": 2}),
        ("toolu_3", "f", {}),
    ]


def test_blocks_that_arrive_interleaved_are_kept_apart():
    mixed = [
        opened(0, "thinking"),
        called(1, "f"),
        called(2, "g"),
        opened(3, "text", text=""),
        wrote(2, '{"b":'),
        thought(0, "h"),
        said(3, "x"),
        wrote(1, '{"a":'),
        wrote(2, " 2}"),
        closed(2),
        thought(0, "m"),
        signed(0, "s"),
        wrote(1, " 1}"),
        said(3, "y"),
        closed(1),
        closed(0),
        closed(3),
    ]
    got = message(start(), mixed, stop("tool_use"))
    assert got.content == (
        ThinkingContent(thinking="hm", signature="s"),
        ToolCall(id="toolu_1", name="f", arguments={"a": 1}),
        ToolCall(id="toolu_2", name="g", arguments={"b": 2}),
        TextContent(text="xy"),
    )


def test_ids_that_are_missing_or_came_before_are_made_up():
    got = message(
        start(),
        [called(0, "f", "a"), closed(0), called(1, "f", "a"), closed(1)],
        [opened(2, "tool_use", name="g"), closed(2)],
        stop("tool_use"),
    )
    ids = [each.id for each in got.tool_calls]
    assert ids[0] == "a"
    assert len(set(ids)) == 3
    assert all(id.startswith("toolu_") for id in ids[1:])


def test_a_call_is_a_call_whatever_the_reason_says():
    assert message(start(), call("f"), stop("end_turn")).stop_reason == "tool_use"


@pytest.mark.parametrize("given", [[1], "x", 7, True])
def test_an_input_that_is_no_object_makes_an_invalid_call(given: Any):
    (got,) = message(start(), [called(0, "f", input=given), closed(0)], stop("tool_use")).tool_calls
    assert (got.arguments, got.invalid_arguments is None) == ({}, False)
    (got,) = message(start(), call("f", json.dumps(given)), stop("tool_use")).tool_calls
    assert (got.arguments, json.loads(got.invalid_arguments or "")) == ({}, given)


@pytest.mark.parametrize("depth", [150, 250, 900])
@pytest.mark.parametrize("form", ['{"a": %s}', "%s"])
def test_an_input_that_is_nested_too_deeply_makes_an_invalid_call(depth: int, form: str):
    deep = form % ("[" * depth + "]" * depth)
    at_once = raw([*start(), called(0, "f", input="HERE"), closed(0), *text("a", at=1), *stop("tool_use")])
    for got in (
        last(decode_bytes(at_once.replace(b'"HERE"', deep.encode()))),
        message(start(), call("f", deep), text("a", at=1), stop("tool_use")),
    ):
        assert got.tool_calls[0].invalid_arguments is not None
        assert (got.text, got.stop_reason) == ("a", "tool_use")


# --- what the message has no place for ---------------------------------------------------------------------


def test_tools_of_the_server_and_citations_are_passed_over():
    events = decode(
        start(),
        text("I look it up.", at=0),
        [
            opened(1, "server_tool_use", id="srvtoolu_1", name="web_search", input={}),
            wrote(1, '{"query": "rx"}'),
            closed(1),
            opened(2, "web_search_tool_result", tool_use_id="srvtoolu_1", content=[{"title": "Rx"}]),
            closed(2),
            opened(3, "text", text="", citations=[]),
            said(3, "Rx "),
            delta(3, "citations_delta", citation={"type": "web_search_result_location", "url": "u"}),
            said(3, "it is."),
            closed(3),
            opened(4, "novelty", text="?"),
            delta(4, "novelty_delta", text="?"),
            delta(4, "text_delta", text="?"),
            closed(4),
        ],
        stop(),
    )
    assert types(events) == (
        "start text_start text_delta text_end text_start text_delta text_delta text_end done"
    )
    assert last(events).content == (TextContent(text="I look it up."), TextContent(text="Rx it is."))


def test_pings_and_events_that_nobody_knows_yet_are_passed_over():
    got = message(
        PING,
        start(),
        PING,
        [opened(0, "text", text=""), *PING, said(0, "a"), {"type": "novelty", "index": 0}, said(0, "b")],
        [closed(0), delta(0, "text_delta", text=""), closed(7)],
        PING,
        stop(),
    )
    assert got.content == (TextContent(text="ab"),)


def test_the_name_of_an_event_stands_in_for_a_missing_type():
    decoder = AnthropicDecoder(MODEL)
    for event in (*start(), *text("a"), *stop()):
        nameless = {name: value for name, value in event.items() if name != "type"}
        events = decoder.feed(SseEvent(event["type"], json.dumps(nameless).encode()))
    assert last(events).text == "a"


# --- how it ends -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("why", ["end_turn", "stop_sequence", "pause_turn", "tired"])
def test_an_answer_that_ends_well(why: str):
    got = message(start(), text("a"), stop(why))
    assert (got.text, got.stop_reason, got.error_message) == ("a", "stop", None)


@pytest.mark.parametrize("why", ["max_tokens", "model_context_window_exceeded"])
def test_the_length_limit(why: str):
    assert message(start(), text("Hel"), stop(why)).stop_reason == "length"
    assert message(start(), call("f", '{"a": 1}'), stop(why)).stop_reason == "length"


@pytest.mark.parametrize("why", ["max_tokens", "model_context_window_exceeded"])
@pytest.mark.parametrize("is_closed", [True, False])
@pytest.mark.parametrize("end", [END, []])
def test_the_length_limit_in_the_middle_of_a_call(why: str, is_closed: bool, end: list[Json]):
    block = call("write", '{"path": "a.txt", "text": "onc')
    events = decode(start(), block if is_closed else block[:-1], reason(why), end)
    assert types(events) == "start toolcall_start toolcall_delta toolcall_end done"
    got = last(events)
    assert got.stop_reason == "length"
    (cut,) = got.tool_calls
    assert cut.arguments == {"path": "a.txt", "text": "onc"}
    assert cut.invalid_arguments == '{"path": "a.txt", "text": "onc'


def test_a_pause_of_a_server_tool_is_an_answer_that_stands():
    search = [opened(1, "server_tool_use", id="srvtoolu_1", name="web_search", input={}), closed(1)]
    got = message(start(), text("I look it up."), search, stop("pause_turn"))
    assert (got.text, got.stop_reason) == ("I look it up.", "stop")


@pytest.mark.parametrize(
    ("details", "said_why"),
    [
        ({}, "The model refused to answer."),
        ({"stop_details": None}, "The model refused to answer."),
        (
            {"stop_details": {"type": "refusal", "category": "cyber", "explanation": None}},
            "The model refused to answer (category cyber).",
        ),
        (
            {"stop_details": {"type": "refusal", "category": "bio", "explanation": "It is unsafe."}},
            "The model refused to answer (category bio): It is unsafe.",
        ),
    ],
)
def test_a_refusal_says_why_and_keeps_what_came(details: Json, said_why: str):
    got = message(start(), text("Well, "), stop("refusal", **details))
    assert (got.text, got.stop_reason, got.error_kind) == ("Well, ", "error", "refused")
    assert got.error_message == said_why
    assert (got.usage.output, got.response_id) == (7, "msg_1")


def test_a_refusal_before_the_first_word():
    got = message(start(), stop("refusal"))
    assert (got.content, got.error_kind) == ((), "refused")


@pytest.mark.parametrize(
    ("type", "words", "kind"),
    [
        ("overloaded_error", "Overloaded", "overloaded"),
        (
            "rate_limit_error",
            "Number of request tokens has exceeded your per-minute rate limit",
            "rate_limit",
        ),
        ("authentication_error", "invalid x-api-key", "auth"),
        ("invalid_request_error", "messages.0: text content blocks must be non-empty", "invalid_request"),
        ("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", "context_overflow"),
        (
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000",
            "context_overflow",
        ),
        ("timeout_error", "Request timed out", "timeout"),
        ("api_error", "Internal server error", "unknown"),
    ],
)
def test_an_error_in_the_middle(type: str, words: str, kind: str):
    events = decode(start(), [opened(0, "text", text=""), said(0, "Hel")], error(type, words))
    got = last(events)
    assert (got.text, got.stop_reason, got.error_kind) == ("Hel", "error", kind)
    assert words in (got.error_message or "")
    assert (got.usage.input, got.response_id) == (9, "msg_1")


def test_an_error_before_anything_else():
    events = decode(error("overloaded_error", "Overloaded"))
    assert types(events) == "start error"
    assert last(events).error_kind == "overloaded"


@pytest.mark.parametrize("wire", ['{"error": {"message": "no"}}', '{"type": "error", "error": "no"}'])
def test_an_error_as_others_write_it(wire: str):
    got = last(decode_bytes(raw([*start(), *text("a")]) + f"data: {wire}\n\n".encode()))
    assert (got.text, got.stop_reason) == ("a", "error")
    assert "no" in (got.error_message or "")


def test_an_error_counts_even_behind_the_stop_reason():
    got = message(start(), text("a"), reason("end_turn"), error("api_error", "Gone."))
    assert (got.text, got.stop_reason) == ("a", "error")


def test_events_after_the_end_do_not_count():
    decoder = AnthropicDecoder(MODEL)
    assert last(feed(decoder, start(), text("a"), stop())).text == "a"
    assert feed(decoder, text("late"), error("api_error", "late"), stop(), [7]) == []
    assert decoder.finish() == decoder.break_off(Failure("x")) == []


def test_a_stream_without_its_end_mark_is_whole_once_the_reason_is_there():
    got = message(start(), text("a"), reason("end_turn"))
    assert (got.text, got.stop_reason, got.usage.output) == ("a", "stop", 7)
    assert message(start(), call("f"), reason("tool_use")).stop_reason == "tool_use"


def test_a_connection_that_breaks_behind_the_reason_takes_nothing_away():
    decoder = AnthropicDecoder(MODEL)
    feed(decoder, start(), text("a"), reason("end_turn"))
    assert last(decoder.break_off(Failure("broken", "network"))).stop_reason == "stop"


@pytest.mark.parametrize(
    "groups",
    [
        [],
        [start()],
        [start(), text("Hel")],
        [start(), call("f", '{"a": 1}')],
        [start(), [called(0, "f"), wrote(0, '{"a": 1}')], reason("tool_use")],
    ],
)
def test_a_stream_that_is_cut(groups: list[list[Json]]):
    got = message(*groups)
    assert (got.stop_reason, got.error_kind) == ("error", "network")


def test_what_came_before_the_cut_stands():
    got = message(start(), [*thinking("hm"), opened(1, "text", text=""), said(1, "Hel")])
    assert (got.thinking, got.text, got.usage.input) == ("hm", "Hel", 9)


def test_an_end_mark_without_an_answer_is_an_error():
    got = message(start(), END)
    assert (got.stop_reason, got.error_kind) == ("error", "network")
    assert message(start(), stop()).stop_reason == "stop"


def test_an_end_mark_without_a_reason_ends_what_came():
    assert message(start(), text("a"), END).stop_reason == "stop"
    assert message(start(), call("f"), END).stop_reason == "tool_use"


def test_an_end_mark_of_another_api_is_understood():
    done = b"data: [DONE]\n\n"
    assert last(decode_bytes(raw([*start(), *text("a"), *reason("end_turn")]) + done)).stop_reason == "stop"
    assert last(decode_bytes(raw([*start(), *text("a"), *stop()]) + done)).stop_reason == "stop"
    assert last(decode_bytes(raw([*start(), *text("a")]) + done)).stop_reason == "error"


def test_blocks_that_are_never_ended_end_with_the_message():
    events = decode(start(), thinking("hm")[:-1], text("a", at=1)[:-1], stop())
    assert types(events) == (
        "start thinking_start thinking_delta text_start text_delta thinking_end text_end done"
    )
    assert last(events).content == (ThinkingContent(thinking="hm", signature="sig"), TextContent(text="a"))


def test_a_start_at_the_place_of_an_open_block_ends_it():
    got = message(start(), [opened(0, "text", text="a"), opened(0, "text", text="b"), closed(0)], stop())
    assert got.content == (TextContent(text="a"), TextContent(text="b"))


def test_a_second_start_begins_the_message_anew():
    events = decode(
        start("msg_1", input_tokens=500),
        [*thinking("hm"), opened(1, "text", text="old"), *call("f", id="a", at=2)],
        reason("max_tokens", {"output_tokens": 90}),
        start("msg_2", cache_read_input_tokens=4),
        text("new"),
        call("g", at=1, id="a"),
        stop("tool_use"),
    )
    assert types(events).startswith("start thinking_start")
    assert types(events).count("start ") == 1 + types(events).count("_start ")
    assert types(events).count("_start") == types(events).count("_end")
    got = last(events)
    assert got.content == (TextContent(text="new"), ToolCall(id="a", name="g"))
    assert (got.response_id, got.stop_reason) == ("msg_2", "tool_use")
    assert got.usage == Usage(input=9, output=7, cache_read=4).priced(MODEL.cost)


def test_a_second_start_forgets_a_refusal():
    got = message(start(), reason("refusal"), start("msg_2"), text("a"), reason(None), END)
    assert (got.text, got.stop_reason) == ("a", "stop")


# --- usage -------------------------------------------------------------------------------------------------


def test_counts_of_start_and_end_are_merged_and_never_added():
    counts = {"input_tokens": 9, "cache_read_input_tokens": 80, "cache_creation_input_tokens": 20}
    got = message(
        start(**counts), text("a"), reason(None, counts), stop(usage={**counts, "output_tokens": 7})
    )
    assert got.usage == Usage(input=9, output=7, cache_read=80, cache_write=20).priced(MODEL.cost)
    assert got.usage.total_tokens == 116
    assert got.usage.cost.total == pytest.approx((9 * 3 + 7 * 15 + 80 * 0.3 + 20 * 3.75) / 1e6)


def test_the_end_tells_the_output_alone():
    got = message(start(cache_read_input_tokens=80), text("a"), stop(usage={"output_tokens": 7}))
    assert (got.usage.input, got.usage.cache_read, got.usage.output) == (9, 80, 7)


def test_the_end_corrects_the_start():
    late = {"input_tokens": 700, "cache_read_input_tokens": 0, "output_tokens": 7}
    got = message(start(cache_read_input_tokens=80), text("a"), stop(usage=late))
    assert (got.usage.input, got.usage.cache_read) == (700, 0)


def test_servers_that_know_the_input_only_at_the_end():
    got = message(start(input_tokens=0), text("a"), stop(usage={"input_tokens": 12, "output_tokens": 7}))
    assert (got.usage.input, got.usage.output) == (12, 7)


@pytest.mark.parametrize("nothing", [0, None])
def test_an_end_without_input_takes_none_away(nothing: int | None):
    ages = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 20}
    early = {"cache_creation_input_tokens": 20, "cache_creation": ages}
    late = {
        "input_tokens": nothing,
        "cache_read_input_tokens": nothing,
        "cache_creation_input_tokens": nothing,
        "cache_creation": nothing if nothing is None else dict.fromkeys(ages, nothing),
        "output_tokens": 7,
    }
    got = message(start(**early), text("a"), stop(usage=late))
    assert (got.usage.input, got.usage.cache_write, got.usage.output) == (9, 20, 7)
    assert got.usage.cost.cache_write == pytest.approx(20 * 2 * 3 / 1e6)


def test_what_is_cached_for_an_hour_costs_twice_the_input():
    ages = {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 20}
    raw_counts = {"input_tokens": 9, "cache_creation_input_tokens": 50, "cache_creation": ages}
    got = message(start(**raw_counts), text("a"), stop())
    assert got.usage.cache_write == 50
    assert got.usage.cost.cache_write == pytest.approx((30 * 3.75 + 20 * 2 * 3) / 1e6)
    assert got.usage.cost.input == pytest.approx(9 * 3 / 1e6)


def test_cache_writes_by_age_alone_are_added_up():
    ages = {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 20}
    assert anthropic_usage({"cache_creation": ages}, ModelCost()).cache_write == 50


def test_rounds_of_a_server_tool_are_in_the_totals_already():
    rounds = [{"input_tokens": 4, "output_tokens": 3}, {"input_tokens": 5, "output_tokens": 4}]
    late = {"input_tokens": 9, "output_tokens": 7, "iterations": rounds}
    used = message(start(), text("a"), stop(usage=late)).usage
    assert (used.input, used.output) == (9, 7)


def test_thinking_is_a_part_of_the_output():
    late = {"output_tokens": 70, "output_tokens_details": {"thinking_tokens": 60}}
    used = message(start(), thinking("hm"), text("a", at=1), stop(usage=late)).usage
    assert (used.output, used.reasoning) == (70, 60)


@pytest.mark.parametrize("count", [None, -1, 1.5, "9", 10**30, [1]])
def test_counts_that_are_none_are_zero(count: Any):
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    wire = {**dict.fromkeys(names, count), "cache_creation": count, "output_tokens_details": count}
    assert anthropic_usage(wire, ModelCost(input=1.0)) == Usage()
    assert merged_usage({}, wire).get("input_tokens") == count


def test_a_server_that_counts_nothing():
    bare = {"type": "message_start", "message": {"id": "m", "role": "assistant"}}
    assert message([bare], text("a"), stop(usage={})).usage == Usage()


# --- garbage -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "odd",
    [
        [],
        [1, 2],
        7,
        None,
        "x",
        {"type": 7, "error": 7},
        {"type": ["ping"]},
        {"type": "message_start"},
        {"type": "message_start", "message": 7},
        {"type": "message_delta", "delta": 7},
        {"type": "message_delta", "usage": 7},
        {"type": "content_block_start"},
        {"type": "content_block_start", "index": 1, "content_block": 7},
        {"type": "content_block_start", "index": [1], "content_block": {"type": "text"}},
        opened(1, "text", text=7),
        opened(1, "thinking", thinking=7),
        opened(1, "thinking", signature=7),
        opened(1, "redacted_thinking"),
        opened(1, "redacted_thinking", data=7),
        opened(1, "tool_use", id="a"),
        opened(1, "tool_use", id="a", name=7),
        opened(1, "tool_use", id=7, name="f"),
        {"type": "content_block_delta", "index": 0},
        {"type": "content_block_delta", "index": 0, "delta": 7},
        {"type": "content_block_delta", "index": 0, "delta": {}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x"}},
        delta(0, "text_delta"),
        delta(0, "text_delta", text=7),
        wrote(9, "{}"),
        {"type": "content_block_stop"},
        {"type": "content_block_stop", "index": {}},
    ],
)
def test_wrong_types_are_an_error_and_what_came_stands(odd: Any):
    begun = raw([*start(), opened(0, "text", text=""), said(0, "Hel")])
    got = last(decode_bytes(begun + b"data: %s\n\n" % json.dumps(odd).encode()))
    assert (got.text, got.stop_reason) == ("Hel", "error")


def test_what_is_no_json_is_malformed():
    with pytest.raises(MalformedEventError, match="nonsense"):
        AnthropicDecoder(MODEL).feed(SseEvent("message", b"{nonsense"))
    assert AnthropicDecoder(MODEL).feed(SseEvent("message", b" ")) == []


MATERIAL = [
    [*start(), *thinking("hm"), *text("Hä", "llo", at=1), *stop()],
    [*start(), *call("f", '{"a": [1, {"b"', ": null}]}"), *call("g", at=1), *stop("tool_use")],
    [*start(), called(0, "f", input={"a": {"b": [1]}}), closed(0), *reason("max_tokens")],
    [
        *start(),
        opened(0, "redacted_thinking", data="x"),
        closed(0),
        *stop("refusal", stop_details={"category": "c"}),
    ],
    [*start(), *text("a")[:-1], *start("msg_2"), *text("b"), *error("overloaded_error", "Overloaded")],
]
SCRAPS: list[Any] = [None, [], {}, 7, "", "x", True, [[]], {"a": 1}, 1e400, 10**400]


def mutated(value: Any, dice: random.Random) -> Any:
    """``value`` with something in it exchanged or taken away."""
    if dice.random() < 0.05:
        return dice.choice(SCRAPS)
    if isinstance(value, dict):
        return {key: mutated(each, dice) for key, each in value.items() if dice.random() > 0.05}
    if isinstance(value, list):
        return [mutated(each, dice) for each in value]
    return value


def test_four_thousand_mutated_streams_each_end_in_a_message():
    for seed in range(4000):
        dice = random.Random(seed)
        decoder = AnthropicDecoder(MODEL)
        events = feed(
            decoder, (mutated(item, dice) for item in dice.choice(MATERIAL) if dice.random() > 0.03)
        )
        events += decoder.finish()
        kinds = [event.type for event in events]
        assert kinds[0] == "start", seed
        assert kinds.count("done") + kinds.count("error") == 1, seed
        assert kinds[-1] in ("done", "error"), seed
        last(events).model_dump_json()


# --- bytes -------------------------------------------------------------------------------------------------

WHOLE: list[Json] = [
    *start(cache_read_input_tokens=4),
    *thinking("hm", "ä", signature="c2ln"),
    *PING,
    *text("Hä", "llo 😀", at=1),
    *call("f", '{"a": "', 'ü"}', at=2, id="a"),
    *call("g", at=3, id="b"),
    *stop("tool_use"),
]


@st.composite
def written(draw: st.DrawFn) -> bytes:
    """The same events as a server may write them: any line ends, a BOM, comments, data in several lines."""
    lines: list[str] = []
    for event in WHOLE:
        lines += draw(st.sampled_from([[], [": keep-alive"], [": keep-alive", ""], ["id: 7", "retry: 10"]]))
        lines += draw(st.sampled_from([[], [f"event: {event['type']}"], [f"event:{event['type']}"]]))
        escaped, indent = draw(st.booleans()), draw(st.sampled_from([None, 0, 1]))
        colon = draw(st.sampled_from(["data: ", "data:"]))
        lines += [colon + line for line in json.dumps(event, ensure_ascii=escaped, indent=indent).split("\n")]
        lines.append("")
    # A lone CR right before an LF would be one line end with it.
    ends = draw(st.just(["\r"]) | st.lists(st.sampled_from(["\n", "\r\n"]), min_size=1, max_size=5))
    stream = "".join(line + ends[at % len(ends)] for at, line in enumerate(lines))
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + stream.encode()


def told(*pieces: bytes) -> list[tuple[str, Any]]:
    """All that the events say, and the message that they had come to."""
    return [
        (event.type, getattr(event, "delta", None) or getattr(event, "message", None) or event.partial)
        for event in decode_bytes(*pieces)
    ]


EXPECTED = told(raw(WHOLE))


@given(written(), st.data())
def test_any_split_of_the_bytes_gives_the_same_events(stream: bytes, draw: st.DataObject):
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    assert told(*(stream[a:b] for a, b in pairwise([0, *cuts, len(stream)]))) == EXPECTED


@given(written(), st.integers(1, 97))
def test_pieces_of_one_size_give_the_same_events(stream: bytes, size: int):
    assert told(*(stream[at : at + size] for at in range(0, len(stream), size))) == EXPECTED


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_one_byte_at_a_time(end: str, mark: bytes):
    stream = mark + raw(WHOLE, end)
    assert told(*(bytes([byte]) for byte in stream)) == EXPECTED
    assert [kind for kind, _ in EXPECTED].count("toolcall_delta") == 2
