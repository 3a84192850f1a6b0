"""What a model sends is made to fit where its meaning is plain; else it is told what to do better."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, BeforeValidator

from rx_agent.errors import ToolArgumentsError, ToolDefinitionError
from rx_agent.tools import Tool, as_tool, tool, tool_from_schema


def from_schema(properties: dict[str, Any], **more: Any) -> Tool:
    return tool_from_schema("take", "Takes.", {"properties": properties, **more}, lambda args: args)


def refusal(ready: Tool, arguments: dict[str, Any]) -> str:
    with pytest.raises(ToolArgumentsError) as refused:
        ready.validated(arguments)
    return str(refused.value)


class Edit(BaseModel):
    old: str
    new: str


@tool
def edit(path: str, edits: list[Edit], limit: int = 5, mode: Literal["all", "first"] = "all") -> str:
    """Edits a file."""
    return f"{path} {edits} {limit} {mode}"


@pytest.mark.parametrize(
    ("sent", "taken"),
    [
        ({"edits": '[{"old": "a", "new": "b"}]'}, {}),
        ({"edits": {"old": "a", "new": "b"}}, {}),
        ({"edits": ['{"old": "a", "new": "b"}']}, {}),
        ({"limit": "7"}, {"limit": 7}),
        ({"limit": None}, {"limit": 5}),
        ({"limit": 7.0}, {"limit": 7}),
        ({"path": 5}, {"path": "5"}),
    ],
)
def test_usual_slips_are_mended_for_functions(sent: dict[str, Any], taken: dict[str, Any]) -> None:
    whole = {"path": "p", "edits": [{"old": "a", "new": "b"}], "limit": 5, "mode": "all"}
    assert edit.validated({**whole, **sent}) == {**whole, "edits": [Edit(old="a", new="b")], **taken}


@pytest.mark.parametrize(
    ("schema", "sent", "taken"),
    [
        ({"type": "integer"}, "5", 5),
        ({"type": "integer"}, " -5 ", -5),
        ({"type": "integer"}, 5.0, 5),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "boolean"}, "True", True),
        ({"type": "boolean"}, 0, False),
        ({"type": "string"}, 5, "5"),
        ({"type": "string"}, True, "true"),
        ({"type": ["string", "null"]}, 5, "5"),
        ({"type": ["integer", "null"]}, "null", None),
        ({"type": "array", "items": {"type": "integer"}}, "[1, 2]", [1, 2]),
        ({"type": "array", "items": {"type": "integer"}}, "7", [7]),
        ({"type": "array", "items": {"type": "string"}}, "a", ["a"]),
        ({"type": "array", "items": {"type": "string"}}, [1, "b"], ["1", "b"]),
        ({"type": "object", "properties": {"n": {"type": "integer"}}}, '{"n": "3"}', {"n": 3}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "3", 3),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "3", "3"),
        ({"oneOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}, "[3]", [3]),
        ({"enum": [1, 2]}, "2", 2),
        ({"$ref": "#/$defs/n"}, "5", 5),
        ({"allOf": [{"$ref": "#/$defs/n"}]}, "5", 5),
    ],
)
def test_usual_slips_are_mended_for_schemas(schema: dict[str, Any], sent: Any, taken: Any) -> None:
    ready = from_schema({"value": schema}, **{"$defs": {"n": {"type": "integer"}}}, required=["value"])
    got = ready.validated({"value": sent})["value"]
    assert got == taken
    assert type(got) is type(taken)


def test_null_for_something_optional_is_left_out_at_any_depth() -> None:
    inner = {"type": "object", "properties": {"n": {"type": "integer"}, "free": {"type": ["string", "null"]}}}
    ready = from_schema({"text": {"type": "string"}, "inner": inner})
    assert ready.validated({"text": None, "inner": {"n": None, "free": None}}) == {"inner": {"free": None}}


def test_recursive_schemas_are_followed() -> None:
    node = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}},
        "additionalProperties": False,
    }
    ready = from_schema({"head": {"$ref": "#/$defs/node"}}, **{"$defs": {"node": node}})
    sent = {"head": {"n": "1", "next": {"n": "2", "next": {"n": "3"}}}}
    assert ready.validated(sent) == {"head": {"n": 1, "next": {"n": 2, "next": {"n": 3}}}}
    assert "`head.next.nn`: is unknown; did you mean `n`?" in refusal(ready, {"head": {"next": {"nn": 1}}})


def test_the_error_names_each_field_what_was_wrong_and_what_came() -> None:
    text = refusal(edit, {"Path": "x", "edits": [{"old": 1, "new": []}], "limit": "many", "mode": "none"})
    assert text.splitlines() == [
        'Invalid arguments for tool "edit":',
        "- `path`: is required but missing",
        "- `Path`: is unknown; did you mean `path`? Known are: path, edits, limit, mode",
        "- `edits[0].new`: should be a valid string, got []",
        '- `limit`: should be a valid integer, unable to parse string as an integer, got "many"',
        "- `mode`: should be 'all' or 'first', got \"none\"",
        'Received arguments: {"Path": "x", "edits": [{"old": 1, "new": []}], "limit": "many", "mode": "none"}',
        "Call the tool again with corrected arguments.",
    ]


def test_the_error_of_a_schema_tool_reads_the_same() -> None:
    ready = from_schema(
        {
            "path": {"type": "string"},
            "edits": {
                "type": "array",
                "items": {"type": "object", "properties": {"old": {"type": "string"}}, "required": ["old"]},
            },
            "limit": {"type": "integer", "maximum": 9},
            "mode": {"enum": ["all", "first"]},
            "either": {"anyOf": [{"type": "integer"}, {"type": "object"}]},
        },
        required=["path"],
        additionalProperties=False,
    )
    sent = {"pathh": "x", "edits": [{"old": []}, {}], "limit": 10, "mode": "none", "either": "x"}
    assert sorted(refusal(ready, sent).splitlines()[1:-2]) == [
        "- `edits[0].old`: should be of type string, got []",
        "- `edits[1].old`: is required but missing",
        '- `either`: should be of type integer, got "x" or should be of type object, got "x"',
        "- `limit`: does not satisfy maximum: 9, got 10",
        '- `mode`: should be one of "all", "first", got "none"',
        "- `path`: is required but missing",
        "- `pathh`: is unknown; did you mean `path`? Known are: path, edits, limit, mode, either",
    ]


def test_of_alternatives_the_one_that_was_meant_is_explained() -> None:
    thing = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    ready = from_schema({"thing": {"anyOf": [thing, {"type": "null"}]}})
    assert "- `thing.n`: should be of type integer" in refusal(ready, {"thing": {"n": "x"}})
    assert "- `thing.n`: is required but missing" in refusal(ready, {"thing": {}})


def test_members_of_a_union_are_listed_for_their_place() -> None:
    def take(value: int | list[int]) -> None: ...

    text = refusal(as_tool(take), {"value": {"a": 1}})
    assert text.count("`value`") == 1
    assert "valid integer" in text
    assert "valid list" in text


def test_long_arguments_are_cut() -> None:
    text = refusal(edit, {"path": [], "edits": ["x" * 50_000], "limit": 1})
    assert len(text) < 4000
    assert "more characters)" in text


def test_a_hundred_problems_are_not_all_told() -> None:
    text = refusal(edit, {"path": "x", "edits": [], **{f"extra{n}": n for n in range(100)}})
    assert "- and 80 more" in text


def test_a_validator_of_ones_own_comes_before_any_mending() -> None:
    def take(
        tags: Annotated[list[str], BeforeValidator(lambda tags: tags.split(","))],
        even: Annotated[int, AfterValidator(lambda n: n if n % 2 == 0 else _odd(n))] = 2,
    ) -> None: ...

    ready = as_tool(take)
    assert ready.validated({"tags": "a,b"}) == {"tags": ["a", "b"], "even": 2}
    assert "- `even`: 3 is odd, got 3" in refusal(ready, {"tags": "a", "even": 3})
    # One that raises something else is told too, with its cause.
    with pytest.raises(ToolArgumentsError, match="AttributeError") as refused:
        ready.validated({"tags": 5})
    assert isinstance(refused.value.__cause__, AttributeError)


def _odd(n: int) -> int:
    raise ValueError(f"{n} is odd")


def test_prepare_arguments_mends_a_copy_before_validation() -> None:
    def rename(arguments: dict[str, Any]) -> dict[str, Any]:
        arguments["path"] = arguments.pop("file")
        return arguments

    @tool(prepare_arguments=rename)
    def read(path: str) -> str:
        return path

    sent = {"file": "a"}
    assert read.validated(sent) == {"path": "a"}
    assert sent == {"file": "a"}
    text = refusal(read, {"other": 1})
    assert "could not be prepared: 'file'" in text
    assert '{"other": 1}' in text

    @tool(prepare_arguments=lambda _: None)  # type: ignore[arg-type, return-value]
    def broken(path: str) -> str:
        return path

    assert "must be a JSON object, not NoneType" in refusal(broken, {"path": "x"})


def test_what_the_body_gets_is_not_what_the_transcript_holds() -> None:
    sent = {"value": {"list": [1]}}
    ready = from_schema({"value": {"type": "object"}})
    ready.validated(sent)["value"]["list"].append(2)
    assert sent == {"value": {"list": [1]}}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "of type object"),
        ({"type": "object", "properties": {"a": {"type": "strin"}}}, "properties.a.type"),
        ({"properties": {"a": {"type": "string", "pattern": "("}}}, "pattern"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, r"#/\$defs/none"),
        ({"properties": {"a": {"$ref": "https://example.invalid/schema"}}}, "example.invalid"),
        ({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}}, "itself"),
        ({"required": "a"}, "required"),
    ],
)
def test_a_broken_schema_is_refused_at_definition(schema: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolDefinitionError, match=words):
        tool_from_schema("broken", "", schema, lambda args: args)


def test_an_older_dialect_is_taken_by_its_name() -> None:
    ready = tool_from_schema(
        "old",
        "",
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"pair": {"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}},
        },
        lambda args: args,
    )
    assert ready.validated({"pair": [1, "a"]}) == {"pair": [1, "a"]}
    refusal(ready, {"pair": ["a", "a"]})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KINDS = ["string", "integer", "number", "boolean", "null", "array", "object"]
SCHEMAS = st.recursive(
    st.just({}) | st.sampled_from(KINDS).map(lambda kind: {"type": kind}),
    lambda inner: (
        st.fixed_dictionaries({"type": st.just("array"), "items": inner})
        | st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
                "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
                "additionalProperties": st.booleans(),
            }
        )
        | st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)})
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(SCHEMAS, JSON)
def test_whatever_comes_is_valid_afterwards_or_refused_in_words(schema: dict[str, Any], value: Any) -> None:
    ready = from_schema({"value": schema}, required=["value"])
    sent = {"value": value}
    before = json.dumps(sent)
    try:
        taken = ready.validated(sent)
    except ToolArgumentsError as error:
        words = str(error)
        assert "`value" in words
    else:
        # What came out is valid, and stays as it is when sent again.
        assert json.dumps(ready.validated(taken)) == json.dumps(taken)
    assert json.dumps(sent) == before
