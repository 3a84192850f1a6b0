"""Arguments of a function call that arrive piece by piece, each with the JSONPath of where it belongs.

Vertex AI streams them so where ``toolConfig.functionCallingConfig.streamFunctionCallArguments`` asks for it:
https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling#streaming-fc
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, TypeAlias, cast

Path: TypeAlias = tuple[str | int, ...]

_SEGMENT = re.compile(
    r"""\.([^.\[\]'"\s]+)|\[(\d{1,9})\]|\["((?:[^"\\]|\\.)*)"\]|\['((?:[^'\\]|\\.)*)'\]""", re.DOTALL
)
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "stringValue": str,
    "numberValue": (int, float),
    "boolValue": bool,
}


def json_path(text: str) -> Path | None:
    """The steps of a JSONPath that leads to one place (RFC 9535), or None for any other.

    >>> json_path("$.a[0]['b c']")
    ('a', 0, 'b c')
    >>> json_path("$..a") is None
    True
    """
    if not text.startswith("$"):
        return None
    steps: list[str | int] = []
    at = 1
    while at < len(text):
        found = _SEGMENT.match(text, at)
        if found is None:
            return None
        name, index, double, single = found.groups()
        if index is not None:
            steps.append(int(index))
        elif name is not None:
            steps.append(name)
        else:
            quoted = double if double is not None else single.replace("\\'", "'").replace('"', '\\"')
            try:
                steps.append(json.loads(f'"{quoted}"', strict=False))
            except ValueError:
                return None
        at = found.end()
    return tuple(steps)


class StreamedArguments:
    """Puts the pieces together, and writes them as JSON while they come, if they come in the order of JSON.

    Each method returns what it adds to the text. Pieces in another order are put together all the same, but the
    text stays behind; a piece that belongs nowhere makes the arguments :attr:`broken`. The text lacks its last
    brace until :meth:`close`, and a broken one's for ever, so that it is no JSON object and is never executed.

    >>> streamed = StreamedArguments()
    >>> text = streamed.open()
    >>> text += streamed.add({"jsonPath": "$.city", "stringValue": "Par", "willContinue": True})
    >>> text += streamed.add({"jsonPath": "$.city", "stringValue": "is"})
    >>> text + streamed.close(), streamed.arguments
    ('{"city":"Paris"}', {'city': 'Paris'})
    """

    def __init__(self) -> None:
        self.arguments: dict[str, Any] = {}
        self.broken = False
        self._in_order = True
        self._written: Path = ()
        """Where the text is: the steps to the last value."""
        self._raw: object = None
        self._pieces: list[str] | None = None
        """Of the string that goes on. It is put in its place when it ends: appending to it there is quadratic."""
        self._owner: Any = None

    def open(self) -> str:
        """Begins the text."""
        return "{"

    def add(self, piece: Mapping[str, Any]) -> str:
        """Takes one ``PartialArg``. Raises ``TypeError`` for a value that is not what its field says."""
        if self.broken:
            return ""
        raw, goes_on = piece.get("jsonPath"), bool(piece.get("willContinue"))
        name = next((each for each in _TYPES if each in piece), None)
        value = None if name is None else piece[name]
        if name is not None and not isinstance(value, _TYPES[name]):
            raise TypeError(f"{name} of a partial argument is {value!r}")
        if self._pieces is not None and raw == self._raw and name in (None, "stringValue"):
            self._pieces.append(value or "")
            return self._shown(json.dumps(value or "")[1:-1] + ("" if goes_on else self._end_string()))
        text = self._end_string()
        path = json_path(raw) if isinstance(raw, str) else None
        if not path or (name is None and "nullValue" not in piece):
            self.broken = True
            return ""
        self._raw = raw
        text += self._between(path)
        if not self._place(path, value):
            self.broken = True
            return ""
        self._written = path
        if name != "stringValue":
            return self._shown(text + json.dumps(value))
        self._pieces = [str(value)]
        text += json.dumps(value)[:-1]
        return self._shown(text if goes_on else text + self._end_string())

    def close(self) -> str:
        """Ends the text. From here on :attr:`arguments` is whole, unless they are :attr:`broken`."""
        text = self._end_string()
        return "" if self.broken else self._shown(text + self._brackets(0) + "}")

    def _shown(self, text: str) -> str:
        return text if self._in_order else ""

    def _end_string(self) -> str:
        if self._pieces is None:
            return ""
        text = "".join(self._pieces)
        # Halves of a surrogate pair that came in two pieces become one character.
        self._owner[self._written[-1]] = text if text.isascii() else json.loads(json.dumps(text))
        self._pieces = None
        return '"'

    def _brackets(self, depth: int) -> str:
        """What closes the containers that are open below ``depth``."""
        return "".join("}" if isinstance(step, str) else "]" for step in reversed(self._written[depth + 1 :]))

    def _between(self, path: Path) -> str:
        """What leads the text from the last value to the place of the next."""
        shared = 0
        for old, new in zip(self._written[:-1], path[:-1], strict=False):
            if old != new:
                break
            shared += 1
        container: Any = self.arguments
        for step in path[:shared]:
            container = container[step]
        if not _fits(container, path[shared]) or _has(container, path[shared]):
            self._in_order = False
        parts = [self._brackets(shared), "," if container else ""]
        for place, step in enumerate(path[shared:]):
            if place:
                parts.append("{" if isinstance(step, str) else "[")
            if isinstance(step, str):
                parts.append(json.dumps(step) + ":")
        return "".join(parts)

    def _place(self, path: Path, value: Any) -> bool:
        """Puts ``value`` into the arguments; False where it has no place there."""
        container: Any = self.arguments
        for step, following in pairwise(path):
            if not _fits(container, step):
                return False
            if not _has(container, step):
                _put(container, step, {} if isinstance(following, str) else [])
            container = container[step]
        if not _fits(container, path[-1]):
            return False
        _put(container, path[-1], value)
        self._owner = container
        return True


def _fits(container: Any, step: str | int) -> bool:
    if isinstance(step, str):
        return isinstance(container, dict)
    return isinstance(container, list) and step <= len(cast("list[Any]", container))


def _has(container: Any, step: str | int) -> bool:
    return step in container if isinstance(step, str) else step < len(container)


def _put(container: Any, step: str | int, value: Any) -> None:
    if step == len(container) and isinstance(container, list):
        cast("list[Any]", container).append(value)
    else:
        container[step] = value
