"""JSON for the wire: text repaired to valid Unicode, payloads joined from pieces, and what is made once kept.

Messages are frozen, so the bytes that stand for one in a request never change: they are made at its first
request and joined for every later one. A conversation of n turns then encodes each message once instead of
n times.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

import pydantic_core

from rx_agent.surrogates import repaired_text

T = TypeVar("T")


def repaired(value: Any) -> Any:
    """``value`` with every string in it repaired (dicts, lists and tuples are gone through, the keys too)."""
    if isinstance(value, str):
        return repaired_text(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {repaired(key): repaired(item) for key, item in items}
    if isinstance(value, list | tuple):
        return [repaired(item) for item in cast("Sequence[Any]", value)]
    return value


def wire_json(value: Any) -> bytes:
    """``value`` as compact UTF-8 JSON, valid whatever the strings hold; NaN and infinities become null.

    Raises ``pydantic_core.PydanticSerializationError`` for a value that JSON and pydantic know nothing of.
    """
    try:
        return pydantic_core.to_json(value, inf_nan_mode="null")
    except (pydantic_core.PydanticSerializationError, UnicodeEncodeError):
        return pydantic_core.to_json(repaired(value), inf_nan_mode="null")


@dataclass(slots=True)
class WirePayload:
    """A request's body: ``fields`` as data, and ``arrays`` whose items are JSON bytes already.

    >>> WirePayload({"model": "m"}, {"messages": [b'{"role":"user"}', b"{}"]}).to_bytes()
    b'{"messages":[{"role":"user"},{}],"model":"m"}'
    """

    fields: dict[str, Any]
    arrays: dict[str, Sequence[bytes]] = field(default_factory=dict[str, Sequence[bytes]])

    def to_bytes(self) -> bytes:
        """The JSON object. A field of the same name stands in for an array."""
        parts = [
            wire_json(name) + b":[" + b",".join(items) + b"]"
            for name, items in self.arrays.items()
            if name not in self.fields
        ]
        if self.fields:
            parts.append(wire_json(self.fields)[1:-1])
        return b"{" + b",".join(parts) + b"}"

    def to_dict(self) -> dict[str, Any]:
        """The same as fresh data, free to be changed."""
        return cast("dict[str, Any]", pydantic_core.from_json(self.to_bytes()))


class IdentityCache(Generic[T]):
    """Remembers what was made of an object, by identity and ``variant``, for as long as the object lives.

    >>> class Thing: pass
    >>> cache, thing = IdentityCache(), Thing()
    >>> cache.get(thing, "v", lambda: "made"), cache.get(thing, "v", lambda: "again"), len(cache)
    ('made', 'made', 1)
    >>> del thing; len(cache)
    0
    """

    __slots__ = ("_made",)

    def __init__(self) -> None:
        # Equality of messages compares their whole content; an id is unique while its object lives, and the
        # weak reference drops the entry before the id can be used again.
        self._made: dict[int, tuple[weakref.ref[Any], dict[Hashable, T]]] = {}

    def __len__(self) -> int:
        return len(self._made)

    def get(self, key: object, variant: Hashable, make: Callable[[], T]) -> T:
        """What ``make()`` gave for ``key`` and ``variant`` the first time. The value must not refer to ``key``."""
        number = id(key)
        entry = self._made.get(number)
        if entry is None:
            made = self._made
            entry = made[number] = (weakref.ref(key, lambda _: made.pop(number, None)), {})
        values = entry[1]
        if variant not in values:
            values[variant] = make()
        return values[variant]
