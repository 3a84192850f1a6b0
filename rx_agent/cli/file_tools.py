"""Three read-only tools for the files below one folder: list, read, search.

Each result's ``content`` is written for a model; ``details`` holds the same as data. All three run in worker
threads, tell how far they are on big trees, and stop soon after an abort.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field

from rx_agent.cli.file_kinds import SAMPLE_SIZE, kind_of_file
from rx_agent.cli.file_search import Search, search
from rx_agent.cli.file_text import TextSlice, read_slice
from rx_agent.cli.file_tree import Entry, FileTree, WalkReport, glob_pattern, human_size
from rx_agent.messages import ToolResult
from rx_agent.tools import Tool, ToolContext, tool

PROGRESS_EVERY = 2_000
"""After how many files a tool says how far it is."""

Where = Annotated[str, Field(description="A folder (or one file) below the current folder.")]
Glob = Annotated[
    str, Field(description="Only files that match, such as *.py, README* or src/**/*.{js,ts}.", min_length=1)
]
Everything = Annotated[
    bool, Field(description="Look into .git, node_modules, __pycache__ and virtual environments too.")
]


def file_tools(root: Path) -> list[Tool]:
    """``list_files``, ``read_file`` and ``search_files`` below ``root``.

    They read only, and neither ``..`` nor absolute paths nor symbolic links lead outside.

    >>> [each.name for each in file_tools(Path("."))]
    ['list_files', 'read_file', 'search_files']
    """
    tree = FileTree(root)

    @tool
    def list_files(
        context: ToolContext,
        *,
        path: Where = ".",
        pattern: Glob = "*",
        sort: Annotated[Literal["name", "size"], Field(description="size: the largest first.")] = "name",
        limit: Annotated[int, Field(ge=1, le=1000)] = 100,
        recursive: Annotated[bool, Field(description="false: only this folder, its folders named.")] = True,
        include_ignored: Everything = False,
    ) -> ToolResult:
        """Lists files with their sizes, and counts them by type. Totals cover all files that match."""
        walk = _Walk(tree, context, path, include_ignored=include_ignored, recursive=recursive)
        listing = _Listing()
        matching = walk.entries(pattern)
        if sort == "size":
            shown = heapq.nsmallest(
                limit, listing.counted(matching), key=lambda each: (-each.size, each.path)
            )
        else:
            shown = heapq.nsmallest(limit, listing.counted(matching), key=lambda each: each.path)
        return listing.result(walk, shown, path, pattern)

    @tool
    def read_file(
        context: ToolContext,
        path: Annotated[str, Field(description="The file, below the current folder.", min_length=1)],
        offset: Annotated[int, Field(ge=1, description="The first line to read, counted from 1.")] = 1,
        limit: Annotated[int, Field(ge=1, le=2000, description="How many lines.")] = 200,
    ) -> ToolResult:
        """Reads lines of a text file and says what kind of file it is; of binary files only the kind."""
        real = tree.locate(path)
        name = tree.name(real)
        with tree.open(real) as file:
            head = file.read(SAMPLE_SIZE)
            size = file.seek(0, 2)
            kind = kind_of_file(name, head)
            about = f"{name}: {kind.description}, {human_size(size)}"
            details: dict[str, Any] = {"path": name, "kind": kind.description, "size": size}
            if kind.encoding is None:
                return ToolResult(content=f"{about}. Not text, so not shown.", details=details)
            file.seek(0)
            part = read_slice(
                file, kind.encoding, offset, limit, say=context.update, stopped=lambda: context.signal.aborted
            )
        details |= {"text": part.text, "first_line": offset, "lines": part.total_lines, "cut": part.more}
        return ToolResult(
            content="\n".join([about + _shown_lines(part, offset), *part.notes, "", part.text]),
            details=details,
        )

    @tool
    def search_files(
        context: ToolContext,
        *,
        text: Annotated[str, Field(description="The text (or regular expression) to find in a line.")],
        path: Where = ".",
        pattern: Glob = "*",
        regex: Annotated[bool, Field(description="text is a Python regular expression.")] = False,
        ignore_case: bool = False,
        count_only: Annotated[
            bool, Field(description="Only count matching lines per file; empty text then counts all lines.")
        ] = False,
        limit: Annotated[int, Field(ge=1, le=500, description="How many matches (or files) to show.")] = 50,
        include_ignored: Everything = False,
    ) -> ToolResult:
        """Finds the lines of text files that contain something, with line numbers."""
        wanted = Search(text, regex=regex, ignore_case=ignore_case, count_only=count_only, limit=limit)
        walk = _Walk(tree, context, path, include_ignored=include_ignored)
        found = search(tree, walk.entries(pattern), wanted, lambda: context.signal.aborted)
        return ToolResult(
            content="\n".join([*found.lines(wanted), *walk.report.notes()]), details=found.details()
        )

    return [list_files, read_file, search_files]


def _shown_lines(part: TextSlice, offset: int) -> str:
    total = f" of {part.total_lines}" if part.total_lines is not None else ""
    if part.shown == 0:
        return f", there is no line {offset}{total}" if offset > 1 else ""
    return f", lines {offset}-{offset + part.shown - 1}{total}"


class _Walk:
    """One tool call's walk: what it passes, and what it says on the way."""

    def __init__(
        self,
        tree: FileTree,
        context: ToolContext,
        path: str,
        *,
        include_ignored: bool,
        recursive: bool = True,
    ) -> None:
        self.report = WalkReport()
        self._tree = tree
        self._context = context
        self._start = tree.locate(path)
        self._include_ignored = include_ignored
        self.recursive = recursive

    def entries(self, pattern: str) -> Iterator[Entry]:
        """The entries that match; folders match ``*`` only. Just the file itself where the path is one."""
        if not self._start.is_dir():
            yield Entry(self._tree.name(self._start), self._start.stat().st_size)
            return
        walk = self._tree.walk(
            self._start,
            self.report,
            recursive=self.recursive,
            include_ignored=self._include_ignored,
            stopped=lambda: self._context.signal.aborted,
        )
        matches = glob_pattern(pattern).fullmatch
        # Models write globs relative to the path they gave as often as to the root.
        above = 0 if self._start == self._tree.root else len(self._tree.name(self._start)) + 1
        for number, entry in enumerate(walk, 1):
            if entry.is_folder:
                if pattern == "*":
                    yield entry
            elif matches(entry.path) or (above and matches(entry.path[above:])):
                yield entry
            if number % PROGRESS_EVERY == 0:
                self._context.update(f"{number:,} files so far, now at {entry.path}")


class _Listing:
    """What a listing counts beside what it shows."""

    def __init__(self) -> None:
        self.files = 0
        self.folders = 0
        self.size = 0
        self.types: Counter[str] = Counter()

    def counted(self, entries: Iterator[Entry]) -> Iterator[Entry]:
        for entry in entries:
            if entry.is_folder:
                self.folders += 1
            else:
                self.files += 1
                self.size += entry.size
                self.types[PurePosixPath(entry.path).suffix.lower() or "no suffix"] += 1
            yield entry

    def result(self, walk: _Walk, shown: list[Entry], path: str, pattern: str) -> ToolResult:
        which = f" matching {pattern}" if pattern != "*" else ""
        total = f"{self.files:,} file{'' if self.files == 1 else 's'}{which}, {human_size(self.size)} in all"
        if self.folders:
            total += f", and {self.folders} folder{'' if self.folders == 1 else 's'}"
        left = self.files + self.folders - len(shown)
        lines = [total, *(_listed(entry) for entry in shown)]
        if left:
            lines.append(f"(truncated: {left:,} more; ask for a higher limit, a path or a pattern)")
        return ToolResult(
            content="\n".join([*lines, *walk.report.notes()]),
            details={
                "path": path,
                "pattern": pattern,
                "recursive": walk.recursive,
                "files": [{"path": entry.path, "size": entry.size} for entry in shown if not entry.is_folder],
                "folders": [entry.path for entry in shown if entry.is_folder],
                "total_files": self.files,
                "total_size": self.size,
                "types": dict(self.types.most_common(20)),
                "truncated": left > 0,
                "notes": walk.report.notes(),
            },
        )


def _listed(entry: Entry) -> str:
    return (
        f"{'folder':>9}  {entry.path}/" if entry.is_folder else f"{human_size(entry.size):>9}  {entry.path}"
    )
