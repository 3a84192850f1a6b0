"""Surrogates in text: halves of one character that arrived apart are put together, lone ones stay as they are."""

from __future__ import annotations

from typing import Any, cast


def with_joined_pairs(text: str) -> str:
    """``text`` with each high surrogate that a low one follows turned into the one character they stand for.

    A stream may cut a character's escape in two (``"\\ud83d"`` in one chunk, ``"\\ude00"`` in the next), and JSON
    cannot tell such a pair from the character: only with the pair joined does text survive a round trip.

    >>> with_joined_pairs("a\\ud83d" + "\\ude00") == "a\\U0001f600"
    True
    >>> with_joined_pairs("lone \\ud83d stays") == "lone \\ud83d stays"
    True
    """
    if text.isascii():  # O(1), and nearly always
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return text if joined == text else joined
    return text


def repaired_text(text: str) -> str:
    """``text`` with every surrogate pair joined and every lone surrogate replaced by U+FFFD.

    Returns the very same object where there is nothing to repair.

    >>> repaired_text("\\ud83d\\ude00") == "\\U0001f600", repaired_text("a\\ud83d!") == "a\\ufffd!"
    (True, True)
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def with_joined_pairs_inside(value: Any) -> Any:
    """``value`` with :func:`with_joined_pairs` done to each string in its dicts (keys too), lists and tuples.

    The very same object comes back where there was nothing to join.

    >>> with_joined_pairs_inside({"a": ["\\ud83d" + "\\ude00", 1]}) == {"a": ["\\U0001f600", 1]}
    True
    """
    return _joined(value, {}) if _has_pair(value) else value


def _has_pair(value: Any) -> bool:
    seen: set[int] = set()  # what holds itself is looked at once
    stack = [value]
    while stack:
        item = stack.pop()
        if type(item) is str:
            if with_joined_pairs(item) is not item:
                return True
        elif type(item) in (dict, list, tuple) and id(item) not in seen:
            seen.add(id(item))
            if type(item) is dict:
                stack.extend(cast("dict[Any, Any]", item))
                stack.extend(cast("dict[Any, Any]", item).values())
            else:
                stack.extend(cast("list[Any]", item))
    return False


def _joined(value: Any, done: dict[int, Any]) -> Any:
    number = id(value)
    if type(value) is str:
        return with_joined_pairs(value)
    if type(value) not in (dict, list, tuple):
        return value
    if number in done:
        return done[number]
    if type(value) is dict:
        fields: dict[Any, Any] = {}
        done[number] = fields
        for key, item in cast("dict[Any, Any]", value).items():
            fields[_joined(key, done)] = _joined(item, done)
        return fields
    if type(value) is tuple:
        return tuple(_joined(item, done) for item in cast("tuple[Any, ...]", value))
    items: list[Any] = []
    done[number] = items
    items.extend(_joined(item, done) for item in cast("list[Any]", value))
    return items
