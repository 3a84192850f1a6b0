"""What came of a file against its ``expect``: line by line, an item a line, so that a difference can be read."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from tests.scenario.player import Outcome
from tests.scenario.vocabulary import Json
from tests.scenario.worlds import Mode

SECTIONS = ("events", "requests", "tool_calls", "errors", "messages", "state")
ANY_TEXT = "(any text)"
FIRST = "  <== the first difference"


class ScenarioFailed(AssertionError):
    """A file's expectation was not met; the text shows where."""


def check(scenario: Json, outcome: Outcome, mode: Mode) -> None:
    """Raises :class:`ScenarioFailed` unless ``outcome`` is what ``scenario`` expects.

    On asyncio ``t`` is left out. Of ``state`` the fields that the file names count.
    """
    reports = [f"problem: {problem}" for problem in outcome.problems]
    expect: Json = scenario.get("expect", {})
    if not expect:
        reports.append("the file expects nothing: 'expect' is missing or empty")
    for name, expected in expect.items():
        if name not in SECTIONS:
            reports.append(f"expect.{name} is unknown; known are {', '.join(SECTIONS)}")
            continue
        free = bool(scenario.get("compare", {}).get("free_error_text"))
        wanted = section_lines(name, expected, mode, free_error_text=free)
        came = section_lines(name, _actual(name, expected, outcome), mode, free_error_text=free)
        if wanted != came:
            reports.append(difference(name, wanted, came))
    if reports:
        title = f"{scenario.get('name', 'a scenario')} ({mode}): {scenario.get('title', '')}"
        raise ScenarioFailed("\n\n".join([title, *reports]))


def _actual(name: str, expected: Any, outcome: Outcome) -> Any:
    actual = getattr(outcome, name)
    return {key: actual[key] for key in expected if key in actual} if name == "state" else actual


# --- canonical lines -----------------------------------------------------------------------------------------


def section_lines(name: str, section: Any, mode: Mode, *, free_error_text: bool) -> list[str]:
    """A part of ``expect`` as lines that are equal where the parts count as equal."""
    if name == "state":
        return [
            f"{key}: {_text(_freed(key, value) if free_error_text else value)}"
            for key, value in sorted(section.items())
        ]
    lines: list[str] = []
    for item in section:
        shown: Json = dict(item)
        if mode is Mode.ASYNCIO:
            shown.pop("t", None)
        messages: list[Json] = shown.pop("messages") if name == "requests" else []
        lines.append(_text(_without_error_text(shown) if free_error_text else shown))
        for message in messages:
            lines.append(f"  {_text(_without_error_text(message) if free_error_text else message)}")
    return lines


def _text(value: Any) -> str:
    return json.dumps(_canonical(value), ensure_ascii=False)


def _canonical(value: Any) -> Any:
    """Keys in one order, JSON's one kind of number, and no empty ``details``, which say as little as none."""
    match value:
        case bool():
            return value
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {
                key: _canonical(item)
                for key, item in sorted(value.items(), key=_place)
                if (key, item) != ("details", {})
            }
        case list() | tuple():
            return [_canonical(item) for item in value]
    return value


def _place(item: tuple[str, Any]) -> tuple[int, str]:
    """Where a key stands in a line: what tells most comes first."""
    first = ("t", "type", "role", "tool_call_id", "tool_name")
    return (first.index(item[0]) if item[0] in first else len(first)), item[0]


def _without_error_text(item: Json) -> Json:
    """``item`` with the wording of errors taken out, their presence kept."""
    shown = {key: _freed(key, value) for key, value in item.items()}
    if item.get("is_error"):
        if "content" in item:
            shown["content"] = _freed_blocks(item["content"])
        if "result" in item:
            shown["result"] = {**item["result"], "content": _freed_blocks(item["result"].get("content", []))}
    return shown


def _freed(key: str, value: Any) -> Any:
    return ANY_TEXT if key == "error_message" and value else value


def _freed_blocks(blocks: list[Json]) -> list[Json]:
    return [{**block, "text": ANY_TEXT} if block.get("text") else block for block in blocks]


# --- differences ---------------------------------------------------------------------------------------------


def difference(name: str, expected: list[str], actual: list[str], *, context: int = 4) -> str:
    """Both, aligned: ``-`` is expected and did not come, ``+`` came and is not expected."""
    first = next((place for place, pair in enumerate(zip_longest(expected, actual)) if pair[0] != pair[1]), 0)
    head = (
        f"{name}: expected {len(expected)} lines, got {len(actual)}; "
        f"they differ from line {first + 1} on (- expected, + actual)"
    )
    return "\n".join([head, *_marked(expected, actual, context)])


def _marked(expected: list[str], actual: list[str], context: int) -> Iterator[str]:
    marked = False
    matcher = difflib.SequenceMatcher(None, expected, actual, autojunk=False)
    for group in matcher.get_grouped_opcodes(context):
        if marked:
            yield "  ..."
        for kind, from_, to, actual_from, actual_to in group:
            if kind == "equal":
                yield from (f"    {place + 1:4} {expected[place]}" for place in range(from_, to))
                continue
            changed = [f"  - {place + 1:4} {expected[place]}" for place in range(from_, to)]
            changed += [f"  + {place + 1:4} {actual[place]}" for place in range(actual_from, actual_to)]
            if not marked:
                changed[0] += FIRST
                marked = True
            yield from changed
