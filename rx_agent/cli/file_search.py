"""Searching text files line by line."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import regex as regular_expressions

from rx_agent.cli.file_kinds import SAMPLE_SIZE, kind_of_file
from rx_agent.cli.file_text import lines_of
from rx_agent.cli.file_tree import Entry, FileTree, human_size
from rx_agent.errors import ToolArgumentsError

LARGEST_FILE = 20_000_000
"""Bytes; larger files are named as not searched."""
_SHOWN = 300
MATCHING_SECONDS = 5.0
"""How long one search may spend in matching a regular expression, in all. Some expressions take longer than the
universe has, and only ``regex`` can be told to give up; it lets other threads run meanwhile, too."""


class SlowExpressionError(ToolArgumentsError):
    """A regular expression took longer than ``MATCHING_SECONDS``."""


class Search:
    """What to look for. Raises ``ToolArgumentsError``, written for the model, for what cannot be looked for."""

    def __init__(self, text: str, *, regex: bool, ignore_case: bool, count_only: bool, limit: int) -> None:
        if not text and not count_only:
            raise ToolArgumentsError("text: is empty; say what to find (or count lines with count_only=true)")
        try:
            pattern = regular_expressions.compile(
                text if regex else regular_expressions.escape(text),
                regular_expressions.IGNORECASE if ignore_case else 0,
            )
        except (regular_expressions.error, RecursionError) as error:
            raise ToolArgumentsError(
                f"text: {text!r} is no regular expression ({error}); regex=false finds it as it is"
            ) from error
        self._pattern = pattern
        self._seconds_left = MATCHING_SECONDS
        self.text = text
        self.count_only = count_only
        self.limit = limit
        # A literal is found by the string search where that means the same, which is several times faster.
        self.matches: Callable[[str], Any] = (
            self._search_within_limit
            if regex
            else pattern.search
            if ignore_case
            else lambda line: text in line
        )

    def _search_within_limit(self, line: str) -> Any:
        begun = time.perf_counter()
        try:
            return self._pattern.search(line, timeout=max(self._seconds_left, 0.001), concurrent=True)
        except TimeoutError as error:
            raise SlowExpressionError(
                f"text: matching {self.text!r} took more than {MATCHING_SECONDS:g} s; repetitions inside "
                "repetitions, such as (a+)+, or several .* make a regular expression slow: write it more simply, or "
                "narrow path and pattern"
            ) from error
        finally:
            self._seconds_left -= time.perf_counter() - begun


@dataclass(slots=True)
class Found:
    """What a search came to."""

    matches: list[tuple[str, int, str]] = field(default_factory=list[tuple[str, int, str]])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    searched: int = 0
    binary: int = 0
    skipped: list[str] = field(default_factory=list[str])
    truncated: bool = False

    @property
    def total(self) -> int:
        """How many lines matched."""
        return sum(self.counts.values())

    def lines(self, wanted: Search) -> list[str]:
        """The result for a model."""
        what = f"lines with {wanted.text!r}" if wanted.text else "lines"
        at_least = "at least " if self.truncated and not wanted.count_only else ""
        files = f"{len(self.counts)} of {self.searched} text file{'' if self.searched == 1 else 's'}"
        lines = [f"{at_least}{self.total:,} {what} in {files}"]
        if wanted.count_only:
            ranked = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
            lines += [f"{count:>9,}  {path}" for path, count in ranked[: wanted.limit]]
            if len(ranked) > wanted.limit:
                lines.append(f"(truncated: {len(ranked) - wanted.limit} more files; ask for a higher limit)")
        else:
            lines += [f"{path}:{number}: {text}" for path, number, text in self.matches]
            if self.truncated:
                lines.append("(truncated: ask for a higher limit, or a narrower text, path or pattern)")
        if self.binary:
            lines.append(
                f"not searched: {self.binary} file{'' if self.binary == 1 else 's'} that are not text"
            )
        if self.skipped:
            lines.append(f"not searched: {', '.join(self.skipped[:8])}")
        return lines

    def details(self) -> dict[str, Any]:
        """The result as data."""
        return {
            "matches": [{"path": path, "line": number, "text": text} for path, number, text in self.matches],
            "counts": self.counts,
            "total": self.total,
            "files_searched": self.searched,
            "binary_files": self.binary,
            "skipped": self.skipped,
            "truncated": self.truncated,
        }


def search(tree: FileTree, files: Iterable[Entry], wanted: Search, stopped: Callable[[], bool]) -> Found:
    """Looks through ``files``; ends early once the limit is reached or ``stopped()``."""
    found = Found()
    for entry in files:
        if entry.size > LARGEST_FILE:
            found.skipped.append(f"{entry.path} ({human_size(entry.size)} is too large)")
            continue
        try:
            _search_file(tree, entry, wanted, found, stopped)
        except SlowExpressionError:
            raise
        except ToolArgumentsError as error:  # unreadable, or gone since it was listed
            found.skipped.append(str(error))
        if found.truncated or stopped():
            break
    return found


def _search_file(
    tree: FileTree, entry: Entry, wanted: Search, found: Found, stopped: Callable[[], bool]
) -> None:
    with tree.open(tree.root / entry.path) as file:
        encoding = kind_of_file(entry.path, file.read(SAMPLE_SIZE)).encoding
        if encoding is None:
            found.binary += 1
            return
        file.seek(0)
        found.searched += 1
        for number, line in enumerate(lines_of(file, encoding), 1):
            if number % 1000 == 0 and stopped():
                return
            if not wanted.matches(line.text):
                continue
            if wanted.count_only:
                found.counts[entry.path] = found.counts.get(entry.path, 0) + 1
                continue
            if len(found.matches) == wanted.limit:
                found.truncated = True
                return
            found.counts[entry.path] = found.counts.get(entry.path, 0) + 1
            found.matches.append((entry.path, number, line.text.strip()[:_SHOWN]))
