"""Lines out of text files of any size and any bytes."""

from __future__ import annotations

import io
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import BinaryIO

LONGEST_LINE = 2_000
"""Characters of one line that are shown (or searched)."""
LARGEST_TEXT = 60_000
"""Characters that one reading gives back."""
COUNTED_SIZE = 64_000_000
"""Up to this many bytes the lines behind the ones shown are counted too."""
_PIECE = 65_536
_PROGRESS_EVERY = 500_000


@dataclass(frozen=True, slots=True)
class TextSlice:
    """Some lines of a file. ``total_lines`` is None where nobody counted; ``more`` whether there are further ones."""

    text: str
    shown: int
    total_lines: int | None
    more: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its end, cut to ``LONGEST_LINE`` characters."""

    text: str
    is_cut: bool


def lines_of(file: BinaryIO, encoding: str) -> Generator[Line, None, None]:
    """The lines of ``file``; bytes that do not decode become U+FFFD. A line of gigabytes is never in memory."""
    reader = io.TextIOWrapper(file, encoding=encoding, errors="replace")
    try:
        while piece := reader.readline(_PIECE):
            end = piece.endswith("\n")
            text = piece.rstrip("\r\n") if end else piece
            cut = len(text) > LONGEST_LINE
            while not end and (piece := reader.readline(_PIECE)):
                end, cut = piece.endswith("\n"), True
            yield Line(text[:LONGEST_LINE], cut)
    finally:
        reader.detach()  # the file is the caller's to close


def read_slice(
    file: BinaryIO,
    encoding: str,
    offset: int,
    limit: int,
    *,
    say: Callable[[str], None],
    stopped: Callable[[], bool],
) -> TextSlice:
    """``limit`` lines from line ``offset`` (counted from 1) on, and a count of all where that is cheap."""
    count_all = file.seek(0, io.SEEK_END) <= COUNTED_SIZE
    file.seek(0)
    kept: list[str] = []
    number = size = cut_lines = 0
    full = reached_end = False
    lines = lines_of(file, encoding)
    for number, line in enumerate(lines, 1):
        if stopped():
            break
        if number % _PROGRESS_EVERY == 0:
            say(f"{number:,} lines read")
        if number < offset:
            continue
        full = full or len(kept) == limit or (bool(kept) and size + len(line.text) > LARGEST_TEXT)
        if full:
            if not count_all:
                break
            continue
        kept.append(line.text)
        size += len(line.text)
        cut_lines += line.is_cut
    else:
        reached_end = True
    lines.close()
    more = full
    notes: list[str] = []
    if more:
        notes.append(f"(truncated: ask for offset={offset + len(kept)} to read on)")
    if cut_lines:
        notes.append(
            f"({cut_lines} long line{'s' if cut_lines > 1 else ''} cut to {LONGEST_LINE} characters)"
        )
    text = "\n".join(kept)
    if "\ufffd" in text:
        notes.append(f"(some bytes are not {encoding.upper()} and shown as \ufffd)")
    return TextSlice(text, len(kept), number if reached_end else None, more, tuple(notes))
