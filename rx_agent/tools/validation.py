"""Arguments against a JSON schema: first made to fit where a model's meaning is plain, then checked."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from jsonschema.exceptions import ValidationError

from rx_agent.tools.problems import Misfit, Path, Problem, missing, shown, unknown
from rx_agent.tools.schema import CheckedSchema, Schema

_UNCHANGED: Final = object()


# --- making fit --------------------------------------------------------------------------------------------


def coerced(value: Any, schema: CheckedSchema, part: Any = None) -> Any:
    """``value`` with what has the wrong type converted, where there is one plain way; else left as it is.

    "5" for an integer, "true" for a boolean, a number for a string, JSON text for an object or array, a
    single value for an array, null for something optional (left out); nested. ``part`` is the schema of
    ``value`` (by default the whole one). Nothing is changed in place.
    """
    rule = cast(Schema, part) if isinstance(part, dict) else schema.root if part is None else {}
    if "$ref" in rule:
        value = coerced(value, schema, schema.followed(rule))
    for inner in rule.get("allOf") or ():
        value = coerced(value, schema, inner)
    branches: list[Any] = [*(rule.get("anyOf") or ()), *(rule.get("oneOf") or ())]
    if branches:
        value = _by_branch(value, schema, branches)
    value = _retyped(value, schema, rule)
    value = _chosen(value, rule)
    if isinstance(value, dict):
        return _object(cast("dict[str, Any]", value), schema, rule)
    if isinstance(value, list):
        return _array(cast("list[Any]", value), schema, rule)
    return value


def _by_branch(value: Any, schema: CheckedSchema, branches: list[Any]) -> Any:
    for branch in branches:
        if schema.is_valid(value, branch):
            return coerced(value, schema, branch)
    candidates = [coerced(value, schema, branch) for branch in branches]
    for branch, candidate in zip(branches, candidates, strict=True):
        if schema.is_valid(candidate, branch):
            return candidate
    # None fits: where one branch is what was meant (the others say null), its problems are worth reporting.
    real = [index for index, branch in enumerate(branches) if schema.followed(branch).get("type") != "null"]
    return candidates[real[0]] if len(real) == 1 else value


def _retyped(value: Any, schema: CheckedSchema, rule: Schema) -> Any:
    declared = rule.get("type")
    types = cast("list[str]", declared if isinstance(declared, list) else [declared] if declared else [])
    if isinstance(value, float) and value.is_integer() and "integer" in types and "number" not in types:
        return int(value)  # JSON does not tell 5.0 from 5, Python's range() does
    if not types or any(_IS[kind](value) for kind in types):
        return value
    for kind in types:
        changed = _CONVERT[kind](value)
        if changed is not _UNCHANGED:
            return changed
    if "array" in types and value is not None:
        items = rule.get("items", True)
        single = coerced(value, schema, items)
        if schema.is_valid(single, items):
            return [single]
    return value


def _chosen(value: Any, rule: Schema) -> Any:
    """The member of an enum that has the same text."""
    members: list[Any] = rule.get("enum") or ([rule["const"]] if "const" in rule else [])
    if any(member == value for member in members) or not isinstance(value, str | int | float):
        return value
    same = [member for member in members if _as_text(member) == _as_text(value)]
    return same[0] if len(same) == 1 else value


def _object(value: dict[str, Any], schema: CheckedSchema, rule: Schema) -> dict[str, Any]:
    properties: dict[str, Any] = rule.get("properties") or {}
    patterns: dict[str, Any] = rule.get("patternProperties") or {}
    required: list[str] = rule.get("required") or []
    result: dict[str, Any] = {}
    for key, item in value.items():
        if key in properties:
            inner = properties[key]
            if item is None and key not in required and not schema.is_valid(None, inner):
                continue
        else:
            matching = [each for pattern, each in patterns.items() if re.search(pattern, key)]
            inner = matching[0] if matching else rule.get("additionalProperties", True)
        result[key] = coerced(item, schema, inner)
    return result


def _array(value: list[Any], schema: CheckedSchema, rule: Schema) -> list[Any]:
    first: list[Any] = rule.get("prefixItems") or []
    rest = rule.get("items", True)
    return [coerced(item, schema, first[i] if i < len(first) else rest) for i, item in enumerate(value)]


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_IS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _to_number(value: Any) -> Any:
    if not isinstance(value, str) or len(value) > 1000:  # Python refuses ints of more than 4300 digits
        return _UNCHANGED
    text = value.strip()
    if re.fullmatch(r"[+-]?[0-9]+", text):
        return int(text)
    if re.fullmatch(r"[+-]?([0-9]+\.[0-9]*|\.?[0-9]+)([eE][+-]?[0-9]+)?", text):
        number = float(text)
        return number if math.isfinite(number) else _UNCHANGED
    return _UNCHANGED


def _to_integer(value: Any) -> Any:
    number = _to_number(value)
    if isinstance(number, float):
        return int(number) if number.is_integer() else _UNCHANGED
    return number


def _to_boolean(value: Any) -> Any:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower(), _UNCHANGED)
    return bool(value) if value in (0, 1) else _UNCHANGED


def _to_string(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, bool | int | float) else _UNCHANGED


def _to_null(value: Any) -> Any:
    return None if value == "null" else _UNCHANGED


def _from_json(kind: type) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        if not isinstance(value, str):
            return _UNCHANGED
        try:
            parsed = json.loads(value)
        except ValueError:  # just text: the check that follows says what was wanted
            return _UNCHANGED
        return parsed if isinstance(parsed, kind) else _UNCHANGED

    return convert


_CONVERT: dict[str, Callable[[Any], Any]] = {
    "string": _to_string,
    "integer": _to_integer,
    "number": _to_number,
    "boolean": _to_boolean,
    "null": _to_null,
    "array": _from_json(list),
    "object": _from_json(dict),
}


# --- checking ----------------------------------------------------------------------------------------------


def schema_check(schema: CheckedSchema) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A tool's check by JSON schema alone."""

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        fitting: dict[str, Any] = coerced(arguments, schema)
        errors: list[ValidationError] = list(schema.validator.iter_errors(fitting))
        if errors:
            raise Misfit(problem for error in errors for problem in _problems(error, schema))
        return fitting

    return check


def _problems(error: ValidationError, schema: CheckedSchema) -> Iterator[Problem]:
    path: Path = tuple(error.absolute_path)
    rule: Any = cast(Any, error).validator_value
    value: Any = error.instance
    match cast(Any, error).validator:
        case "required":
            yield from (missing((*path, name)) for name in rule if name not in value)
        case "additionalProperties" if rule is False:
            names: dict[str, Any] = cast(Any, error.schema).get("properties", {})
            patterns: list[str] = list(cast(Any, error.schema).get("patternProperties", {}))
            for key in value:
                if key not in names and not any(re.search(pattern, key) for pattern in patterns):
                    yield unknown((*path, key), names or schema.names_at(path))
        case "type":
            kinds = " or ".join([rule] if isinstance(rule, str) else rule)
            yield Problem(path, f"should be of type {kinds}, got {shown(value)}")
        case "enum":
            choices = ", ".join(shown(member) for member in rule)
            yield Problem(path, f"should be one of {choices}, got {shown(value)}")
        case "const":
            yield Problem(path, f"should be {shown(rule)}, got {shown(value)}")
        case "anyOf" | "oneOf" if error.context:
            yield from _alternatives(path, error, schema)
        case validator:
            yield Problem(path, f"does not satisfy {validator}: {shown(rule)}, got {shown(value)}")


def _alternatives(path: Path, error: ValidationError, schema: CheckedSchema) -> Iterator[Problem]:
    """Of what stands in the way of each branch, the branches where only details are wrong; else all."""
    by_branch: dict[int, list[ValidationError]] = {}
    for inner in error.context or ():
        by_branch.setdefault(cast(int, inner.schema_path[0]), []).append(inner)
    near = [errors for errors in by_branch.values() if not any(_is_root_type(each) for each in errors)]
    if len(near) == 1:
        for inner in near[0]:
            yield from _problems(inner, schema)
        return
    texts = [
        "; ".join(
            problem.text if problem.path == path else str(problem)
            for inner in errors
            for problem in _problems(inner, schema)
        )
        for errors in by_branch.values()
    ]
    yield Problem(path, " or ".join(dict.fromkeys(texts)))


def _is_root_type(error: ValidationError) -> bool:
    return cast(Any, error).validator in ("type", "const", "enum") and not error.relative_path
