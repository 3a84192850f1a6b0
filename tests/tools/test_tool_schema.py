"""A function's signature, annotations and docstring become a schema that any provider takes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Optional

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import Doc, TypedDict

from rx_agent.errors import ToolDefinitionError
from rx_agent.tools import ToolContext, as_tool, tool


class Point(BaseModel):
    """A place on the map."""

    x: float
    y: float = Field(default=0.0, description="northwards")
    title: str = "no title"


@dataclass
class Line:
    start: Point
    end: Point


class Unit(Enum):
    METRE = "m"
    MILE = "mi"


class Options(TypedDict, total=False):
    deep: bool


def properties(function: Callable[..., Any]) -> dict[str, Any]:
    return as_tool(function).parameters["properties"]


def test_a_plain_function_says_it_all() -> None:
    @tool
    def add(a: int, b: int = 1) -> int:
        """Adds two numbers.

        Without b it counts on.

        Args:
            a: The first one.
            b: The second one.
        """
        return a + b

    assert (add.name, add.description) == ("add", "Adds two numbers.\n\nWithout b it counts on.")
    assert add.parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "The first one."},
            "b": {"type": "integer", "description": "The second one.", "default": 1},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert add(1, 2) == 3


def test_a_function_without_parameters_has_an_empty_object_schema() -> None:
    def now() -> str:
        return "now"

    assert as_tool(now).parameters == {"type": "object", "properties": {}, "additionalProperties": False}


def test_numpy_and_rest_docstrings_are_read_too() -> None:
    def numpy(x: int, y: int, unit: str) -> None:
        """Moves.

        Parameters
        ----------
        x, y : int
            Where to.
        unit : str
            In which unit.
        """

    def rest(x: int) -> None:
        """Moves.

        :param x: Where to.
        :returns: nothing
        """

    assert {name: each["description"] for name, each in properties(numpy).items()} == {
        "x": "Where to.",
        "y": "Where to.",
        "unit": "In which unit.",
    }
    assert properties(rest)["x"]["description"] == "Where to."
    assert as_tool(numpy).description == as_tool(rest).description == "Moves."


def test_an_annotation_documents_before_the_docstring() -> None:
    def move(
        a: Annotated[int, "from the annotation"],
        b: Annotated[int, Field(description="from the field", ge=1)],
        c: Annotated[int, Doc("from the doc")],
        d: int = Field(default=3, le=9),
    ) -> None:
        """Moves.

        Args:
            a: from the docstring
            b: from the docstring
            c: from the docstring
            d: from the docstring
        """

    assert properties(move) == {
        "a": {"type": "integer", "description": "from the annotation"},
        "b": {"type": "integer", "description": "from the field", "minimum": 1},
        "c": {"type": "integer", "description": "from the doc"},
        "d": {"type": "integer", "description": "from the docstring", "maximum": 9, "default": 3},
    }
    assert as_tool(move).validated({"a": 1, "b": 2, "c": 3}) == {"a": 1, "b": 2, "c": 3, "d": 3}


def test_types_of_all_kinds_nest() -> None:
    def draw(
        lines: list[Line],
        mode: Literal["thin", "thick"],
        unit: Unit = Unit.METRE,
        options: Options | None = None,
        labels: Optional[dict[str, int]] = None,  # noqa: UP045
    ) -> None: ...

    schema = as_tool(draw).parameters
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["$defs"]) == {"Line", "Point", "Unit", "Options"}
    assert schema["$defs"]["Point"]["description"] == "A place on the map."
    assert schema["properties"]["mode"] == {"type": "string", "enum": ["thin", "thick"]}
    assert schema["properties"]["unit"]["default"] == "m"
    assert schema["required"] == ["lines", "mode"]

    values = as_tool(draw).validated(
        {"lines": [{"start": {"x": 1}, "end": {"x": 2, "y": 3}}], "mode": "thin", "unit": "mi"}
    )
    assert values == {
        "lines": [Line(Point(x=1), Point(x=2, y=3))],
        "mode": "thin",
        "unit": Unit.MILE,
        "options": None,
        "labels": None,
    }


def test_made_up_titles_are_left_out_but_properties_of_that_name_stay() -> None:
    def note(title: str, point: Point, meta: dict[str, str] = {"title": "x"}) -> None: ...  # noqa: B006

    schema = as_tool(note).parameters
    assert schema["properties"]["title"] == {"type": "string"}
    assert schema["properties"]["meta"]["default"] == {"title": "x"}
    assert schema["$defs"]["Point"]["properties"]["title"] == {"type": "string", "default": "no title"}
    assert "title" not in schema
    assert "title" not in schema["$defs"]["Point"]


def test_names_that_pydantic_uses_itself_are_fine() -> None:
    def odd(  # noqa: PLR0917
        self: int, schema: str, json: str, copy: bool, model_config: int, _private: int, model_x: int
    ) -> int:
        return self + model_config + _private

    args = as_tool(odd).validated(
        {"self": 1, "schema": "s", "json": "j", "copy": True, "model_config": 2, "_private": 3, "model_x": 4}
    )
    assert odd(**args) == 6


def test_a_field_alias_is_the_name_that_the_model_sees() -> None:
    def mail(from_: Annotated[str, Field(alias="from")], to: str) -> str:
        return f"{from_} {to}"

    assert list(properties(mail)) == ["from", "to"]
    assert as_tool(mail).validated({"from": "a", "to": "b"}) == {"from_": "a", "to": "b"}


def test_the_context_is_not_part_of_the_schema() -> None:
    def plain(a: int, context: ToolContext) -> None: ...
    def generic(context: ToolContext[dict[str, str]], a: int) -> None: ...
    def optional(a: int, context: ToolContext[int] | None = None) -> None: ...
    def old(a: int, context: Optional[ToolContext] = None) -> None: ...  # noqa: UP045
    def noted(a: int, context: Annotated[ToolContext, "the call"]) -> None: ...

    for function in (plain, generic, optional, old, noted):
        assert list(properties(function)) == ["a"]


def test_a_tool_may_speak_of_what_is_only_made_afterwards():
    @tool
    def shout(text: str) -> str:
        """Shouts."""
        return later.upper() + text

    later = "hey "
    assert shout(text="you") == "HEY you"
    assert shout.parameters["required"] == ["text"]


def test_types_defined_inside_a_function_are_found() -> None:
    class Local(BaseModel):
        n: int

    @tool
    def use(local: Local, more: list[Local] | None = None) -> int:
        return local.n

    assert use.validated({"local": {"n": 3}}) == {"local": Local(n=3), "more": None}


def test_what_a_partial_fixes_is_not_the_models_to_choose() -> None:
    def search(index: str, query: str, limit: int, *, fuzzy: bool = False) -> str:
        """Searches."""
        return f"{index} {query} {limit} {fuzzy}"

    found = as_tool(functools.partial(search, "docs", limit=3))
    assert (found.name, found.description) == ("search", "Searches.")
    assert list(found.parameters["properties"]) == ["query", "fuzzy"]


def test_what_cannot_be_a_tool_is_refused_with_the_way_out() -> None:
    def bare(a: int, limit=10) -> None: ...
    def stars(*paths: str) -> None: ...
    def double(**options: str) -> None: ...
    def opaque(a: int, when: Callable[[], int]) -> None: ...
    def unknown(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    for function, words in {
        bare: ["bare", "'limit'", "`limit: int`"],
        stars: ["stars(*paths)", "`items: list[str]`"],
        double: ["double(**options)"],
        opaque: ["opaque", "'when'"],
        unknown: ["unknown", "'a'", "Nowhere"],
    }.items():
        with pytest.raises(ToolDefinitionError) as refused:
            as_tool(function)
        for word in words:
            assert word in str(refused.value)


def test_names_that_no_provider_takes_are_refused() -> None:
    def längd() -> None: ...  # noqa: PLC2401

    for make in (lambda: as_tool(längd), lambda: tool(name="a b")(längd), lambda: as_tool(lambda: None)):
        with pytest.raises(ToolDefinitionError, match="name="):
            make()
    assert tool(name="size")(längd).name == "size"


def take(
    text: str,
    number: float,
    points: list[Point],
    unit: Unit = Unit.METRE,
    table: dict[str, int] | None = None,
) -> None: ...


TAKE = as_tool(take)


@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "text": st.text(),
            "number": st.floats(-1e9, 1e9),
            "points": st.lists(st.fixed_dictionaries({"x": st.floats(-9, 9)}, optional={"title": st.text()})),
        },
        optional={"unit": st.sampled_from(["m", "mi"]), "table": st.dictionaries(st.text(), st.integers())},
    )
)
def test_what_fits_the_schema_validates_and_keeps_its_meaning(arguments: dict[str, Any]) -> None:
    jsonschema.validate(arguments, TAKE.parameters)
    values = TAKE.validated(arguments)
    assert values["text"] == arguments["text"]
    assert values["number"] == arguments["number"]
    assert [point.x for point in values["points"]] == [point["x"] for point in arguments["points"]]
    assert values["unit"].value == arguments.get("unit", "m")
    assert values["table"] == arguments.get("table")
