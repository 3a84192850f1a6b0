"""One start of the program, inside this process: what it prints where, and its exit code."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from rx_agent.cli import main, offline_model, session
from rx_agent.cli.arguments import parse
from rx_agent.cli.offline_evidence import NOTICE
from rx_agent.cli.offline_model import OfflineModel
from rx_agent.cli.session import run_session
from rx_agent.event_json import event_from_json
from rx_agent.events import AgentEndEvent
from tests.providers.loopback import Answer, ChatServer, answer, finish, refuses, says, tool_call, usage

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Starts the program in a folder of two files, with a server where answers are given."""
    (tmp_path / "README.md").write_text("# Mailsort\n")
    (tmp_path / "app.db").write_bytes(b"SQLite format 3\x00" + bytes(40_000))
    monkeypatch.setattr(offline_model, "stream", OfflineModel(word_seconds=0))

    def start(*arguments: str, answers: tuple[Answer, ...] = ()) -> tuple[int, str, str]:
        async def offline() -> int:
            return await run_session(parse(["--cwd", str(tmp_path), *arguments]), {})

        async def served() -> int:
            async with ChatServer(*answers) as server:
                given = ["--cwd", str(tmp_path), "--base-url", server.base_url, "--model", "m", *arguments]
                return await run_session(parse(given), {})

        work: Callable[[], Awaitable[int]] = served if answers else offline
        code = asyncio.run(work(), debug=True)  # type: ignore[arg-type]
        return code, *capsys.readouterr()

    return start


def test_json_lines_can_be_read_back(ask: Ask) -> None:
    code, out, err = ask("--json", "how many files?")
    events = [event_from_json(line) for line in out.splitlines()]
    kinds = {event.type for event in events}
    assert (code, err) == (0, "")
    assert (events[0].type, events[-1].type) == ("agent_start", "agent_end")
    assert {"tool_execution_start", "tool_execution_end", "message_update", "turn_end"} <= kinds
    assert isinstance(events[-1], AgentEndEvent)
    assert "Here are 2 files" in events[-1].text


def test_quiet_gives_a_script_the_bare_answer_and_says_elsewhere_who_gave_it(ask: Ask) -> None:
    code, out, err = ask("-q", "how many files?")
    assert code == 0
    assert out.startswith("Here are 2 files, 40.0 kB in all.\n")
    assert "tokens" not in out
    assert err == NOTICE + "\n"
    assert ask("-q", "--model", "offline", "how many files?")[2] == ""


def test_a_server_that_refuses_is_a_failed_run(ask: Ask) -> None:
    code, out, _ = ask("hi", answers=(refuses(404, "no such model"),))
    assert code == 1
    assert "error: " in out
    assert "no such model" in out


def test_max_turns_ends_a_run_that_never_ends(ask: Ask) -> None:
    code, out, _ = ask(
        "--max-turns",
        "2",
        "hi",
        answers=(answer(tool_call("list_files", {}), finish("tool_calls"), usage(1, 1)),),
    )
    assert code == 1
    assert "── stopped: 2 turns · 2 tool calls" in out


def test_max_turns_does_not_touch_a_run_that_ends_in_time(ask: Ask) -> None:
    code, out, _ = ask("--max-turns", "1", "hi", answers=(says("hello"),))
    assert code == 0
    assert "hello\n\n── completed: 1 turn" in out


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_ctrl_c_while_waiting_for_a_pipe_quits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RX_AGENT_MODEL", "offline")
    reading, writing = os.pipe()
    monkeypatch.setattr(session, "_STDIN", reading)
    press = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    press.start()
    before = signal.getsignal(signal.SIGINT)
    assert main(["hello"]) == 130
    press.join()
    assert signal.getsignal(signal.SIGINT) is before
    assert capsys.readouterr() == ("", "")
    os.close(reading)
    os.close(writing)
