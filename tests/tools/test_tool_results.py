"""What a tool may return, and what becomes of it."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import PurePosixPath
from typing import Any

import pytest
from pydantic import BaseModel

from rx_agent.messages import ImageContent, TextContent, ToolResult
from rx_agent.tools import to_result, tool
from tests.tools.tool_plays import in_virtual_time

IMAGE = ImageContent(data=base64.b64encode(b"png").decode(), mime_type="image/png")


class Place(BaseModel):
    name: str
    height: int | None = None


@dataclass
class Pair:
    left: int
    right: Place


class Colour(Enum):
    RED = "red"


class Mode(StrEnum):
    FAST = "fast"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("hello", "hello"),
        ("", ""),
        (5, "5"),
        (2.5, "2.5"),
        (True, "true"),
        (Decimal("1.10"), "1.10"),
        (date(2026, 1, 2), "2026-01-02"),
        (PurePosixPath("a/b"), "a/b"),
        (Colour.RED, "red"),
        (Mode.FAST, "fast"),
    ],
)
def test_a_single_value_is_its_text(value: Any, text: str) -> None:
    assert to_result(value) == ToolResult(content=text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"größe": [1, None]}, '{"größe": [1, null]}'),
        ([1, "a"], '[1, "a"]'),
        (["a.txt", "b.txt"], '["a.txt", "b.txt"]'),
        ((1, 2), "[1, 2]"),
        ({7}, "[7]"),
        ([], "[]"),
        (Place(name="Zürich"), '{"name": "Zürich", "height": null}'),
        (Pair(1, Place(name="x", height=2)), '{"left": 1, "right": {"name": "x", "height": 2}}'),
        ({"places": [Place(name="x")]}, '{"places": [{"name": "x", "height": null}]}'),
        ({"lone": "\ud800"}, '{"lone": "\ud800"}'),
    ],
)
def test_structured_values_are_readable_json_with_the_value_in_details(value: Any, text: str) -> None:
    result = to_result(value)
    assert result.text == text
    assert result.details == value


def test_none_is_no_content() -> None:
    assert to_result(None) == ToolResult()


def test_blocks_and_strs_are_content() -> None:
    assert to_result(IMAGE).content == (IMAGE,)
    assert to_result(TextContent(text="t")).content == (TextContent(text="t"),)
    assert to_result(["see", IMAGE]).content == (TextContent(text="see"), IMAGE)
    assert to_result((IMAGE, TextContent(text="t"))).content == (IMAGE, TextContent(text="t"))
    with pytest.raises(TypeError, match="may hold TextContent, ImageContent and str, not int"):
        to_result([IMAGE, 5])


def test_a_tool_result_is_itself() -> None:
    result = ToolResult(content=["a", IMAGE], details={"n": 1}, terminate=True)
    assert to_result(result) is result


@pytest.mark.parametrize("value", [b"bytes", object(), {"x": object()}, Place, iter([1]), ValueError("x")])
def test_anything_else_is_an_error_that_says_what_is_possible(value: Any) -> None:
    with pytest.raises(TypeError):
        to_result(value)


def test_the_error_reaches_the_run() -> None:
    @tool
    def picture() -> bytes:
        return b"\x89PNG"

    ((at, kind, error),) = in_virtual_time(picture)
    assert (at, kind) == (0, "error")
    assert "cannot return bytes" in str(error)
    assert "ImageContent(data=" in str(error)


def test_a_dict_that_is_filled_on_does_not_change_what_was_announced() -> None:
    progress: dict[str, Any] = {"done": [1]}
    result = to_result(progress)
    progress["done"].append(2)
    assert result.details == {"done": [1]}
