"""A reader for Server-Sent Events that does no I/O: bytes in, events out, the same for any split of the bytes.

Follows the event stream format of the HTML standard
(https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation), with one
deliberate difference: an event that the end of the stream cuts short of its blank line is handed out by
:meth:`SseReader.close`, since real servers forget that line. ``id`` and ``retry`` serve reconnection, which
a model's answer has none of, so they are passed over. Written here rather than taken from a library because
every delta goes through it.
"""

from __future__ import annotations

from typing import NamedTuple

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

    __slots__ = ("_after_cr", "_data", "_head", "_name", "_stray", "_tail")

    def __init__(self) -> None:
        self._head: bytes | None = b""  # the first bytes, until it is clear whether they are a BOM
        self._tail: list[bytes] = []  # pieces of the line that has no end yet
        self._data: list[bytes] = []
        self._name = ""
        self._after_cr = False
        self._stray = bytearray()

    @property
    def stray(self) -> bytes:
        """The first 4 KiB of what came and was no event: an HTML page, a bare JSON error, unknown fields."""
        return bytes(self._stray)

    def feed(self, piece: bytes) -> list[SseEvent]:
        """The events that ``piece`` completes, in order."""
        if self._head is not None:
            piece = self._without_bom(piece)
        if self._after_cr and piece:
            # The line already ended at the CR; an LF right behind belongs to the same line end.
            self._after_cr = False
            if piece.startswith(b"\n"):
                piece = piece[1:]
        if b"\r" in piece:
            self._after_cr = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in piece:
            if piece:
                self._tail.append(piece)
            return []
        if self._tail:
            self._tail.append(piece)
            piece = b"".join(self._tail)
            self._tail.clear()
        lines = piece.split(b"\n")
        rest = lines.pop()
        if rest:
            self._tail.append(rest)
        return self._events(lines)

    def close(self) -> list[SseEvent]:
        """The event that the end of the stream left without its blank line, if any."""
        lines = [b"".join(self._tail)] if self._tail else []
        if self._head:
            lines.insert(0, self._head)
        self._head = None
        self._tail.clear()
        return self._events([*lines, b""])

    def _without_bom(self, piece: bytes) -> bytes:
        start = (self._head or b"") + piece
        if len(start) < len(BOM) and BOM.startswith(start):
            self._head = start
            return b""
        self._head = None
        return start.removeprefix(BOM)

    def _events(self, lines: list[bytes]) -> list[SseEvent]:
        events: list[SseEvent] = []
        data = self._data
        for line in lines:
            if line[:6] == b"data: ":
                data.append(line[6:])
            elif line[:7] == b"event: ":
                self._name = line[7:].decode("utf-8", "replace")
            elif not line:
                if data:
                    events.append(
                        SseEvent(self._name or "message", data[0] if len(data) == 1 else b"\n".join(data))
                    )
                    data.clear()
                self._name = ""
            else:
                self._other_line(line)
        return events

    def _other_line(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field not in (b"", b"id", b"retry") and len(self._stray) < STRAY_LIMIT:
            self._stray += line[: STRAY_LIMIT - len(self._stray)] + b"\n"
