"""Text about arguments that do not fit, written for the model that sent them."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rx_agent.errors import ToolArgumentsError

Path: TypeAlias = tuple[str | int, ...]

_MOST_PROBLEMS = 20
_VALUE_LENGTH = 120
_RECEIVED_LENGTH = 2000


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong at ``path`` (keys and indices from the arguments' root)."""

    path: Path
    text: str

    def __str__(self) -> str:
        return f"`{path_text(self.path)}`: {self.text}" if self.path else self.text


class Misfit(Exception):
    """Raised by a tool's check; becomes a ``ToolArgumentsError``."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = [str(problem) for problem in problems]
        super().__init__("; ".join(self.problems))


def arguments_error(tool_name: str, problems: Sequence[str], received: Any) -> ToolArgumentsError:
    """The error that a model is shown: each problem, and what it had sent."""
    lines = [f"- {problem}" for problem in dict.fromkeys(problems)]
    if len(lines) > _MOST_PROBLEMS:
        lines[_MOST_PROBLEMS:] = [f"- and {len(lines) - _MOST_PROBLEMS} more"]
    return ToolArgumentsError(
        f'Invalid arguments for tool "{tool_name}":\n'
        + "\n".join(lines)
        + f"\nReceived arguments: {shown(received, _RECEIVED_LENGTH)}"
        + "\nCall the tool again with corrected arguments."
    )


def path_text(path: Path) -> str:
    """``("points", 0, "x")`` as ``points[0].x``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def shown(value: Any, length: int = _VALUE_LENGTH) -> str:
    """``value`` as JSON, cut after ``length`` characters."""
    text = json.dumps(value, ensure_ascii=False, default=str, skipkeys=True)
    return text if len(text) <= length else f"{text[:length]}… ({len(text) - length} more characters)"


def missing(path: Path) -> Problem:
    return Problem(path, "is required but missing")


def unknown(path: Path, known: Iterable[str]) -> Problem:
    """An argument nobody asked for, with the right name where one is close."""
    names = list(known)
    if not names:
        return Problem(path, "is unknown; no arguments are taken here")
    spelled = {_plain(name): name for name in names}
    close = difflib.get_close_matches(_plain(str(path[-1])), list(spelled), n=1, cutoff=0.6)
    hint = f"; did you mean `{spelled[close[0]]}`?" if close else "."
    return Problem(path, f"is unknown{hint} Known are: {', '.join(names)}")


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
