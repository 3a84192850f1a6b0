"""What goes over the wire is valid JSON, and what was encoded once is not encoded again."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticSerializationError

from rx_agent.messages import UserMessage
from rx_agent.providers.wire_json import IdentityCache, WirePayload, wire_json
from rx_agent.surrogates import repaired_text

ANY_TEXT = st.text(st.characters(blacklist_categories=()))


@given(ANY_TEXT)
def test_repaired_text_is_valid_and_keeps_all_that_was(text: str):
    fixed = repaired_text(text)
    fixed.encode()
    joined = json.loads(json.dumps(text))  # joins split pairs, keeps lone surrogates
    assert fixed == "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in joined)


def test_text_without_faults_is_the_same_object():
    text = "häßlich 😀"
    assert repaired_text(text) is text


def test_json_of_odd_values():
    assert wire_json({"a": float("nan"), "b": "\ud800"}) == '{"a":null,"b":"\ufffd"}'.encode()
    with pytest.raises(PydanticSerializationError):
        wire_json({"a": object()})


def test_a_field_stands_in_for_an_array_of_its_name():
    assert WirePayload({"messages": []}, {"messages": [b"{}"]}).to_bytes() == b'{"messages":[]}'
    assert WirePayload({}, {"messages": [b"1", b"2"]}).to_dict() == {"messages": [1, 2]}


def test_the_cache_goes_by_identity_and_forgets_with_the_object():
    cache: IdentityCache[str] = IdentityCache()
    one, equal = UserMessage(content="hi"), UserMessage(content="hi")
    assert [
        cache.get(one, 1, lambda: "a"),
        cache.get(equal, 1, lambda: "b"),
        cache.get(one, 1, lambda: "c"),
    ] == [
        "a",
        "b",
        "a",
    ]
    assert cache.get(one, 2, lambda: "d") == "d"
    assert len(cache) == 2
    del one, equal
    assert len(cache) == 0
