"""A reader for Server-Sent Events that does no I/O: bytes in, events out, the same for any split of the bytes.

Follows the event stream format of the HTML standard
(https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation), with one
deliberate difference: an event that the end of the stream cuts short of its blank line is handed out by
:meth:`SseReader.close`, since real servers forget that line. ``id`` and ``retry`` serve reconnection, which
a model's answer has none of, so they are passed over. Written here rather than taken from a library because
every delta goes through it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import repeat
from typing import NamedTuple, cast

BOM = b"\xef\xbb\xbf"
STRAY_LIMIT = 4096


class SseEvent(NamedTuple):
    """One event: its ``name`` (``"message"`` unless the server gave one) and its ``data``, UTF-8 as it came."""

    name: str
    data: bytes


class SseReader:
    """Turns the bytes of an event stream into events.

    Time and memory are linear in the bytes, however small the pieces are.

    >>> reader = SseReader()
    >>> reader.feed(b'data: {"a"')
    []
    >>> reader.feed(b': 1}\\n\\n: a comment\\n\\nevent: ping\\ndata\\n\\ndata: last')
    [SseEvent(name='message', data=b'{"a": 1}'), SseEvent(name='ping', data=b'')]
    >>> reader.close()
    [SseEvent(name='message', data=b'last')]
    """

    __slots__ = ("_after_cr", "_bom", "_head", "_name", "_stray", "_tail")

    def __init__(self) -> None:
        self._bom: bytes | None = b""  # the first bytes, until it is clear whether they are a BOM
        self._tail: list[bytes] = []  # pieces of the event that has no blank line yet
        self._after_cr = False
        # What stood before the data of the last event, and the name it gave: nearly always that of the next, too.
        self._head = b"data: "
        self._name = "message"
        self._stray = bytearray()

    @property
    def stray(self) -> bytes:
        """The first 4 KiB of what came and was no event: an HTML page, a bare JSON error, unknown fields.

        Whole once the reader is closed.
        """
        return bytes(self._stray)

    def feed(self, piece: bytes) -> list[SseEvent]:
        """The events that ``piece`` completes, in order."""
        if self._bom is not None:
            piece = self._without_bom(piece)
        if self._after_cr and piece:
            # The line already ended at the CR; an LF right behind belongs to the same line end.
            self._after_cr = False
            if piece.startswith(b"\n"):
                piece = piece[1:]
        if b"\r" in piece:
            self._after_cr = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        tail = self._tail
        if tail:
            goes_on = piece.startswith(b"\n") and tail[-1].endswith(b"\n")
            if not goes_on and b"\n\n" not in piece:
                if piece:
                    tail.append(piece)
                return []
            tail.append(piece)
            piece = b"".join(tail)
            tail.clear()
        end = piece.rfind(b"\n\n")
        if rest := piece[end + 2 :] if end >= 0 else piece:
            tail.append(rest)
        return self._events(piece[:end]) if end >= 0 else []

    def close(self) -> list[SseEvent]:
        """The event that the end of the stream left without its blank line, if any."""
        rest = (self._bom or b"") + b"".join(self._tail)
        self._bom = None
        self._tail.clear()
        return self._events(rest)

    def _without_bom(self, piece: bytes) -> bytes:
        start = (self._bom or b"") + piece
        if len(start) < len(BOM) and BOM.startswith(start):
            self._bom = start
            return b""
        self._bom = None
        return start.removeprefix(BOM)

    def _events(self, lines: bytes) -> list[SseEvent]:
        """The events of whole lines, blank ones between them."""
        head = self._head
        if lines.startswith(head):
            # Nearly always all are alike; then the work is done by a handful of calls, whatever their number.
            data = lines[len(head) :].split(b"\n\n" + head)
            if lines.count(b"\n") == (head.count(b"\n") + 2) * len(data) - 2:  # none inside of any
                return list(map(_event, zip(repeat(self._name), data, strict=False)))
        return [event for block in lines.split(b"\n\n") if (event := self._read(block)) is not None]

    def _read(self, block: bytes) -> SseEvent | None:
        """The event of one block, line by line. Its head is then what the next block is expected to have."""
        name, data, strays = "", list[bytes](), False
        lines = block.split(b"\n")
        for line in lines:
            field, _, value = line.partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" "))
            elif field == b"event":
                name = value.removeprefix(b" ").decode("utf-8", "replace")
            elif field not in (b"", b"id", b"retry"):
                strays = True
                if len(self._stray) < STRAY_LIMIT:
                    self._stray += line[: STRAY_LIMIT - len(self._stray)] + b"\n"
        if not data:
            return None
        name = name or "message"
        if len(data) == 1 and lines[-1].startswith(b"data: ") and not strays:
            self._head, self._name = block.removesuffix(data[0]), name
        return SseEvent(name, b"\n".join(data))


_event = cast(
    "Callable[[tuple[str, bytes]], SseEvent]",
    functools.partial(tuple.__new__, SseEvent),  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
)
"""What ``SseEvent(*pair)`` comes to, without the detour that is half its cost."""
