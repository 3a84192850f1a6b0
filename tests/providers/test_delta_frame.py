"""A delta that is read out of its frame is the one that parsing would give."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_core import from_json

from rx_agent.models import Model
from rx_agent.providers.anthropic.decoder import AnthropicDecoder
from rx_agent.providers.delta_frame import DeltaFrame
from rx_agent.providers.sse import SseEvent

TEXT = st.text(st.characters(), max_size=6) | st.sampled_from(
    ['"', "\\", "\n", '","text":"', "a b", "", "\u2028"]
)
FORMS = st.sampled_from(
    [
        b'{"delta":{"type":"text_delta","text":%s}}',
        b'{"delta": {"text": %s}, "index": 0}',
        b'{"text":"x","delta":{"text":%s}}',
        b'{"delta":{"te\\u0078t":%s}}',
        b'{"delta":{"text":%s,"te\\u0078t":"x"}}',
        b'{"delta":{"text":%s,"text":"x"}}',
        b'{"delta":{"text":  %s}}',
    ]
)


def written(form: bytes, text: str, *, ascii: bool) -> bytes:
    return form % json.dumps(text, ensure_ascii=ascii).encode("utf-8", "surrogatepass")


@given(FORMS, TEXT, TEXT, st.booleans())
@example(b'{"delta":{"text":%s,"te\\u0078t":"x"}}', "x", "y", False)
def test_the_text_of_a_frame_is_what_a_parser_reads(form: bytes, first: str, then: str, ascii: bool):
    learned, data = written(form, first, ascii=ascii), written(form, then, ascii=ascii)
    frame = DeltaFrame.around(learned, "text", json.loads(learned)["delta"]["text"])
    read = frame.text_of(data)
    assert read is None or read == from_json(data)["delta"]["text"]


@given(st.binary(max_size=12))
def test_bytes_that_are_no_string_of_json_are_left_to_the_parser(middle: bytes):
    frame = DeltaFrame.around(b'{"text":"a"}', "text", "a")
    data = b'{"text":"' + middle + b'"}'
    read = frame.text_of(data)
    assert read is None or from_json(data) == {"text": read}


def test_plain_text_is_read_without_parsing():
    frame = DeltaFrame.around(b'{"text": "Hello"}', "text", "Hello")
    assert [frame.text_of(b'{"text": "%s"}' % text) for text in (b"wor", b"ld \xc3\xa9", b"")] == [
        "wor",
        "ld é",
        None,
    ]


def test_a_frame_ends_with_its_block():
    """What comes for a block that has ended, or for another, is not taken for more of it."""

    def events(*said: dict[str, object]) -> list[str]:
        decoder = AnthropicDecoder(Model(id="m", api="anthropic", provider="anthropic"))
        told = [event for one in said for event in decoder.feed(SseEvent("", json.dumps(one).encode()))]
        return [f"{event.type} {getattr(event, 'delta', '')}".strip() for event in told]

    def delta(index: int, text: str) -> dict[str, object]:
        return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}

    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    stop = {"type": "content_block_stop", "index": 0}
    anew = {"type": "message_start", "message": {}}
    assert events(start, delta(0, "a"), delta(0, "b"), delta(1, "c"), stop, delta(0, "d"), delta(0, "e")) == [
        "start",
        "text_start",
        "text_delta a",
        "text_delta b",
        "text_start",
        "text_delta c",
        "text_end",
        "text_start",
        "text_delta d",
        "text_delta e",
    ]
    assert events(anew, start, delta(0, "a"), delta(0, "b"), anew, delta(0, "c"), delta(0, "d")) == [
        "start",
        "text_start",
        "text_delta a",
        "text_delta b",
        "text_end",
        "text_start",
        "text_delta c",
        "text_delta d",
    ]
