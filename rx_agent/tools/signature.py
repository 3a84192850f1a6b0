"""From a function's signature to a JSON schema, a check of arguments, and a call."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, cast

import pydantic
from pydantic import BaseModel, ConfigDict, Field
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import ErrorDetails, PydanticUndefined

from rx_agent.errors import ToolDefinitionError
from rx_agent.reporting import reason_of
from rx_agent.tools.callables import docstring_of, evaluated, kind_of, signature_of
from rx_agent.tools.context import ToolContext
from rx_agent.tools.docs import docs_of
from rx_agent.tools.execution import BodyKind
from rx_agent.tools.problems import Misfit, Path, Problem, missing, shown, unknown
from rx_agent.tools.schema import CheckedSchema, Schema, without_titles
from rx_agent.tools.validation import coerced

_VARIADIC = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
_UNUSABLE = (PydanticUserError, PydanticInvalidForJsonSchema, PydanticUndefinedAnnotation, TypeError)


class _SchemaGenerator(GenerateJsonSchema):
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012  (pydantic's own way)


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """What a function is as a tool."""

    description: str
    parameters: Schema
    kind: BodyKind
    check: Callable[[dict[str, Any]], dict[str, Any]]
    order: tuple[inspect.Parameter, ...]
    contexts: frozenset[str]
    """The parameters that the context is given to."""

    def arguments(self, values: Mapping[str, Any], context: Any) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments for a call. What the function does not know, Python refuses."""
        positional: list[Any] = []
        keywords = dict(values)
        for parameter in self.order:
            if parameter.name in self.contexts:
                keywords[parameter.name] = context
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                value = keywords.pop(parameter.name, parameter.default)
                if value is not inspect.Parameter.empty:
                    positional.append(value)
        return positional, keywords


def read_function(function: Callable[..., Any], name: str, *, skip_first: bool = False) -> FunctionSpec:
    """The tool that ``function`` describes; ``skip_first`` leaves out a ``self`` that is not bound yet.

    Raises ``ToolDefinitionError`` naming the function and the parameter where it describes none.
    """
    order = tuple(signature_of(function).parameters.values())[1 if skip_first else 0 :]
    docs = docs_of(docstring_of(function))
    contexts: set[str] = set()
    fields: dict[str, tuple[Any, Any]] = {}
    names: list[str] = []
    for parameter in order:
        hint = _hint(function, name, parameter)
        if _is_context(hint):
            contexts.add(parameter.name)
        else:
            fields[f"p{len(names)}"] = _field(parameter, hint, docs.arguments.get(parameter.name))
            names.append(parameter.name)
    model, schema = _model(name, fields, names)
    return FunctionSpec(
        description=docs.description,
        parameters=schema,
        kind=kind_of(function),
        check=_model_check(model, names, CheckedSchema(name, schema)),
        order=order,
        contexts=frozenset(contexts),
    )


def _hint(function: Callable[..., Any], tool_name: str, parameter: inspect.Parameter) -> Any:
    if (stars := _VARIADIC.get(parameter.kind)) is not None:
        raise ToolDefinitionError(
            f"{tool_name}({stars}{parameter.name}): a model cannot be told what goes there. "
            "List the parameters one by one, or take one list or dict: `items: list[str]`."
        )
    if parameter.annotation is inspect.Parameter.empty:
        default = parameter.default
        kind = "str" if default is parameter.empty or default is None else type(default).__name__
        raise ToolDefinitionError(
            f"{tool_name}: parameter {parameter.name!r} has no annotation, so a model cannot be told what to "
            f"send. Write `{parameter.name}: {kind}` (or whatever type it takes)."
        )
    try:
        return evaluated(function, parameter.name, parameter.annotation)
    except (NameError, SyntaxError, AttributeError, TypeError) as error:
        raise ToolDefinitionError(
            f"{tool_name}: the annotation {parameter.annotation!r} of parameter {parameter.name!r} cannot be "
            f"evaluated ({error}). Import or define its names where the function is defined, not only under "
            "TYPE_CHECKING."
        ) from error


def _is_context(hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if origin is Annotated or origin is typing.Union or origin is types.UnionType:
        return any(_is_context(each) for each in typing.get_args(hint))
    return isinstance(kind := origin or hint, type) and issubclass(kind, ToolContext)


def _field(parameter: inspect.Parameter, hint: Any, documented: str | None) -> tuple[Any, Any]:
    """A pydantic field; its own name is made up, so that no parameter name can clash with pydantic's."""
    notes: list[Any] = list(typing.get_args(hint)[1:]) if typing.get_origin(hint) is Annotated else []
    infos = [note for note in (*notes, parameter.default) if isinstance(note, FieldInfo)]
    alias = parameter.name
    described = False
    for info in infos:
        described = described or info.description is not None
        given = info.validation_alias or info.alias
        alias = given if isinstance(given, str) else alias
    texts = [note for note in notes if isinstance(note, str)]
    texts += [doc for note in notes if isinstance(doc := getattr(note, "documentation", None), str)]
    text = texts[0] if texts else documented
    own = Field(alias=alias) if described or text is None else Field(alias=alias, description=text)
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    return Annotated[hint, own], default


def _model(
    tool_name: str, fields: dict[str, tuple[Any, Any]], names: list[str]
) -> tuple[type[BaseModel], Schema]:
    try:
        return _build(fields)
    except _UNUSABLE as error:
        for name, each in zip(names, fields.values(), strict=True):
            try:
                _build({"p0": each})
            except _UNUSABLE as reason:
                raise ToolDefinitionError(
                    f"{tool_name}: parameter {name!r} has a type that has no JSON schema: "
                    f"{_first_sentence(reason)}. Take what JSON can say (str, int, float, bool, list, dict, a "
                    "dataclass, a pydantic model) and make the object from it inside."
                ) from error
        raise ToolDefinitionError(
            f"{tool_name}: no JSON schema can be made: {_first_sentence(error)}"
        ) from error


def _build(fields: Mapping[str, tuple[Any, Any]]) -> tuple[type[BaseModel], Schema]:
    model = pydantic.create_model("Arguments", __config__=ConfigDict(extra="forbid"), **cast(Any, fields))
    return model, without_titles(model.model_json_schema(schema_generator=_SchemaGenerator))


def _first_sentence(error: Exception) -> str:
    return reason_of(error).splitlines()[0].partition(". ")[0].rstrip(".")


# --- checking ----------------------------------------------------------------------------------------------


def _model_check(
    model: type[BaseModel], names: list[str], schema: CheckedSchema
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            fitting = model.model_validate(arguments)
        except pydantic.ValidationError as first:
            # Only now, and only where it failed: a validator of the user's own may well take what the schema
            # does not show.
            failed = {error["loc"][0] for error in first.errors() if error["loc"]}
            mended = coerced({key: item for key, item in arguments.items() if key in failed}, schema)
            again = {key: item for key, item in arguments.items() if key not in failed} | mended
            try:
                fitting = model.model_validate(again)
            except pydantic.ValidationError as error:
                raise Misfit(_problems(error, again, schema)) from error
        return {name: getattr(fitting, f"p{index}") for index, name in enumerate(names)}

    return check


def _problems(
    error: pydantic.ValidationError, arguments: dict[str, Any], schema: CheckedSchema
) -> Iterator[Problem]:
    alternatives: dict[Path, list[str]] = {}
    for each in error.errors(include_url=False, include_context=False):
        path = _data_path(each, arguments)
        if each["type"] == "missing":
            yield missing(path)
        elif each["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
            yield unknown(path, schema.names_at(path[:-1]))
        else:  # several for one place: the members of a union, none of which fits
            text = each["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
            text = text.removeprefix("Input ").rstrip(".")
            alternatives.setdefault(path, []).append(f"{text}, got {shown(each['input'])}")
    for path, texts in alternatives.items():
        yield Problem(path, " or ".join(dict.fromkeys(texts)))


def _data_path(each: ErrorDetails, arguments: Any) -> Path:
    """An error's place in the arguments, without the steps by which pydantic names a union's members."""
    location = each["loc"]
    path: list[str | int] = []
    here = arguments
    for position, step in enumerate(location):
        last = position == len(location) - 1
        if isinstance(here, dict) and (step in here or (last and each["type"] == "missing")):
            here = cast("dict[Any, Any]", here).get(step, PydanticUndefined)
        elif isinstance(here, list) and isinstance(step, int) and step < len(cast("list[Any]", here)):
            here = cast("list[Any]", here)[step]
        else:
            continue
        path.append(step)
    return tuple(path)
