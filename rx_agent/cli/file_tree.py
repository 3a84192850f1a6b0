"""A folder that can be looked into but not left: safe paths, a walk that names what it could not read, globs."""

from __future__ import annotations

import difflib
import functools
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from rx_agent.errors import ToolArgumentsError

IGNORED = frozenset(
    {
        *(".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__"),
        *(".hypothesis", ".pytest_cache", ".ruff_cache", ".mypy_cache", ".import_linter_cache"),
    }
)
"""Folders left out unless asked for; so are virtual environments, whatever they are called."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file (or folder, where ``is_folder``): ``path`` below the root with ``/``, ``size`` in bytes."""

    path: str
    size: int
    is_folder: bool = False


@dataclass(slots=True)
class WalkReport:
    """What a walk left out, for telling the model; lists hold paths below the root."""

    ignored: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])
    links: int = 0

    def notes(self) -> list[str]:
        """Readable lines, none where nothing was left out."""
        notes: list[str] = []
        if self.ignored:
            notes.append(f"left out: {_some(self.ignored)} (include_ignored=true shows them)")
        if self.links:
            notes.append(f"{self.links} symbolic link{'s' if self.links > 1 else ''} not followed")
        if self.problems:
            notes.append(f"could not be read: {_some(self.problems)}")
        return notes


def _some(names: list[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def reason_of(error: OSError) -> str:
    """Why, in two or three words, without the path that the caller names anyway."""
    return (error.strerror or type(error).__name__).lower()


class FileTree:
    """The files below ``root``. Every path that comes from a model goes through :meth:`locate`."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def locate(self, path: str) -> Path:
        """The real path of ``path`` (relative to the root, or absolute inside it), symbolic links followed.

        Raises ``ToolArgumentsError``, written for the model, where it leads outside or is not there.
        """
        if "\x00" in path:
            raise ToolArgumentsError("path: must not contain a NUL character")
        try:
            real = (self.root / (path or ".")).resolve()
        except (OSError, RuntimeError) as error:  # a loop of links, a name that is too long
            raise ToolArgumentsError(f"path: {path[-200:]!r} cannot be followed ({error})") from error
        if not real.is_relative_to(self.root):
            raise ToolArgumentsError(
                f"path: {path!r} leads outside of the folder that can be read; give one below it"
            )
        try:
            os.lstat(real)
        except PermissionError as error:
            raise ToolArgumentsError(f"{path}: permission denied") from error
        except (OSError, ValueError) as error:
            raise ToolArgumentsError(
                f"path: there is no {path[-200:]!r} here{self._nearest(real)}"
            ) from error
        return real

    def name(self, real: Path) -> str:
        """``real`` as it is called from the root, with ``/``."""
        return real.relative_to(self.root).as_posix()

    def _nearest(self, real: Path) -> str:
        try:
            names = sorted(os.listdir(real.parent))
        except OSError:
            return "; list_files shows what there is"
        near = difflib.get_close_matches(real.name, names, n=3, cutoff=0.5)
        folder = "" if real.parent == self.root else self.name(real.parent) + "/"
        return f"; did you mean {' or '.join(folder + name for name in near)}?" if near else ""

    def open(self, real: Path) -> BinaryIO:
        """Opens a regular file that :meth:`locate` or a walk gave.

        Raises ``ToolArgumentsError`` for anything else: a pipe or a device could block for ever.
        """
        # The path is real, so a link in its last place was put there meanwhile; O_NONBLOCK: a pipe opens at once.
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            descriptor = os.open(real, flags | getattr(os, "O_BINARY", 0))
        except IsADirectoryError as error:
            raise ToolArgumentsError(f"{self.name(real)} is a folder; list_files shows it") from error
        except OSError as error:
            raise ToolArgumentsError(f"{self.name(real)}: {reason_of(error)}") from error
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            os.close(descriptor)
            what = "is a folder; list_files shows it" if stat.S_ISDIR(mode) else "is no regular file"
            raise ToolArgumentsError(f"{self.name(real)} {what}")
        return os.fdopen(descriptor, "rb")

    def walk(
        self,
        start: Path,
        report: WalkReport,
        *,
        recursive: bool = True,
        include_ignored: bool = False,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Iterator[Entry]:
        """The files below ``start`` in the order of their names; folders themselves only where not ``recursive``.

        Links are not followed, so that nothing is outside, counted twice, or endless. ``stopped()`` is asked
        before each entry.
        """
        folders = [start]
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(folder) as scan:
                    entries = sorted(scan, key=lambda entry: entry.name)
            except OSError as error:
                report.problems.append(f"{self.name(folder)} ({reason_of(error)})")
                continue
            below: list[Path] = []
            for entry in entries:
                if stopped():
                    return
                path = Path(entry.path)
                try:
                    if entry.is_symlink():
                        report.links += 1
                    elif entry.is_dir(follow_symlinks=False):
                        if not include_ignored and _is_ignored(entry):
                            report.ignored.append(self.name(path) + "/")
                        elif recursive:
                            below.append(path)
                        else:
                            yield Entry(self.name(path), 0, is_folder=True)
                    else:
                        yield Entry(self.name(path), entry.stat(follow_symlinks=False).st_size)
                except OSError as error:
                    report.problems.append(f"{self.name(path)} ({reason_of(error)})")
            folders.extend(reversed(below))


def _is_ignored(entry: os.DirEntry[str]) -> bool:
    return entry.name in IGNORED or os.path.exists(os.path.join(entry.path, "pyvenv.cfg"))


@functools.lru_cache(maxsize=64)
def glob_pattern(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression for paths with ``/``: ``*.py``, ``src/**/*.{js,ts}``, ``test_?.py``.

    Without a ``/`` it is matched against the name alone, at any depth. Case does not matter.

    >>> bool(glob_pattern("*.py").fullmatch("a/b/c.py")), bool(glob_pattern("a/*.py").fullmatch("a/b/c.py"))
    (True, False)
    """
    pattern = pattern.removeprefix("./")
    written = "(?:.*/)?" if "/" not in pattern else ""
    at = braces = 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**/", at):
            written, at = written + "(?:.*/)?", at + 3
            continue
        if pattern.startswith("**", at):
            written, at = written + ".*", at + 2
            continue
        closing = pattern.find("]", at + 2) if char == "[" else -1
        if closing > 0:
            inside = pattern[at + 1 : closing].replace("\\", r"\\").replace("[", r"\[")
            written += f"[{'^' + inside[1:] if inside[0] in '!^' else inside}]"
            at = closing + 1
            continue
        match char:
            case "*":
                written += "[^/]*"
            case "?":
                written += "[^/]"
            case "{" if "}" in pattern[at:]:
                written, braces = written + "(?:", braces + 1
            case "}" if braces:
                written, braces = written + ")", braces - 1
            case "," if braces:
                written += "|"
            case _:
                written += re.escape(char)
        at += 1
    try:
        return re.compile(written, re.IGNORECASE | re.DOTALL)
    except re.error as error:
        raise ToolArgumentsError(f"pattern: {pattern!r} is no glob ({error})") from error


def human_size(size: int) -> str:
    """Bytes for people, in powers of 1000.

    >>> human_size(999), human_size(12_345), human_size(3_400_000_000)
    ('999 B', '12.3 kB', '3.4 GB')
    """
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 999.95:
            return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
