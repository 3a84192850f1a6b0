"""Tool schemas that a server can hold its model to: https://platform.openai.com/docs/guides/structured-outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

_KEYWORDS = frozenset(
    {"$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "exclusiveMaximum"}
    | {"exclusiveMinimum", "format", "items", "maxItems", "maximum", "minItems", "minimum", "multipleOf"}
    | {"pattern", "properties", "required", "title", "type"}
)
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_MOST_LEVELS = 5


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """``schema`` with every object closed, or None where strict mode cannot express it.

    Strict mode wants all properties required, so a tool with a default anywhere, a free dictionary or keywords
    beyond the documented ones is offered without it; nothing is bent.

    >>> strict_schema({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]})
    {'type': 'object', 'properties': {'q': {'type': 'string'}}, 'required': ['q'], 'additionalProperties': False}
    >>> strict_schema({"type": "object", "properties": {"q": {"type": "string", "default": "x"}}}) is None
    True
    """
    try:
        closed = _closed(schema, 0)
    except _NotStrictError:
        return None
    return closed if closed.get("type") == "object" and "anyOf" not in closed else None


class _NotStrictError(Exception):
    pass


def _closed(schema: Any, level: int) -> dict[str, Any]:
    if not isinstance(schema, Mapping) or level > 2 * _MOST_LEVELS:
        raise _NotStrictError
    known = cast("Mapping[str, Any]", schema)
    if not known.keys() <= _KEYWORDS or known.get("format", "date") not in _FORMATS:
        raise _NotStrictError
    if not known.keys() & {"type", "anyOf", "$ref", "enum", "const"}:
        raise _NotStrictError
    closed = dict(known)
    for name in ("properties", "$defs"):
        if name in known:
            inner = cast("Mapping[str, Any]", known[name])
            closed[name] = {key: _closed(value, level + 1) for key, value in inner.items()}
    if "items" in known:
        closed["items"] = _closed(known["items"], level + 1)
    if "anyOf" in known:
        closed["anyOf"] = [_closed(each, level + 1) for each in cast("Sequence[Any]", known["anyOf"])]
    kind = known.get("type")
    if kind == "array" and "items" not in known:
        raise _NotStrictError
    if kind == "object" or "properties" in known:
        properties = cast("Mapping[str, Any]", known.get("properties", {}))
        if known.get("additionalProperties", False) is not False:
            raise _NotStrictError
        if set(cast("Sequence[str]", known.get("required", ()))) != set(properties):
            raise _NotStrictError
        closed |= {
            "properties": closed.get("properties", {}),
            "required": list(properties),
            "additionalProperties": False,
        }
    return closed
