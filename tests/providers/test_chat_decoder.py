"""Streams of every kind, as chunks, and the message each becomes."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rx_agent.events import AssistantMessageEvent, DoneEvent, ErrorEvent
from rx_agent.messages import AssistantMessage, ThinkingContent
from rx_agent.models import Model, ModelCost, Usage
from rx_agent.providers.openai_chat.decoder import ChatDecoder
from rx_agent.providers.openai_chat.usage import chat_usage
from rx_agent.providers.sse import SseEvent, SseReader
from rx_agent.providers.stream_decoder import MalformedEventError
from tests.providers.loopback import Json, chunk, finish, sse, text, thinking, tool_call, usage

MODEL = Model(
    id="m",
    api="openai_chat",
    provider="p",
    cost=ModelCost(input=1.0, output=2.0, cache_read=0.5, cache_write=4.0),
)


def decode(*groups: list[Json], done: bool = True) -> list[AssistantMessageEvent]:
    return decode_bytes(sse(*(item for group in groups for item in group), done=done))


def decode_bytes(*pieces: bytes) -> list[AssistantMessageEvent]:
    reader, decoder = SseReader(), ChatDecoder(MODEL)
    events = [out for piece in pieces for event in reader.feed(piece) for out in decoder.feed(event)]
    events += [out for event in reader.close() for out in decoder.feed(event)]
    return events + decoder.finish(reader.stray)


def message(*groups: list[Json], done: bool = True) -> AssistantMessage:
    last = decode(*groups, done=done)[-1]
    assert isinstance(last, DoneEvent | ErrorEvent)
    return last.message


def types(events: list[AssistantMessageEvent]) -> str:
    return " ".join(event.type for event in events)


def piece(**fields: Any) -> list[Json]:
    """One piece of a tool call."""
    return [chunk({"tool_calls": [fields]})]


# --- text and thinking -------------------------------------------------------------------------------------


def test_text():
    events = decode(
        [chunk({"role": "assistant", "content": ""})],
        text("Hel", "lo"),
        finish("stop"),
        usage(9, 2, cached=4),
    )
    assert types(events) == "start text_start text_delta text_delta text_end done"
    last = events[-1]
    assert isinstance(last, DoneEvent)
    assert (last.message.text, last.message.stop_reason, last.message.response_id) == (
        "Hello",
        "stop",
        "chatcmpl-1",
    )
    assert last.message.usage == Usage(input=5, output=2, cache_read=4).priced(MODEL.cost)
    assert last.message.usage.cost.total == pytest.approx((5 + 4 + 2) / 1e6)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_before_text(field: str):
    events = decode(thinking("h", "m", field=field), text("4"), finish("stop"))
    assert types(events) == (
        "start thinking_start thinking_delta thinking_delta thinking_end text_start text_delta text_end done"
    )
    assert message(thinking("h", "m", field=field), text("4"), finish("stop")).thinking == "hm"


def test_thinking_and_text_in_turn_are_blocks_of_their_own():
    got = message(thinking("a"), text("b"), thinking("c"), text("d"), finish("stop"))
    assert [block.type for block in got.content] == ["thinking", "text", "thinking", "text"]


def test_content_as_a_list_of_parts():
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "1"},
        {"type": "reference", "reference_ids": [1]},
    ]
    got = message([chunk({"content": parts})], text("44"), finish("stop"))
    assert (got.thinking, got.text) == ("hm", "144")


def test_signed_thinking_keeps_what_its_maker_wants_back():
    def details(**fields: Any) -> list[Json]:
        return [
            chunk(
                {"reasoning": fields.get("text"), "reasoning_details": [{"index": 0, "type": "t", **fields}]}
            )
        ]

    got = message(details(text="a"), details(text="b"), details(signature="sig"), text("x"), finish("stop"))
    thought = got.content[0]
    assert isinstance(thought, ThinkingContent)
    assert thought.thinking == "ab"
    assert json.loads(thought.signature or "") == [
        {"index": 0, "type": "t", "text": "ab", "signature": "sig"}
    ]


def test_encrypted_thinking_without_words_is_kept_as_redacted():
    hidden = [chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]})]
    got = message(hidden, text("4"), finish("stop"))
    assert any(
        isinstance(block, ThinkingContent) and block.redacted and block.signature for block in got.content
    )


# --- tool calls --------------------------------------------------------------------------------------------


def calls_of(*groups: list[Json]) -> list[tuple[str, str, dict[str, Any]]]:
    got = message(*groups, finish("tool_calls"))
    assert got.stop_reason == "tool_use"
    return [(call.id, call.name, call.arguments) for call in got.tool_calls]


def test_a_tool_call_in_pieces():
    events = decode(text("Look:"), tool_call("find", {"q": "x"}, id="c1"), finish("tool_calls"))
    assert types(events) == (
        "start text_start text_delta text_end toolcall_start toolcall_delta toolcall_delta toolcall_end done"
    )
    assert calls_of(tool_call("find", {"q": "x"}, id="c1")) == [("c1", "find", {"q": "x"})]


def test_parallel_calls_whose_pieces_come_in_turn():
    a, b = tool_call("f", {"a": 1}, index=0), tool_call("g", {"b": 2}, index=1)
    mixed = [part for pair in zip(a, b, strict=True) for part in pair]
    assert calls_of(mixed) == [("call_0", "f", {"a": 1}), ("call_1", "g", {"b": 2})]


def test_two_calls_in_one_chunk():
    both = [tool_call("f", {}, index=n)[0]["choices"][0]["delta"]["tool_calls"][0] for n in (0, 1)]
    assert calls_of([chunk({"tool_calls": both})]) == [("call_0", "f", {}), ("call_1", "f", {})]


def test_an_index_that_starts_at_one():
    assert calls_of(tool_call("f", {"a": 1}, index=1)) == [("call_1", "f", {"a": 1})]


def test_calls_without_an_index():
    whole = {"id": "x", "function": {"name": "f", "arguments": "{}"}}
    second = {"id": "y", "function": {"name": "f", "arguments": '{"n": 2}'}}
    assert calls_of(piece(**whole), piece(**second)) == [("x", "f", {}), ("y", "f", {"n": 2})]


def test_calls_with_neither_index_nor_id():
    calls = calls_of(
        piece(function={"name": "f", "arguments": '{"n":'}),
        piece(function={"arguments": " 1}"}),
        piece(function={"name": "f", "arguments": '{"n": 2}'}),
    )
    assert [(name, arguments) for _, name, arguments in calls] == [("f", {"n": 1}), ("f", {"n": 2})]
    assert len({id for id, _, _ in calls}) == 2
    assert all(id.startswith("call_") for id, _, _ in calls)


def test_one_index_for_two_calls():
    calls = calls_of(
        piece(index=0, id="x", function={"name": "f", "arguments": "{}"}),
        piece(index=0, id="y", function={"name": "g", "arguments": "{}"}),
    )
    assert calls == [("x", "f", {}), ("y", "g", {})]


def test_id_and_name_repeated_with_every_piece():
    def again(arguments: str) -> list[Json]:
        return piece(index=0, id="x", type="function", function={"name": "f", "arguments": arguments})

    assert calls_of(again("{"), again('"a":'), again("1}")) == [("x", "f", {"a": 1})]


def test_a_name_that_comes_late():
    calls = calls_of(
        piece(index=0, id="x", function={"arguments": ""}),
        piece(index=0, id="x", function={"arguments": '{"a"'}),
        piece(index=0, function={"name": "f", "arguments": ": 1}"}),
    )
    assert calls == [("x", "f", {"a": 1})]


def test_arguments_as_an_object_or_none_at_all():
    assert calls_of(piece(index=0, id="x", function={"name": "f", "arguments": {"a": 1}})) == [
        ("x", "f", {"a": 1})
    ]
    assert calls_of(piece(index=0, id="x", function={"name": "f"})) == [("x", "f", {})]
    assert calls_of(piece(index=0, id="x", function={"name": "f", "arguments": None})) == [("x", "f", {})]


def test_one_id_for_two_calls_is_told_apart():
    calls = calls_of(
        piece(index=0, id="0", function={"name": "f", "arguments": "{}"}),
        piece(index=1, id="0", function={"name": "g", "arguments": "{}"}),
    )
    assert len({id for id, _, _ in calls}) == 2


def test_the_form_that_came_before_tool_calls():
    got = message(
        [
            chunk({"function_call": {"name": "f", "arguments": ""}}),
            chunk({"function_call": {"arguments": "{}"}}),
        ],
        finish("function_call"),
    )
    assert got.stop_reason == "tool_use"
    assert [(call.name, call.arguments) for call in got.tool_calls] == [("f", {})]


def test_a_signature_of_google_stays_with_its_call():
    extra = {"google": {"thought_signature": "s"}}
    got = message(piece(index=0, id="x", function={"name": "f", "arguments": "{}"}, extra_content=extra))
    assert json.loads(got.tool_calls[0].signature or "") == extra


def test_arguments_that_are_no_json_are_kept_as_they_came():
    (call,) = message(tool_call("f", '{"a": 1'), finish("tool_calls")).tool_calls
    assert (call.arguments, call.invalid_arguments) == ({"a": 1}, '{"a": 1')


# --- how an answer ends ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "stop_reason", "kind"),
    [
        ("stop", "stop", None),
        ("length", "length", None),
        ("model_length", "length", None),
        ("tool_calls", "stop", None),
        ("eos", "stop", None),
        ("content_filter", "error", "refused"),
        ("insufficient_system_resource", "error", "overloaded"),
        ("error", "error", "unknown"),
    ],
)
def test_every_finish_reason(reason: str, stop_reason: str, kind: str | None):
    got = message(text("x"), finish(reason))
    assert (got.stop_reason, got.error_kind, got.text) == (stop_reason, kind, "x")


def test_stop_in_spite_of_a_tool_call():
    assert message(tool_call("f", {}), finish("stop")).stop_reason == "tool_use"
    assert message(tool_call("f", {}), finish("length")).stop_reason == "length"


def test_a_refusal():
    got = message([chunk({"refusal": "I can"}), chunk({"refusal": "not."})], finish("stop"), usage(1, 1))
    assert (got.stop_reason, got.error_kind) == ("error", "refused")
    assert got.error_message == "The model refused to answer: I cannot."
    assert got.usage.output == 1


def test_without_the_end_mark_a_finish_reason_makes_it_whole():
    assert message(text("x"), finish("stop"), usage(3, 1), done=False).stop_reason == "stop"
    cut = message(text("x"), done=False)
    assert (cut.stop_reason, cut.error_kind, cut.text) == ("error", "network", "x")
    assert "ended before it was complete" in (cut.error_message or "")


def test_the_end_mark_alone_makes_it_whole_if_anything_came():
    assert message(text("x")).stop_reason == "stop"
    assert message(tool_call("f", {})).stop_reason == "tool_use"
    assert message().error_kind == "network"


def test_nothing_comes_after_the_end():
    events = decode_bytes(sse(*text("a"), *finish("stop")) + sse(*text("b")))
    assert [event.type for event in events].count("done") == 1
    assert events[-1].type == "done"


def test_a_finish_reason_sent_twice_and_a_usage_chunk_with_a_choice():
    got = message(
        text("x"), finish("stop"), [chunk({"content": ""}, finish="stop", usage=usage(3, 1)[0]["usage"])]
    )
    assert (got.stop_reason, got.usage.input) == ("stop", 3)


# --- errors inside the stream ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}, "rate_limit"),
        ({"error": {"message": "no", "code": 502}}, "overloaded"),
        ({"error": "overloaded"}, "overloaded"),
        (
            {"object": "error", "message": "maximum context length is 4096 tokens", "code": 400},
            "context_overflow",
        ),
        ({"detail": "boom"}, "unknown"),
        (chunk({}, error={"message": "no", "code": 401}), "auth"),
        ({"choices": [{"index": 0, "delta": {}, "error": {"message": "no", "code": 503}}]}, "overloaded"),
    ],
)
def test_an_error_as_a_chunk(error: Json, kind: str):
    got = message(text("so far"), [error])
    assert (got.stop_reason, got.error_kind, got.text) == ("error", kind, "so far")


def test_an_error_by_the_events_name():
    events = decode_bytes(sse(*text("a"), done=False) + b'event: error\ndata: {"message": "bad luck"}\n\n')
    assert isinstance(events[-1], ErrorEvent)
    assert "bad luck" in (events[-1].message.error_message or "")


def test_an_error_after_a_finish_reason_still_counts_and_so_does_its_usage():
    got = message(
        text("x"), finish("length"), [chunk({}, error={"message": "no"}, usage=usage(3, 1)[0]["usage"])]
    )
    assert (got.stop_reason, got.usage.input) == ("error", 3)


def test_what_is_no_json_is_refused():
    with pytest.raises(MalformedEventError, match="not an event of this API: nonsense"):
        ChatDecoder(MODEL).feed(SseEvent("message", b"nonsense"))


@pytest.mark.parametrize("data", [b"[1]", b"7", b'{"choices": 7}', b'{"choices": [7]}', b'"x"'])
def test_what_is_json_and_no_chunk_is_an_error(data: bytes):
    events = ChatDecoder(MODEL).feed(SseEvent("message", data))
    assert types(events) == "start error"
    assert isinstance(events[-1], ErrorEvent)
    assert "not an event of this API" in (events[-1].message.error_message or "")


# --- odd but legal -----------------------------------------------------------------------------------------


def test_chunks_without_choices_and_fields_of_the_vendors_own():
    got = message(
        [{"choices": [], "prompt_filter_results": [{}]}, {"id": "x"}],
        [chunk({"content": "a", "annotations": [{}], "tool_calls": None}, p="pad", obfuscation="xyz")],
        [{"choices": [{"index": 1, "delta": {"content": "another answer"}}]}],
        finish("stop"),
    )
    assert got.text == "a"


def test_surrogates_cut_between_two_deltas():
    halves = [
        b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n' % half for half in (b"\\ud83d", b"\\ude00")
    ]
    raw = b"".join(halves)
    last = decode_bytes(raw + sse(*finish("stop")))[-1]
    assert isinstance(last, DoneEvent)
    assert last.message.text == "\U0001f600"


def test_a_lone_half_of_a_character_in_arguments_costs_no_call():
    path = "caf\udce9"
    raw = json.dumps({"path": path}, ensure_ascii=False)
    events = decode(
        piece(function={"name": "a", "arguments": raw}), piece(function={"name": "b", "arguments": raw})
    )
    assert all(event.partial is not None for event in events[:-1])
    last = events[-1]
    assert isinstance(last, DoneEvent)
    assert [(c.name, c.arguments) for c in last.message.tool_calls] == [
        ("a", {"path": path}),
        ("b", {"path": path}),
    ]


def test_bytes_that_are_no_utf8_do_not_end_the_answer():
    last = decode_bytes(b'data: {"choices":[{"delta":{"content":"a\xff"}}]}\n\n' + sse(*finish("stop")))[-1]
    assert isinstance(last, DoneEvent)
    assert last.message.text == "a\ufffd"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2}, Usage(input=5, output=2)),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}, Usage(input=5, cache_read=4)),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3}},
            Usage(input=2, cache_read=4, cache_write=3),
        ),
        (
            {
                "prompt_tokens": 1,
                "completion_tokens": 2,
                "total_tokens": 13,
                "completion_tokens_details": {"reasoning_tokens": 10},
            },
            Usage(input=1, output=12, reasoning=10),
        ),
        (
            {
                "prompt_tokens": 1,
                "completion_tokens": 12,
                "total_tokens": 13,
                "completion_tokens_details": {"reasoning_tokens": 10},
            },
            Usage(input=1, output=12, reasoning=10),
        ),
        ({"prompt_tokens": None, "completion_tokens": "x", "prompt_tokens_details": None}, Usage()),
        ({"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 5}}, Usage(cache_read=5)),
    ],
)
def test_usage_of_many_makers(raw: Json, expected: Usage):
    assert chat_usage(raw) == expected


def test_usage_of_groq_and_moonshot():
    counts = {"prompt_tokens": 3, "completion_tokens": 1}
    assert message(text("x"), [chunk(finish="stop", x_groq={"usage": counts})]).usage.input == 3
    ended = chunk(finish="stop")
    ended["choices"][0]["usage"] = counts
    assert message(text("x"), [ended]).usage.input == 3


WHOLE = sse(
    *thinking("hm", "…"),
    *text("Hä", "😀"),
    *tool_call("f", {"a": "é"}, id="c"),
    *finish("tool_calls"),
    *usage(5, 6),
)


@given(st.lists(st.integers(0, len(WHOLE)), max_size=10).map(sorted))
def test_any_split_of_the_bytes_gives_the_same_events(cuts: list[int]):
    bounds = [0, *cuts, len(WHOLE)]
    pieces = [WHOLE[a:b] for a, b in pairwise(bounds)]
    assert decode_bytes(*pieces) == decode_bytes(WHOLE)
