"""``python -m rx_agent.cli`` as a user starts it: real processes, pipes, signals, terminals and a server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rx_agent.cli.offline_evidence import NOTICE
from tests.providers.loopback import (
    FOREVER,
    ChatServer,
    answer,
    finish,
    text,
    tool_call,
    usage,
)

PROGRAM = [sys.executable, "-m", "rx_agent.cli"]
QUESTION = "which files here are the largest, and what are they?"
REPOSITORY = Path(__file__).parents[2]
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals and terminals")


def environment(**more: str) -> dict[str, str]:
    """The environment without any key, so that the offline model answers."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    kept.pop("RX_AGENT_MODEL", None)
    return {**kept, "PYTHONPATH": str(REPOSITORY), "NO_PROXY": "*", **more}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "README.md").write_text("# Mailsort\n\nSorts mail.\n")
    (tmp_path / "app.db").write_bytes(b"SQLite format 3\x00" + bytes(40_000))
    return tmp_path


def rx_agent(
    *arguments: str, cwd: Path, input: str | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    given: dict[str, Any] = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
    return subprocess.run(
        [*PROGRAM, *arguments],
        cwd=cwd,
        env=environment(**env),
        capture_output=True,
        text=True,
        timeout=20,
        encoding="utf-8",
        check=False,
        **given,
    )


def test_the_main_job(folder: Path) -> None:
    done = rx_agent(QUESTION, cwd=folder)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0] == NOTICE
    assert '→ 1 list_files(sort="size", limit=10)' in lines
    assert any(re.match(r"✓ \d read_file \d+\.\d\d s: app\.db: SQLite database", line) for line in lines)
    assert "1. app.db, 40.0 kB: SQLite database" in lines
    assert re.fullmatch(
        r"── completed: 3 turns · 4 tool calls · [\d,]+ tokens in, [\d,]+ out · \$0 · \d\.\d s · offline:offline",
        lines[-1],
    )
    assert "\x1b" not in done.stdout


def test_a_question_in_a_pipe_is_answered_and_that_is_it(folder: Path) -> None:
    done = rx_agent(cwd=folder, input="how many files are here?\n")
    assert done.returncode == 0
    assert "Here are 2 files" in done.stdout


def test_piped_text_is_context_for_the_prompt(folder: Path) -> None:
    done = rx_agent("summarise", cwd=folder, input="# Notes\n\nbuy milk\n")
    assert done.returncode == 0
    assert "It begins: Notes: buy milk" in done.stdout


def test_wrong_use_is_one_line_and_2(folder: Path) -> None:
    done = rx_agent("hi", cwd=folder, RX_AGENT_MODEL="openai:x")
    assert (done.returncode, done.stdout) == (2, "")
    assert "set the environment variable OPENAI_API_KEY" in done.stderr
    assert done.stderr.count("\n") == 1


@posix_only
def test_closed_standard_streams_are_no_accident(folder: Path) -> None:
    processes = {
        closed: subprocess.Popen(
            ["/bin/sh", "-c", f'exec "$0" -m rx_agent.cli hello {closed}', sys.executable],
            cwd=folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for closed in ("<&-", ">&-", "2>&- </dev/null")
    }
    for closed, process in processes.items():
        _, err = process.communicate(timeout=20)
        assert (process.returncode, err) == (0, ""), closed


# --- a reader that leaves, a key that is pressed -----------------------------------------------------------


@contextmanager
def started(*arguments: str, cwd: Path, **options: Any) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=cwd,
        env=environment(),
        stdin=options.pop("stdin", subprocess.DEVNULL),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        **options,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@posix_only
def test_a_reader_that_has_seen_enough_ends_it_quietly(folder: Path) -> None:
    with started(QUESTION, cwd=folder) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == NOTICE + "\n"
        process.stdout.close()
        assert process.wait(10) == 141
        assert process.stderr.read() == ""


@posix_only
def test_ctrl_c_keeps_what_came_and_says_aborted(folder: Path) -> None:
    with started(QUESTION, cwd=folder) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
        assert process.returncode == 130
        assert "── aborted: " in out
        assert err == ""


@posix_only
def test_a_second_ctrl_c_quits_even_where_nobody_reads_what_is_written(folder: Path) -> None:
    for number in range(400):
        (folder / f"{number}{'x' * 200}").touch()
    with started("--json", "what is here?", cwd=folder) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(1.5)  # by now the pipe is full, and the program waits for a reader
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(5) == 130


# --- a terminal --------------------------------------------------------------------------------------------


class Terminal:
    """The program on a pseudo-terminal, and somebody who types and reads."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        import pty

        self._near, far = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _TAKE_TERMINAL, *PROGRAM, *arguments],
            cwd=cwd,
            env=environment(TERM="xterm"),
            stdin=far,
            stdout=far,
            stderr=far,
            start_new_session=True,
        )
        os.close(far)
        self.seen = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._near)

    def type(self, text: str) -> None:
        os.write(self._near, text.encode())

    def until(self, expected: str, seconds: float = 10.0) -> str:
        """Reads until ``expected`` is there; returns what came up to it, and forgets that."""
        deadline = time.monotonic() + seconds
        while expected not in self.seen:
            ready, _, _ = select.select([self._near], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"{expected!r} did not come; seen: {self.seen!r}"
            self.seen += os.read(self._near, 65536).decode()
        before, _, self.seen = self.seen.partition(expected)
        return before + expected


# The leader of a session has to claim the terminal whose Ctrl-C it wants to hear.
_TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


@posix_only
def test_a_chat_on_a_terminal_with_steering_and_a_follow_up(folder: Path) -> None:
    with Terminal(cwd=folder) as terminal:
        terminal.until("offline:offline; /help lists the commands")
        terminal.until("> ")
        terminal.type("what are the largest files?\n")
        terminal.until("I list the largest files")
        terminal.type("only the markdown files\n")
        terminal.type("/follow how many files are here?\n")
        terminal.until("» only the markdown files")
        terminal.until("The largest file here matching *.{md,markdown} is README.md")
        terminal.until("Here are 2 files")
        terminal.until("completed")
        terminal.until("> ")
        terminal.type("/quit\n")
        assert terminal.process.wait(10) == 0


@posix_only
def test_ctrl_c_in_a_chat_stops_the_answer_and_another_leaves(folder: Path) -> None:
    with Terminal(cwd=folder) as terminal:
        terminal.until("> ")
        terminal.type("what are the largest files?\n")
        terminal.until("Built-in")
        terminal.type("\x03")
        terminal.until("── aborted")
        terminal.until("> ")
        terminal.type("hello\n")
        terminal.until("── completed")
        terminal.until("> ")
        terminal.type("\x03")
        assert terminal.process.wait(10) == 130
        assert "Traceback" not in terminal.seen


@posix_only
def test_the_end_of_input_on_a_terminal_leaves_after_the_answer(folder: Path) -> None:
    with Terminal(cwd=folder) as terminal:
        terminal.until("> ")
        terminal.type("hello\n")
        terminal.until("Built-in")
        terminal.type("\x04")
        terminal.until("── completed")
        assert terminal.process.wait(10) == 0


# --- a server ----------------------------------------------------------------------------------------------


async def start(server: ChatServer, folder: Path, *arguments: str, **env: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *PROGRAM,
        *("--base-url", server.base_url, "--model", "m"),
        *arguments,
        cwd=folder,
        env=environment(**env),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


def test_a_server_of_ones_own_with_tools_prices_and_a_key(folder: Path) -> None:
    reading = tool_call("read_file", {"path": "README.md"})
    calls = answer(text("Let me look. "), reading, finish("tool_calls"), usage(1000, 10))
    last = answer(text("It sorts ", "mail."), finish("stop"), usage(2000, 20))

    async def ask() -> None:
        async with ChatServer(calls, last) as server:
            arguments = ("--prices", "1,10", "--thinking", "low", "what is it?")
            process = await start(server, folder, *arguments, RX_AGENT_API_KEY="k-123")
            out, err = await process.communicate()
            assert (process.returncode, err) == (0, b"")
            assert "It sorts mail." in out.decode()
            assert "✓ 1 read_file" in out.decode()
            assert "3,000 tokens in, 30 out · $0.0033" in out.decode()
            first, second = server.requests
            assert first.headers["authorization"] == "Bearer k-123"
            offered = [tool["function"]["name"] for tool in first.json["tools"]]
            assert offered == ["list_files", "read_file", "search_files"]
            told = second.json["messages"][-1]
            assert (told["role"], "Sorts mail." in json.dumps(told)) == ("tool", True)

    asyncio.run(ask())


@posix_only
def test_ctrl_c_closes_the_connection(folder: Path) -> None:
    async def ask() -> None:
        async with ChatServer(answer(text("So far, "), done=False, then=FOREVER)) as server:
            process = await start(server, folder, "hi")
            assert process.stdout is not None
            assert await process.stdout.readexactly(8) == b"So far, "
            process.send_signal(signal.SIGINT)
            out, _ = await process.communicate()
            assert process.returncode == 130
            assert b"aborted" in out
            await server.until_closed()

    asyncio.run(ask())
