"""The file tools on real folders: what they find, what they refuse, and that they never get out."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rx_agent.cli import file_search, file_text, file_tools, file_tree
from rx_agent.cli.file_tree import FileTree, glob_pattern
from rx_agent.errors import ToolArgumentsError
from rx_agent.messages import ToolResult
from rx_agent.tools import Tool, ToolContext


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small project beside a secret that must stay out of reach."""
    (tmp_path / "secret.txt").write_text("password")
    root = tmp_path / "project"
    for folder in ("src/deep", ".git", "node_modules/x", "env", "docs"):
        (root / folder).mkdir(parents=True)
    (root / "README.md").write_text("# Project\n\nSorts mail.\n")
    (root / "src/main.py").write_text("import os\n\n\ndef main():\n    print('TODO')\n")
    (root / "src/deep/big.csv").write_text("a,b\n" + "1,2\n" * 1000)
    (root / "docs/logo.png").write_bytes(
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x10\x00\x00\x00\x08TODO"
    )
    (root / ".git/config").write_text("TODO")
    (root / "node_modules/x/index.js").write_text("TODO")
    (root / "env/pyvenv.cfg").write_text("home = /usr\nTODO")
    return root


class Tools:
    """The tools as a model calls them: arguments are validated first."""

    def __init__(self, root: Path) -> None:
        self._tools = {tool.name: tool for tool in file_tools.file_tools(root)}
        self.context: ToolContext[Any] = ToolContext()
        self.said: list[str] = []

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def call(self, tool_name: str, **arguments: Any) -> ToolResult:
        tool = self._tools[tool_name]
        results: list[ToolResult] = []
        emissions = tool.run(tool.validated(arguments), self.context)

        def take(emission: Any) -> None:
            if emission.final:
                results.append(emission.result)
            else:
                self.said.append(emission.result.text)

        failures: list[Exception] = []
        emissions.subscribe(take, failures.append)
        if failures:
            raise failures[0]
        return results[0]


@pytest.fixture
def tools(root: Path) -> Tools:
    return Tools(root)


# --- listing -----------------------------------------------------------------------------------------------


def test_the_largest_files_come_first_with_totals_and_types(tools: Tools) -> None:
    result = tools.call("list_files", sort="size", limit=2)
    assert [entry["path"] for entry in result.details["files"]] == ["src/deep/big.csv", "src/main.py"]
    assert result.details["total_files"] == 4
    assert result.details["types"] == {".png": 1, ".csv": 1, ".md": 1, ".py": 1}
    assert result.text.splitlines()[0] == "4 files, 4.1 kB in all"
    assert "(truncated: 2 more; ask for a higher limit, a path or a pattern)" in result.text


def test_what_is_left_out_is_named_and_can_be_asked_for(tools: Tools) -> None:
    assert (
        "left out: .git/, env/, node_modules/ (include_ignored=true shows them)"
        in tools.call("list_files").text
    )
    everything = tools.call("list_files", include_ignored=True)
    assert {".git/config", "env/pyvenv.cfg", "node_modules/x/index.js"} <= {
        entry["path"] for entry in everything.details["files"]
    }


def test_one_folder_alone_names_its_folders(tools: Tools) -> None:
    result = tools.call("list_files", recursive=False)
    assert result.details["folders"] == ["docs", "src"]
    assert [entry["path"] for entry in result.details["files"]] == ["README.md"]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"pattern": "*.py"}, ["src/main.py"]),
        ({"path": "src"}, ["src/deep/big.csv", "src/main.py"]),
        ({"path": "src", "pattern": "deep/*"}, ["src/deep/big.csv"]),
        ({"pattern": "src/**/*.{csv,py}"}, ["src/deep/big.csv", "src/main.py"]),
        ({"pattern": "readme*"}, ["README.md"]),
        ({"path": "README.md"}, ["README.md"]),
        ({"pattern": "*.rs"}, []),
    ],
)
def test_paths_and_patterns_narrow_the_list(
    tools: Tools, arguments: dict[str, str], found: list[str]
) -> None:
    assert [entry["path"] for entry in tools.call("list_files", **arguments).details["files"]] == found


def test_a_folder_that_cannot_be_read_is_named_and_the_rest_is_listed(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def refusing(path: Any) -> Any:
        if Path(path).name == "docs":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    result = tools.call("list_files")
    assert "could not be read: docs (permission denied)" in result.text
    assert result.details["total_files"] == 3


def test_an_empty_folder_is_said_to_be_empty(tmp_path: Path) -> None:
    assert Tools(tmp_path).call("list_files").text == "0 files, 0 B in all"


# --- reading -----------------------------------------------------------------------------------------------


def test_a_part_of_a_file_says_where_it_stands_and_how_to_read_on(tools: Tools) -> None:
    result = tools.call("read_file", path="src/deep/big.csv", offset=2, limit=3)
    assert result.text.splitlines() == [
        "src/deep/big.csv: CSV table, 4.0 kB, lines 2-4 of 1001",
        "(truncated: ask for offset=5 to read on)",
        "",
        *["1,2"] * 3,
    ]
    assert result.details["text"] == "1,2\n1,2\n1,2"


def test_the_end_of_a_file_and_what_is_behind_it(tools: Tools) -> None:
    assert "lines 1-3 of 3" in tools.call("read_file", path="README.md").text
    assert "there is no line 9 of 3" in tools.call("read_file", path="README.md", offset=9).text


def test_a_binary_file_is_named_and_not_shown(tools: Tools) -> None:
    result = tools.call("read_file", path="docs/logo.png")
    assert result.text == "docs/logo.png: PNG image, 16 x 8, 28 B. Not text, so not shown."


def test_undecodable_bytes_are_shown_as_such(root: Path, tools: Tools) -> None:
    (root / "odd.txt").write_bytes(b"x" * 9000 + b"\n\xff\xfe end\n")
    result = tools.call("read_file", path="odd.txt", offset=2)
    assert "(some bytes are not UTF-8 and shown as \ufffd)" in result.text
    assert result.details["text"] == "\ufffd\ufffd end"


def test_long_lines_are_cut_and_lines_that_are_gigantic_never_held(root: Path, tools: Tools) -> None:
    (root / "line.json").write_text("[" + "1," * 400_000 + "1]\nlast\n")
    result = tools.call("read_file", path="line.json")
    assert "(1 long line cut to 2000 characters)" in result.text
    assert result.details["lines"] == 2
    assert result.details["text"].endswith("\nlast")


def test_a_huge_file_is_read_no_further_than_asked(
    root: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_text, "COUNTED_SIZE", 100)
    result = tools.call("read_file", path="src/deep/big.csv", limit=2)
    assert result.text.splitlines()[0] == "src/deep/big.csv: CSV table, 4.0 kB, lines 1-2"
    assert result.details["lines"] is None


def test_an_utf_16_file_is_read(root: Path, tools: Tools) -> None:
    (root / "win.txt").write_text("Grüße\r\nzwei\r\n", encoding="utf-16", newline="")
    assert tools.call("read_file", path="win.txt").details["text"] == "Grüße\nzwei"


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("READM.md", "there is no 'READM.md' here; did you mean README.md?"),
        ("src/mian.py", "did you mean src/main.py?"),
        ("src", "src is a folder; list_files shows it"),
        ("a\x00b", "must not contain a NUL character"),
        ("x" * 5000, "xxx' here"),
        ("README.md/x", "there is no"),
    ],
)
def test_a_path_that_leads_to_no_file_is_answered_with_help(tools: Tools, path: str, complaint: str) -> None:
    with pytest.raises(ToolArgumentsError, match=re.escape(complaint)):
        tools.call("read_file", path=path)


def test_a_file_that_may_not_be_read_is_named(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*_: Any) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(file_tree.os, "open", refusing)
    with pytest.raises(ToolArgumentsError, match=r"README\.md: permission denied"):
        tools.call("read_file", path="README.md")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_refused_and_does_not_block(root: Path, tools: Tools) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(ToolArgumentsError, match="pipe is no regular file"):
        tools.call("read_file", path="pipe")
    assert "pipe is no regular file" in tools.call("search_files", text="x").text


# --- searching ---------------------------------------------------------------------------------------------


def test_a_search_names_file_line_and_text_and_what_it_passed_over(tools: Tools) -> None:
    result = tools.call("search_files", text="TODO")
    assert result.details["matches"] == [{"path": "src/main.py", "line": 5, "text": "print('TODO')"}]
    assert "not searched: 1 file that are not text" in result.text


def test_a_search_may_ignore_case_or_take_an_expression_or_a_glob(tools: Tools) -> None:
    assert tools.call("search_files", text="todo").details["total"] == 0
    assert tools.call("search_files", text="todo", ignore_case=True).details["total"] == 1
    assert tools.call("search_files", text=r"^def \w+", regex=True).details["total"] == 1
    assert tools.call("search_files", text="(", pattern="*.py").details["total"] == 2


def test_a_search_that_finds_too_much_stops_and_says_so(tools: Tools) -> None:
    result = tools.call("search_files", text="1,2", limit=3)
    assert len(result.details["matches"]) == 3
    assert result.text.startswith("at least 3 lines with '1,2'")
    assert "(truncated: ask for a higher limit" in result.text


def test_counting_counts_all_lines(tools: Tools) -> None:
    result = tools.call("search_files", text="", count_only=True)
    assert result.details["counts"] == {"README.md": 3, "src/deep/big.csv": 1001, "src/main.py": 5}
    assert result.text.splitlines()[1].split() == ["1,001", "src/deep/big.csv"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"text": ""}, "is empty; say what to find"),
        ({"text": "(", "regex": True}, "is no regular expression"),
    ],
)
def test_what_cannot_be_searched_for_is_refused_with_help(
    tools: Tools, arguments: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ToolArgumentsError, match=re.escape(complaint)):
        tools.call("search_files", **arguments)


@pytest.mark.parametrize("text", [r"((a|aa)+)+$", r"(a|a)*$", r"(?:(?:aa?)+)+$", r"(\w+\w+\w+)+[0-9]"])
def test_an_expression_without_end_gives_up_and_lets_everything_else_go_on(
    tools: Tools, root: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(file_search, "MATCHING_SECONDS", 0.1)
    (root / "bad.txt").write_text("a" * 1_900 + "!\n")
    ticks: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.wait(0.01):
            ticks.append(time.monotonic())

    ticking = threading.Thread(target=tick)
    ticking.start()
    try:
        with pytest.raises(ToolArgumentsError, match=r"took more than 0\.1 s"):
            tools.call("search_files", text=text, regex=True)
    finally:
        stop.set()
        ticking.join()
    assert len(ticks) > 1  # the engine did not hold the interpreter


@pytest.mark.parametrize(
    "text", [r"(foo)+", r"def (\w+)\(", r"\(a+\)+", "a(b+)c", "(a+)+$", "(a|aa)*b", r"^\s*(\w+\s*)+:"]
)
def test_harmless_expressions_are_let_through(tools: Tools, text: str) -> None:
    assert tools.call("search_files", text=text, regex=True).details["files_searched"] == 3


def test_a_file_too_large_to_search_is_named(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_search, "LARGEST_FILE", 1000)
    assert "not searched: src/deep/big.csv (4.0 kB is too large)" in tools.call("search_files", text="x").text


# --- staying inside ----------------------------------------------------------------------------------------


@pytest.fixture
def linked(root: Path) -> Iterator[Path]:
    """The project with links that lead out, round in circles, and to a file inside."""
    (root / "out").symlink_to(root.parent)
    (root / "out.txt").symlink_to(root.parent / "secret.txt")
    (root / "loop").symlink_to(root / "loop")
    (root / "round").symlink_to(root)
    (root / "same.md").symlink_to(root / "README.md")
    return root


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "/etc/passwd",
        "src/../../secret.txt",
        "out/secret.txt",
        "out.txt",
        "..",
        "/",
        "out",
        "src/../..",
    ],
)
@pytest.mark.parametrize("tool", ["read_file", "list_files", "search_files"])
def test_no_path_leads_outside(linked: Path, path: str, tool: str) -> None:
    arguments = {"text": "password"} if tool == "search_files" else {}
    with pytest.raises(ToolArgumentsError, match="leads outside of the folder"):
        Tools(linked).call(tool, path=path, **arguments)


def test_links_are_not_followed_by_a_walk_but_one_to_the_inside_can_be_read(linked: Path) -> None:
    tools = Tools(linked)
    result = tools.call("list_files")
    assert result.details["total_files"] == 4
    assert "5 symbolic links not followed" in result.text
    assert "Sorts mail." in tools.call("read_file", path="same.md").text
    assert "Sorts mail." in tools.call("read_file", path=str(linked / "README.md")).text
    with pytest.raises(ToolArgumentsError):
        tools.call("read_file", path="loop")


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(["..", ".", "src", "out", "round", "a", "", "~", "loop", "README.md"]), max_size=6
    )
)
def test_however_a_path_is_put_together_it_stays_inside_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str]
) -> None:
    root = _linked_once(tmp_path_factory)
    tree = FileTree(root)
    try:
        real = tree.locate("/".join(parts))
    except ToolArgumentsError:
        return
    assert real == tree.root or tree.root in real.parents


_made: list[Path] = []


def _linked_once(factory: pytest.TempPathFactory) -> Path:
    if not _made:
        root = factory.mktemp("tree") / "project"
        (root / "src").mkdir(parents=True)
        (root / "README.md").write_text("x")
        (root / "out").symlink_to(root.parent)
        (root / "round").symlink_to(root)
        (root / "loop").symlink_to(root / "loop")
        _made.append(root)
    return _made[0]


# --- big trees ---------------------------------------------------------------------------------------------


def test_a_big_tree_is_told_of_while_it_is_walked(
    root: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_tools, "PROGRESS_EVERY", 2)
    tools.call("list_files")
    assert tools.said == ["2 files so far, now at docs/logo.png", "4 files so far, now at src/deep/big.csv"]


@pytest.mark.parametrize("tool", ["list_files", "search_files"])
def test_an_abort_ends_the_walk_soon(tmp_path: Path, tool: str) -> None:
    for number in range(50):
        (tmp_path / f"{number}.txt").write_text("x\n")
    tools = Tools(tmp_path)
    seen = threading.Event()

    class Counting:
        """A signal that is set while the walk is at its third look."""

        looks = 0

        @property
        def aborted(self) -> bool:
            self.looks += 1
            if self.looks == 3:
                seen.set()
            return seen.is_set()

    signal = Counting()
    function: Any = tools[tool]
    arguments = {"text": "x"} if tool == "search_files" else {}
    function(ToolContext(signal=signal), **arguments)  # type: ignore[arg-type]
    assert signal.looks < 8


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*", "a/b", True),
        ("*.py", "a/b.py", True),
        ("./*.py", "a/b.py", True),
        ("a/*", "a/b", True),
        ("a/*", "a/b/c", False),
        ("a/**", "a/b/c", True),
        ("**/c", "a/b/c", True),
        ("a/**/c", "a/c", True),
        ("[ab].txt", "b.txt", True),
        ("[!ab].txt", "b.txt", False),
        ("{a,b}.txt", "b.txt", True),
        ("x{a.txt", "x{a.txt", True),
        ("a+b(1).txt", "a+b(1).txt", True),
        ("[", "[", True),
    ],
)
def test_globs(pattern: str, path: str, matches: bool) -> None:
    assert bool(glob_pattern(pattern).fullmatch(path)) is matches
