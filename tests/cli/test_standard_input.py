"""Standard input as observables: pipes and files, pieces and lines and bursts, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import reactivex
from reactivex.scheduler.eventloop import AsyncIOScheduler
from reactivex.testing import ReactiveTest, TestScheduler

from rx_agent.cli import session, standard_input
from rx_agent.cli.standard_input import bounded, comes_from_a_pipe, entries_of, lines_of, pieces_of, text_of
from rx_agent.errors import ConfigurationError, NoEventLoopError
from tests.on_loop import on_loop

on_next, on_completed = ReactiveTest.on_next, ReactiveTest.on_completed


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    try:
        yield reading, writing
    finally:
        for descriptor in (reading, writing):
            try:
                os.close(descriptor)
            except OSError:
                continue


async def all_of(source: Any) -> list[Any]:
    loop = asyncio.get_running_loop()
    seen: list[Any] = []
    done: asyncio.Future[None] = loop.create_future()
    source.subscribe(
        seen.append, done.set_exception, lambda: done.set_result(None), scheduler=AsyncIOScheduler(loop)
    )
    await asyncio.wait_for(done, 5)
    return seen


@on_loop
async def test_a_pipe_is_read_as_it_comes_to_its_end() -> None:
    with pipe() as (reading, writing):
        loop = asyncio.get_running_loop()
        os.write(writing, b"one ")
        loop.call_later(0.02, os.write, writing, b"two")
        loop.call_later(0.04, os.close, writing)
        assert await all_of(pieces_of(reading)) == [b"one ", b"two"]
        assert os.get_blocking(reading)


@on_loop
async def test_disposing_stops_listening_at_once() -> None:
    with pipe() as (reading, writing):
        seen: list[bytes] = []
        scheduler = AsyncIOScheduler(asyncio.get_running_loop())
        subscription = pieces_of(reading).subscribe(seen.append, scheduler=scheduler)
        subscription.dispose()
        os.write(writing, b"too late")
        await asyncio.sleep(0.02)
        assert seen == []
        assert os.read(reading, 100) == b"too late"


def test_a_regular_file_is_read_piece_by_piece(tmp_path: Path) -> None:
    content = os.urandom(200_000)
    (tmp_path / "file").write_bytes(content)

    @on_loop
    async def read() -> None:
        with (tmp_path / "file").open("rb") as file:
            pieces = await all_of(pieces_of(file.fileno()))
        assert b"".join(pieces) == content
        assert len(pieces) == 4

    read()


@on_loop
async def test_nothing_comes_from_the_null_device_or_a_closed_descriptor() -> None:
    descriptor = os.open(os.devnull, os.O_RDONLY)
    assert await all_of(pieces_of(descriptor)) == []
    os.close(descriptor)
    assert await all_of(pieces_of(descriptor)) == []


@on_loop
async def test_where_the_loop_cannot_watch_a_thread_reads() -> None:
    with pipe() as (reading, writing):
        os.write(writing, b"hello")
        os.close(writing)
        assert await all_of(standard_input._in_threads(reading)) == [b"hello"]


def test_without_an_event_loop_it_says_what_it_needs() -> None:
    with pytest.raises(NoEventLoopError, match="AsyncIOScheduler"):
        pieces_of(0).subscribe(scheduler=TestScheduler())


def run(source: Any) -> list[Any]:
    seen: list[Any] = []
    source.subscribe(seen.append)
    return seen


def test_characters_that_are_cut_in_two_are_put_together() -> None:
    content = "Grüße 🙂".encode()
    pieces = reactivex.of(*(content[at : at + 1] for at in range(len(content))))
    assert "".join(run(text_of(pieces))) == "Grüße 🙂"
    assert "".join(run(text_of(reactivex.of(b"a\xff", b"\xc3")))) == "a\ufffd\ufffd"


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        (["one\ntwo\n"], ["one", "two"]),
        (["on", "e\ntw", "o"], ["one", "two"]),
        (["a\r\n\r\nb"], ["a", "", "b"]),
        ([], []),
        (["\n"], [""]),
    ],
)
def test_lines_are_whole_however_they_come(pieces: list[str], lines: list[str]) -> None:
    assert run(lines_of(reactivex.of(*pieces))) == lines


COMMANDS = ("/quit", "/follow")


def entered(*lines: tuple[float, str], end: float = 9.0) -> list[tuple[float, str]]:
    """What is entered when, in seconds since the first look, of lines that come at these times."""
    scheduler = TestScheduler()
    source = scheduler.create_cold_observable(*(on_next(at, line) for at, line in lines), on_completed(end))
    seen = scheduler.start(lambda: entries_of(source, COMMANDS, scheduler), subscribed=200)
    return [(round(each.time - 200, 2), each.value.value) for each in seen.messages if each.value.kind == "N"]


def test_a_line_is_entered_as_soon_as_no_other_follows_it() -> None:
    assert entered((1, "hello"), (2, "again")) == [(1.05, "hello"), (2.05, "again")]


def test_a_pasted_text_is_one_entry() -> None:
    assert entered((1, "def f():"), (1.01, ""), (1.02, "    return 1")) == [
        (1.07, "def f():\n\n    return 1")
    ]


def test_commands_stand_alone_in_what_was_pasted() -> None:
    burst = [(1, "one"), (1, "two"), (1, "/follow x"), (1, "three"), (1, "/quit"), (1, "/usr/bin")]
    assert entered(*burst) == [
        (1.05, "one\ntwo"),
        (1.05, "/follow x"),
        (1.05, "three"),
        (1.05, "/quit"),
        (1.05, "/usr/bin"),
    ]


def test_what_came_right_before_the_end_is_entered_at_the_end() -> None:
    assert entered((1, "hello"), end=1.01) == [(1.01, "hello")]
    assert entered((1, ""), (1, "  ")) == []


def test_what_is_there_to_be_read() -> None:
    left, right = socket.socketpair()
    with pipe() as (reading, _), left, right:
        assert comes_from_a_pipe(reading)
        assert comes_from_a_pipe(left.fileno())
    null = os.open(os.devnull, os.O_RDONLY)
    assert not comes_from_a_pipe(null)
    os.close(null)
    assert not comes_from_a_pipe(null)


@pytest.mark.parametrize(("written", "attached"), [(b"", ""), (b"some notes\n", "some notes\n")])
def test_a_prompt_does_not_wait_for_ever_for_a_pipe_that_says_nothing(
    monkeypatch: pytest.MonkeyPatch, written: bytes, attached: str
) -> None:
    class Notes:
        """A renderer of which only the notes matter."""

        def __init__(self) -> None:
            self.noted: list[str] = []

        def note(self, text: str) -> None:
            self.noted.append(text)

    @on_loop
    async def wait() -> None:
        with pipe() as (reading, writing):
            monkeypatch.setattr(session, "_STDIN", reading)
            monkeypatch.setattr(session, "WAIT_FOR_PIPE", 0.05)
            notes: Any = Notes()
            if written:
                os.write(writing, written)
                asyncio.get_running_loop().call_later(0.1, os.close, writing)
            text = await session._piped_text(notes, AsyncIOScheduler(asyncio.get_running_loop()))
            assert text == attached
            assert ["nothing came on standard input" in note for note in notes.noted] == [True] * (
                not written
            )

    wait()


def test_more_than_a_model_can_read_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standard_input, "MOST_BYTES", 5)
    assert run(bounded(reactivex.of(b"abc", b"de"))) == [b"abc", b"de"]
    with pytest.raises(ConfigurationError, match="more than a model can read"):
        run(bounded(reactivex.of(b"abc", b"def")))
