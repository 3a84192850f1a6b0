"""Function calls whose arguments come piece by piece."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rx_agent.providers.google.streamed_arguments import StreamedArguments, json_path
from tests.providers.google_chunks import call, chunk, decode, last, message, stop, streamed
from tests.providers.loopback import Json

OPEN = [chunk(call("order", "c2ln", willContinue=True))]


def test_streamed_arguments_are_put_together_and_told_as_they_come():
    events = decode(
        OPEN,
        streamed(
            {"jsonPath": "$.items[0].name", "stringValue": "ap", "willContinue": True},
            {"jsonPath": "$.items[0].name", "stringValue": 'ple "é"', "willContinue": True},
            {"jsonPath": "$.items[0].name", "stringValue": ""},
            {"jsonPath": "$.items[0].price", "numberValue": 0.5},
            {"jsonPath": "$.items[1].tags[0]", "stringValue": "x"},
            {"jsonPath": "$['a b']", "boolValue": False},
            {"jsonPath": "$.none", "nullValue": None},
        ),
        [chunk({"functionCall": {}})],
        stop(),
    )
    (got,) = last(events).tool_calls
    assert got.arguments == {
        "items": [{"name": 'apple "é"', "price": 0.5}, {"tags": ["x"]}],
        "a b": False,
        "none": None,
    }
    assert (got.invalid_arguments, got.signature, got.id) == (None, "c2ln", "call_r-1_0")
    deltas = [event.delta for event in events if event.type == "toolcall_delta"]
    assert len(deltas) >= 7
    assert json.loads("".join(deltas)) == got.arguments


def test_the_last_piece_may_end_the_call():
    got = message(OPEN, streamed({"jsonPath": "$.a", "numberValue": 1}, more=False), stop())
    assert (got.tool_calls[0].arguments, got.tool_calls[0].invalid_arguments) == ({"a": 1}, None)


def test_a_streamed_call_may_have_no_arguments():
    got = message(OPEN, [chunk({"functionCall": {}})], [chunk(call("next"))], stop())
    assert [(each.name, each.arguments, each.invalid_arguments) for each in got.tool_calls] == [
        ("order", {}, None),
        ("next", {}, None),
    ]


def test_all_arguments_at_once_count_where_they_follow():
    got = message(OPEN, [chunk({"functionCall": {"args": {"a": 1}}})], stop())
    assert got.tool_calls[0].arguments == {"a": 1}


def test_pieces_in_another_order_are_put_together_all_the_same():
    pieces = [("$.a.x", 1), ("$.b", 2), ("$.a.y", 3), ("$.b", 4)]
    got = message(
        OPEN, streamed(*({"jsonPath": path, "numberValue": n} for path, n in pieces), more=False), stop()
    )
    assert got.tool_calls[0].arguments == {"a": {"x": 1, "y": 3}, "b": 4}


@pytest.mark.parametrize("reason", ["STOP", "MAX_TOKENS"])
@pytest.mark.parametrize(
    "pieces", [[], [{"jsonPath": "$.a", "stringValue": "rm -rf /tmp/", "willContinue": True}]]
)
def test_a_call_that_never_ends_is_never_executed(reason: str, pieces: list[Json]):
    got = message(OPEN, streamed(*pieces), stop(reason))
    assert got.tool_calls[0].invalid_arguments is not None
    assert got.stop_reason == ("tool_use" if reason == "STOP" else "length")


def test_a_call_that_another_one_interrupts_is_not_executed():
    got = message(
        OPEN, streamed({"jsonPath": "$.a", "numberValue": 1}), [chunk(call("next", args={}))], stop()
    )
    assert [each.invalid_arguments for each in got.tool_calls] == ['{"a":1', None]


@pytest.mark.parametrize(
    "piece",
    [
        {"jsonPath": "$.a[3]", "numberValue": 1},
        {"jsonPath": "$..a", "numberValue": 1},
        {"jsonPath": "$", "numberValue": 1},
        {"jsonPath": "$[0]", "numberValue": 1},
        {"jsonPath": "$.first.b", "numberValue": 1},
        {"jsonPath": "$.a"},
        {"numberValue": 1},
    ],
)
def test_a_piece_that_belongs_nowhere_makes_the_call_invalid(piece: Json):
    first = {"jsonPath": "$.first", "numberValue": 1}
    got = message(OPEN, streamed(first, piece, more=False), stop())
    assert got.tool_calls[0].invalid_arguments is not None


def test_halves_of_an_emoji_in_two_pieces_become_one():
    got = message(
        OPEN,
        streamed(
            {"jsonPath": "$.a", "stringValue": "\ud83d", "willContinue": True},
            {"jsonPath": "$.a", "stringValue": "\ude00"},
            more=False,
        ),
        stop(),
    )
    assert got.tool_calls[0].arguments == {"a": "\U0001f600"}


def test_paths():
    assert json_path('$.a.b_c[12][\'it\\\'s "x"\']["\\u00e9"]') == ("a", "b_c", 12, 'it\'s "x"', "é")
    assert [json_path(bad) for bad in ("a", "$a", "$.", "$[*]", "$.a[-1]", "$['\\x']")] == [None] * 6


def leaves(value: Any, path: str = "$") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [leaf for key, each in value.items() for leaf in leaves(each, f"{path}[{json.dumps(key)}]")]
    if isinstance(value, list):
        return [leaf for at, each in enumerate(value) for leaf in leaves(each, f"{path}[{at}]")]
    return [(path, value)]


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, min_size=1, max_size=3) | st.dictionaries(st.text(), inner, min_size=1, max_size=3)


VALUES = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text(), nested, max_leaves=8)


@given(st.dictionaries(st.text(), VALUES, max_size=4), st.randoms())
def test_any_arguments_survive_being_streamed(arguments: dict[str, Any], dice: random.Random):
    fields = {str: "stringValue", bool: "boolValue", int: "numberValue", type(None): "nullValue"}
    stream = StreamedArguments()
    written = stream.open()
    for path, value in leaves(arguments):
        if isinstance(value, str) and dice.random() < 0.5:
            cut = dice.randint(0, len(value))
            written += stream.add({"jsonPath": path, "stringValue": value[:cut], "willContinue": True})
            value = value[cut:]
        written += stream.add({"jsonPath": path, fields[type(value)]: value})
    written += stream.close()
    assert not stream.broken
    assert json.loads(written) == stream.arguments == arguments
