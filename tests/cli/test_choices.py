"""The command line's arguments, and which model they come to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rx_agent.cli import main
from rx_agent.cli.arguments import Options, parse
from rx_agent.cli.model_choice import choose_model
from rx_agent.cli.session import exit_code
from rx_agent.errors import ConfigurationError
from rx_agent.events import AgentEndEvent, EndReason
from rx_agent.models import ThinkingLevel


def test_words_are_joined_and_options_may_stand_anywhere(tmp_path: Path) -> None:
    options = parse(["which", "--thinking", "high", "files?", "--cwd", str(tmp_path), "-m", "ollama:x", "-q"])
    assert options == Options(
        prompt="which files?", thinking=ThinkingLevel.HIGH, folder=tmp_path, model="ollama:x", quiet=True
    )
    assert parse([]).prompt is None


def test_what_stands_behind_two_dashes_is_the_prompt_whatever_it_looks_like() -> None:
    assert parse(["--quiet", "--", "-x", "--json"]).prompt == "-x --json"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--modle", "x"], "unrecognized arguments: --modle"),
        (["--thinking", "hard", "x"], "invalid choice: 'hard'"),
        (["  "], "the prompt is empty"),
        (["hi", "--model", ""], "--model: is empty"),
        (["hi", "--base-url", " "], "--base-url: is empty"),
        (["hi", "--prices", ""], "--prices: is empty"),
        (["hi", "--prices", "nan,1"], "--prices nan,1: give two amounts"),
        (["hi", "--prices", "1,inf"], "--prices 1,inf: give two amounts"),
        (["hi", "--prices=-1,2"], "--prices -1,2: give two amounts"),
        (["hi", "--cwd", "x" * 5000], "File name too long"),
        (["hi", "--cwd", "a\0b"], "--cwd a\0b: "),
        (["--json", "-q", "x"], "--json and --quiet exclude each other"),
        (["--max-turns", "0", "x"], "--max-turns must be 1 or more"),
        (["--cwd", "no/such/folder", "x"], "--cwd no/such/folder: there is no such folder"),
        (["--prices", "cheap", "x"], "--prices cheap: give two amounts"),
        (["--model"], "expected one argument"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("rx-agent: ")
    assert complaint in err
    assert err.count("\n") == 1


def test_help_tells_exit_codes_and_pipes_and_the_version_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    for argument, expected in (
        ("--help", "130 aborted by Ctrl-C"),
        ("--help", "cat FILE | rx-agent"),
        ("--version", "rx-agent 0"),
    ):
        with pytest.raises(SystemExit) as left:
            main([argument])
        assert left.value.code == 0
        assert expected in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "env", "chosen"),
    [
        (Options(), {}, "offline:offline"),
        (Options(model="offline"), {"OPENAI_API_KEY": "k"}, "offline:offline"),
        (Options(), {"GROQ_API_KEY": "k"}, "groq:"),
        (Options(), {"GROQ_API_KEY": "k", "RX_AGENT_MODEL": "ollama:x"}, "ollama:x"),
        (Options(model="ollama:y"), {"RX_AGENT_MODEL": "ollama:x"}, "ollama:y"),
        (Options(model="m", base_url="http://localhost:1/v1"), {}, "openai-compatible:m"),
        (Options(model="openai:m", base_url="http://localhost:1/v1"), {}, "openai:m"),
    ],
)
def test_the_model_is_the_one_given_or_set_or_the_first_with_a_key_or_the_offline_one(
    options: Options, env: dict[str, str], chosen: str
) -> None:
    model = choose_model(options, env)
    assert f"{model.provider}:{model.id}".startswith(chosen)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (Options(model="opnai:gpt"), "did you mean openai"),
        (Options(model="openai:gpt-5-mini"), "set the environment variable OPENAI_API_KEY"),
        (Options(model="gpt-5-mini"), "names no provider"),
        (Options(base_url="http://localhost:1"), "--base-url needs the model's name too"),
        (Options(model="m", base_url="localhost:1"), "must begin with http"),
        (Options(model="offline", base_url="http://localhost:1"), "has no server"),
    ],
)
def test_a_model_that_cannot_be_is_refused_with_the_way_out(options: Options, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(complaint)):
        choose_model(options, {})


def test_given_prices_are_the_models() -> None:
    options = parse(["x", "-m", "ollama:x", "--prices", "0.25,2"])
    cost = choose_model(options, {}).cost
    assert (cost.input, cost.output) == (0.25, 2.0)


@pytest.mark.parametrize(
    ("reason", "interrupted", "code"),
    [
        ("completed", False, 0),
        ("completed", True, 0),
        ("error", False, 1),
        ("stopped", False, 1),
        ("aborted", True, 130),
        ("aborted", False, 0),
    ],
)
def test_exit_codes(reason: EndReason, interrupted: bool, code: int) -> None:
    assert exit_code(AgentEndEvent((), reason), interrupted=interrupted) == code
    assert exit_code(None, interrupted=False) == 0


def test_a_folder_that_was_deleted_under_the_shell_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigurationError, match=r"--cwd \.: "):
        parse(["hi"])
