"""What a tool may return, as a ``ToolResult``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, TypeAlias, cast
from uuid import UUID

import pydantic_core
from pydantic import BaseModel

from rx_agent.messages import ImageContent, TextContent, ToolResult

_Block: TypeAlias = TextContent | ImageContent
_SCALARS = (bool, int, float, Decimal, Enum, date, time, timedelta, UUID, PurePath)

SUPPORTED = (
    "a str, None, a number, a bool, a dict, a list, a dataclass, a pydantic model, TextContent, "
    "ImageContent, a list of those with strs, or a ToolResult"
)


def to_result(value: Any) -> ToolResult:
    """The result that a tool means by returning ``value``.

    ============================================  =======================================================
    ``ToolResult``                                itself
    ``None``                                      no content
    ``str``                                       that text
    ``TextContent``, ``ImageContent``             that block
    list or tuple with such a block (and strs)    those blocks
    model, dataclass, dict, list, tuple, set      its JSON as text, and the value itself in ``details``
    number, bool, Enum, date, Decimal, UUID, Path its JSON as text (a string without the quotes)
    ============================================  =======================================================

    A list of strs alone is JSON too, since text blocks would run into each other. Anything else, ``bytes``
    among it, raises ``TypeError`` saying what can be returned: a ``str()`` of it would tell a model nothing.

    >>> to_result({"größe": 3}).text
    '{"größe": 3}'
    """
    if isinstance(value, ToolResult):
        return value
    if value is None:
        return ToolResult()
    if isinstance(value, str) and not isinstance(value, Enum):
        return ToolResult(content=(TextContent(text=value),))
    if isinstance(value, _Block):
        return ToolResult(content=(value,))
    if isinstance(value, list | tuple):
        items = cast("list[Any] | tuple[Any, ...]", value)
        if any(isinstance(item, _Block) for item in items):
            return ToolResult(content=tuple(_block(item) for item in items))
    if isinstance(value, _SCALARS):
        return ToolResult(content=(TextContent(text=json_text(value)),))
    if (
        isinstance(value, BaseModel | Mapping | list | tuple | AbstractSet) or dataclasses.is_dataclass(value)
    ) and not isinstance(value, type):
        return ToolResult(content=(TextContent(text=json_text(value)),), details=_snapshot(value))
    raise _unsupported(value)


def _block(item: Any) -> _Block:
    if isinstance(item, _Block):
        return item
    if isinstance(item, str):
        return TextContent(text=item)
    raise TypeError(
        f"A list with content blocks may hold TextContent, ImageContent and str, not {type(item).__name__}."
    )


def _unsupported(value: object) -> TypeError:
    hint = (
        " Decode what is text; an image is ImageContent(data=base64.b64encode(it).decode(), mime_type=...)."
        if isinstance(value, bytes | bytearray)
        else ""
    )
    return TypeError(f"A tool cannot return {type(value).__name__}. It can return {SUPPORTED}.{hint}")


def json_text(value: Any) -> str:
    """``value`` as readable JSON; what is a plain string in JSON comes without its quotes.

    Raises ``TypeError`` where something inside has no JSON form.
    """
    try:
        plain = _jsonable(value)
    except UnicodeEncodeError:
        # Pydantic takes lone surrogates (a file name that is not UTF-8 has some) in values, but not in keys.
        plain = _jsonable_with_any_keys(value)
    except (pydantic_core.PydanticSerializationError, UnicodeDecodeError) as error:
        raise TypeError(f"The tool's {type(value).__name__} has no JSON form: {error}") from error
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _jsonable(value: Any) -> Any:
    return pydantic_core.to_jsonable_python(value, by_alias=True, fallback=_path_text)


def _jsonable_with_any_keys(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return _jsonable_with_any_keys(value.model_dump(by_alias=True))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {
            key if isinstance(key, str) else next(iter(_jsonable({key: None}))): _jsonable_with_any_keys(item)
            for key, item in items
        }
    if isinstance(value, list | tuple | AbstractSet):
        return [_jsonable_with_any_keys(item) for item in cast("list[Any]", value)]
    return _jsonable(value)


def _path_text(value: Any) -> str:
    """Pydantic writes the paths of this system only."""
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"The tool's result has no JSON form: {type(value).__name__} is inside")


def _snapshot(value: Any) -> Any:
    """Containers copied, so that a body that goes on filling its dict does not change what it announced."""
    if type(value) is dict:
        return {key: _snapshot(item) for key, item in cast("dict[Any, Any]", value).items()}
    if type(value) is list:
        return [_snapshot(item) for item in cast("list[Any]", value)]
    return value
