"""JSON schemas as data: walking them, tidying them, following their references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

import jsonschema
import referencing
import referencing.exceptions
import referencing.jsonschema
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for

from rx_agent.errors import ToolDefinitionError
from rx_agent.tools.problems import Path

Schema: TypeAlias = dict[str, Any]
Resolver: TypeAlias = Any  # referencing's Resolver, whose type parameter is of no use here

_ONE = (
    "items",
    "additionalProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "propertyNames",
    "contains",
    "not",
    "if",
    "then",
    "else",
)
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


def subschemas(schema: Schema) -> Iterator[Schema]:
    """The schemas directly inside ``schema`` (never a default, an example or a property of such a name)."""
    children: list[Any] = [schema.get(key) for key in _ONE]
    for key in _MANY:
        children.extend(cast("list[Any]", schema.get(key) or ()))
    for key in _NAMED:
        children.extend(cast("dict[str, Any]", schema.get(key) or {}).values())
    yield from (cast(Schema, child) for child in children if isinstance(child, dict))


def without_titles(schema: Schema) -> Schema:
    """``schema`` in place without the titles that pydantic makes of names."""
    schema.pop("title", None)
    for child in subschemas(schema):
        without_titles(child)
    return schema


class CheckedSchema:
    """A schema of type object, known to be sound, with a validator and its references resolved locally.

    Raises ``ToolDefinitionError`` naming the tool ``name`` where ``schema`` is broken.
    """

    def __init__(self, name: str, schema: Mapping[str, Any]) -> None:
        self.root: Schema = dict(schema)
        kind = self.root.setdefault("type", "object")
        if kind != "object":
            raise ToolDefinitionError(
                f"Tool {name!r}: parameters must be a JSON schema of type object, not {kind!r}. "
                "Put the value into a property."
            )
        self.root.setdefault("properties", {})
        dialect: Any = validator_for(self.root, default=jsonschema.Draft202012Validator)
        try:
            dialect.check_schema(self.root, format_checker=dialect.FORMAT_CHECKER)
        except SchemaError as error:
            where = error.json_path.removeprefix("$").removeprefix(".") or "the root"
            raise ToolDefinitionError(
                f"Tool {name!r}: parameters is not a valid JSON schema, at {where}: {error.message}"
            ) from error
        registry: Any = cast(Any, referencing.Registry)()
        specification = referencing.jsonschema.specification_with(
            str(self.root.get("$schema", "")), default=referencing.jsonschema.DRAFT202012
        )
        self.resolver: Resolver = registry.resolver_with_root(specification.create_resource(self.root))
        # An own registry, for jsonschema's default one would fetch what a reference names from the network.
        self.validator: Any = dialect(self.root, registry=registry)
        self._check_references(name, self.root)

    def _check_references(self, name: str, schema: Schema) -> None:
        if "$ref" in schema:
            reference = schema["$ref"]
            try:
                self._check_cycle(name, reference)
            except referencing.exceptions.Unresolvable as error:
                raise ToolDefinitionError(
                    f"Tool {name!r}: parameters refers to {reference!r}, which is not in the schema. "
                    "Put it below $defs."
                ) from error
        for child in subschemas(schema):
            self._check_references(name, child)

    def _check_cycle(self, name: str, reference: str) -> None:
        seen: set[str] = set()
        target: Any = {"$ref": reference}
        while isinstance(target, dict) and "$ref" in target:
            reference = cast(str, target["$ref"])
            if reference in seen:
                raise ToolDefinitionError(f"Tool {name!r}: {reference!r} in parameters refers to itself.")
            seen.add(reference)
            target = self.resolver.lookup(reference).contents

    def is_valid(self, value: Any, schema: Any) -> bool:
        """Whether ``value`` fits ``schema``, a part of this one."""
        return bool(self.validator.evolve(schema=schema).is_valid(value))

    def followed(self, schema: Any) -> Schema:
        """``schema``, or what it refers to; ``{}`` for the schemas ``true`` and ``false``."""
        while isinstance(schema, dict) and "$ref" in schema:
            schema = self.resolver.lookup(cast(str, schema["$ref"])).contents
        return cast(Schema, schema) if isinstance(schema, dict) else {}

    def names_at(self, path: Path) -> list[str]:
        """The properties that an object at ``path`` may have, as far as the schema tells."""
        places = [self.root]
        for step in path:
            places = [inner for place in places for inner in self._inside(place, step)]
        names = [name for place in places for variant in self._variants(place) for name in _names(variant)]
        return list(dict.fromkeys(names))

    def _inside(self, schema: Schema, step: str | int) -> Iterator[Schema]:
        for variant in self._variants(schema):
            child = (
                variant.get("items")
                if isinstance(step, int)
                else cast("dict[str, Any]", variant.get("properties", {})).get(step)
                or variant.get("additionalProperties")
            )
            if isinstance(child, dict):
                yield cast(Schema, child)

    def _variants(self, schema: Schema, depth: int = 8) -> Iterator[Schema]:
        schema = self.followed(schema)
        yield schema
        for key in ("anyOf", "oneOf", "allOf"):
            for branch in cast("list[Any]", schema.get(key) or ()):
                if depth and isinstance(branch, dict):
                    yield from self._variants(cast(Schema, branch), depth - 1)


def _names(schema: Schema) -> list[str]:
    return list(cast("dict[str, Any]", schema.get("properties", {})))
