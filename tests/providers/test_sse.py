"""Bytes become events by the rules of the HTML standard, however the network cuts them."""

from __future__ import annotations

import time
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rx_agent.providers.sse import SseEvent, SseReader


def read(*pieces: bytes) -> list[SseEvent]:
    reader = SseReader()
    return [event for piece in pieces for event in reader.feed(piece)] + reader.close()


def data(*pieces: bytes) -> list[bytes]:
    return [event.data for event in read(*pieces)]


def test_the_common_event():
    assert read(b'data: {"a": 1}\n\n') == [SseEvent("message", b'{"a": 1}')]


def test_an_event_is_given_out_with_its_blank_line_and_not_before():
    reader = SseReader()
    assert reader.feed(b"data: a\n") == []
    assert reader.feed(b"\n") == [SseEvent("message", b"a")]


def test_all_three_line_ends_mean_the_same():
    for end in (b"\n", b"\r", b"\r\n"):
        assert read(b"event: e" + end + b"data: a" + end + b"data: b" + end * 2) == [SseEvent("e", b"a\nb")]


def test_a_line_end_cut_between_cr_and_lf_is_one_line_end():
    assert data(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == [b"a\nb"]


def test_a_cr_ends_its_event_at_once():
    reader = SseReader()
    assert reader.feed(b"data: a\r\r") == [SseEvent("message", b"a")]
    assert reader.feed(b"\ndata: b\n\n") == [SseEvent("message", b"b")]


def test_a_byte_order_mark_is_left_out_at_the_start_only():
    assert data(b"\xef", b"\xbb", b"\xbfdata: a\n\ndata: \xef\xbb\xbf\n\n") == [b"a", b"\xef\xbb\xbf"]
    assert data(b"\xef\xbb") == []


def test_comments_and_fields_of_reconnection_are_passed_over():
    assert data(b": keep-alive\n\nid: 7\nretry: 10\ndata: a\n: c\n\n:\n\n") == [b"a"]


def test_one_blank_behind_the_colon_is_left_out_and_no_more():
    assert data(b"data:a\ndata: b\ndata:  c\n\n") == [b"a\nb\n c"]


def test_a_field_without_a_colon_is_empty():
    assert read(b"data\n\nevent\ndata\ndata\n\n") == [SseEvent("message", b""), SseEvent("message", b"\n")]


def test_an_event_without_data_is_none_and_its_name_is_forgotten():
    assert read(b"event: ping\n\ndata: a\n\n") == [SseEvent("message", b"a")]


def test_an_event_that_the_end_leaves_without_its_blank_line_still_counts():
    assert data(b"data: a\n\ndata: b\n") == [b"a", b"b"]
    assert data(b"data: a\n\ndata: b") == [b"a", b"b"]


def test_what_is_no_event_is_kept_for_the_error_message():
    reader = SseReader()
    reader.feed(b"data: a\n\nerror: {}\n<html>" + b"x" * 10_000 + b"\n")
    reader.close()
    assert reader.stray.startswith(b"error: {}\n<html>xxx")
    assert len(reader.stray) <= 4097


def test_ten_megabytes_in_one_event_cost_linear_time():
    line = b"data: " + b"x" * 10_000_000 + b"\n\n"

    def seconds(total: int) -> float:
        reader, start = SseReader(), time.perf_counter()
        for at in range(0, total, 1000):
            reader.feed(line[at : at + 1000])
        reader.close()
        return time.perf_counter() - start

    assert seconds(len(line)) < max(0.5, 30 * seconds(len(line) // 10))


def test_many_data_lines_in_small_pieces_cost_linear_time():
    text = b"data: x\n" * 200_000 + b"\n"
    start = time.perf_counter()
    events = read(*(text[at : at + 3] for at in range(0, len(text), 3)))
    assert len(events) == 1
    assert time.perf_counter() - start < 5


FIELDS = [b"data: ", b"data:", b"data", b"event: e", b": c", b"id: 1", b"x", b" ", b":"]
PIECES = st.sampled_from([*FIELDS, b"\n", b"\r", b"\r\n", b"\n\n", b"\xef\xbb\xbf", b"\xf0\x9f\x98\x80"])


@given(st.lists(PIECES, max_size=40), st.data())
def test_any_split_of_the_bytes_gives_the_same_events(parts: list[bytes], draw: st.DataObject):
    whole = b"".join(parts)
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(whole)), max_size=12)))
    bounds = [0, *cuts, len(whole)]
    pieces = [whole[a:b] for a, b in pairwise(bounds)]
    expected = by_the_book(whole)
    assert read(whole) == expected
    assert read(*pieces) == expected
    assert read(*(bytes([byte]) for byte in whole)) == expected


def by_the_book(whole: bytes) -> list[SseEvent]:
    """The standard's algorithm, word by word, with the last event handed out."""
    text = whole.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    events: list[SseEvent] = []
    buffer, name = b"", ""
    for line in [*text.split(b"\n"), b""]:
        if not line:
            if buffer:
                events.append(SseEvent(name or "message", buffer[:-1]))
            buffer, name = b"", ""
            continue
        field, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if field == b"data":
            buffer += value + b"\n"
        elif field == b"event":
            name = value.decode()
    return events
