"""The command line: what ``rx-agent`` takes, and what ``--help`` says."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import rx_agent
from rx_agent.errors import ConfigurationError
from rx_agent.models import ModelCost, ThinkingLevel


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for on the command line. ``prompt`` None means a chat."""

    prompt: str | None = None
    model: str | None = None
    base_url: str | None = None
    thinking: ThinkingLevel = ThinkingLevel.OFF
    system: str | None = None
    folder: Path = Path()
    max_turns: int | None = None
    prices: ModelCost | None = None
    json: bool = False
    quiet: bool = False


_DESCRIPTION = """\
An LLM agent that can list, read and search the files below the current folder (and change nothing).
With a prompt it answers and exits; without one it is a chat."""

_EPILOG = """\
which model:
  --model, else RX_AGENT_MODEL, else the default model of the first provider whose key is in the environment
  (OPENAI_API_KEY, OPENROUTER_API_KEY, GROQ_API_KEY, MISTRAL_API_KEY, DEEPSEEK_API_KEY, ...), else a built-in
  offline model: rules, no LLM. "--model offline" asks for that one. Any OpenAI-compatible server will do:
    rx-agent --model ollama:llama3.2 "..."
    rx-agent --base-url http://localhost:8080/v1 --model MODEL "..."     (a key, if needed: RX_AGENT_API_KEY)

pipes:
  echo "question" | rx-agent      what comes on standard input is the prompt; lines that come while the agent works
                                  are steering messages, as in a chat
  cat FILE | rx-agent "prompt"    what comes is context for the prompt. If nothing at all comes within 3 seconds,
                                  the prompt goes without; in a loop that reads its input use rx-agent ... </dev/null
  answer=$(rx-agent -q "prompt")  only the answer's text

in a chat:
  a line typed while the agent works steers it: the model sees it before its next step
  /follow TEXT  is asked when the agent is through    /abort  stops the answer
  /reset        forgets the conversation              /quit   leaves (as Ctrl-D does, after the running answer)

Ctrl-C aborts the answer, keeping what came; a second one quits.

exit codes:
  0 answered    1 the run failed, or --max-turns ended it    2 wrong use (unknown model, missing key, no prompt ...)
  130 aborted by Ctrl-C    141 whoever read the output went away"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigurationError(f"{message} (rx-agent --help tells more)")


def parse(arguments: Sequence[str] | None) -> Options:
    """The options. Raises ``ConfigurationError`` for wrong use, ``SystemExit`` after ``--help``.

    >>> parse(["which", "files?", "--model", "ollama:llama3.2"]).prompt
    'which files?'
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    # argparse's intermixed parsing forgets that what stands behind "--" is no option.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    given = _parser().parse_intermixed_args(arguments[:end])
    words: list[str] = [*given.prompt, *arguments[end + 1 :]]
    prompt = " ".join(words).strip() if words else None
    if prompt == "":
        raise ConfigurationError("the prompt is empty; leave it out for a chat")
    if given.json and given.quiet:
        raise ConfigurationError("--json and --quiet exclude each other")
    if given.max_turns is not None and given.max_turns < 1:
        raise ConfigurationError("--max-turns must be 1 or more")
    for option in ("model", "base_url", "prices"):
        if getattr(given, option) is not None and not getattr(given, option).strip():
            raise ConfigurationError(f"--{option.replace('_', '-')}: is empty; leave it out for the default")
    folder: Path = given.cwd
    try:
        is_folder = folder.is_dir() and bool(folder.resolve())  # of a deleted folder only the second fails
    except (OSError, ValueError) as error:  # longer than a path may be; a NUL in it
        raise ConfigurationError(
            f"--cwd {_brief(folder)}: {getattr(error, 'strerror', None) or error}"
        ) from error
    if not is_folder:
        raise ConfigurationError(f"--cwd {_brief(folder)}: there is no such folder")
    return Options(
        prompt=prompt,
        model=given.model,
        base_url=given.base_url,
        thinking=ThinkingLevel(given.thinking),
        system=given.system,
        folder=folder,
        max_turns=given.max_turns,
        prices=_prices(given.prices) if given.prices is not None else None,
        json=given.json,
        quiet=given.quiet,
    )


def _brief(folder: Path) -> str:
    path = str(folder)
    return path if len(path) <= 200 else f"{path[:200]}…"


def _prices(text: str) -> ModelCost:
    try:
        prices = [float(part) for part in text.split(",")]
    except ValueError:
        prices = []
    if len(prices) != 2 or not all(math.isfinite(price) and price >= 0 for price in prices):
        raise ConfigurationError(
            f"--prices {text}: give two amounts, such as 0.25,2 (dollars per million tokens)"
        )
    return ModelCost(input=prices[0], output=prices[1])


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="rx-agent",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("prompt", nargs="*", help="what to ask; several words are joined")
    parser.add_argument("-m", "--model", metavar="PROVIDER:ID", help="the model, such as openai:gpt-5-mini")
    parser.add_argument(
        "--base-url", metavar="URL", help="an OpenAI-compatible server, such as http://host:8080/v1"
    )
    parser.add_argument(
        "--thinking",
        metavar="LEVEL",
        choices=[level.value for level in ThinkingLevel],
        default="off",
        help=f"how much a reasoning model may think: {', '.join(ThinkingLevel)} (default: off)",
    )
    parser.add_argument("--system", metavar="TEXT", help="the system prompt, in place of the built-in one")
    parser.add_argument(
        "--cwd",
        metavar="DIR",
        type=Path,
        default=Path(),
        help="the folder to work in, in place of the current one",
    )
    parser.add_argument(
        "--max-turns",
        metavar="N",
        type=int,
        help="end a run that still calls tools after N turns (exit code 1)",
    )
    parser.add_argument(
        "--prices",
        metavar="IN,OUT",
        help="dollars per million input and output tokens, to tell what a run cost",
    )
    parser.add_argument("--json", action="store_true", help="print the run's events as JSON lines")
    parser.add_argument("-q", "--quiet", action="store_true", help="print only the answer, once it is there")
    parser.add_argument("--version", action="version", version=f"rx-agent {rx_agent.__version__}")
    return parser
