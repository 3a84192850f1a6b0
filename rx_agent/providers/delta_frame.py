"""Reads a delta out of an event that says the same as the one before but for its text, without parsing it."""

from __future__ import annotations


class DeltaFrame:
    """What stood around the text of one event, and so may stand around that of the next.

    JSON is a function of its bytes: where an event differs from one that was parsed only within a plain string,
    parsing it would give the same but for that string. That is so for nearly all events of an API that does not
    number them.

    >>> frame = DeltaFrame.around(b'{"delta": {"text": "Hel"}}', "text", "Hel")
    >>> frame.text_of(b'{"delta": {"text": "lo"}}')
    'lo'
    >>> frame.text_of(b'{"delta": {"text": "a quote: \\\\""}}'), frame.text_of(b'{"error": {}}')
    (None, None)
    """

    __slots__ = ("_head", "_least", "_start", "_stop", "_tail")

    def __init__(self, head: bytes, tail: bytes) -> None:
        self._head = head
        self._tail = tail
        self._least = len(head) + len(tail)
        self._start = len(head)
        self._stop = -len(tail)

    @classmethod
    def around(cls, data: bytes, field: str, text: str) -> DeltaFrame:
        """The frame of an event that was parsed: ``text`` stood in ``field``. One that fits nothing, where that is
        to be seen nowhere, or could be in two places.
        """
        name, value = f'"{field}"'.encode(), b'"' + text.encode("utf-8", "replace") + b'"'
        if data.count(name) == 1 and b"\\" not in data:  # an escape could hide a second field of that name
            for colon in (b":", b": "):
                head, found, tail = data.partition(name + colon + value)
                if found:
                    return cls(head + name + colon + b'"', b'"' + tail)
        return cls(b"\n", b"\n")  # no event's data begins with a line end

    def text_of(self, data: bytes) -> str | None:
        """The text in an event of this frame; None where it has another, or the text is not plain enough."""
        if data.startswith(self._head) and data.endswith(self._tail) and len(data) > self._least:
            try:
                text = data[self._start : self._stop].decode()
            except UnicodeDecodeError:
                return None
            if '"' not in text and "\\" not in text and text.isprintable():
                return text
        return None
