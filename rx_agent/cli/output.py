"""Text on a stream that may be a terminal, may lack characters, and may close at any time."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TextIO

_INVISIBLE: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"},
    **dict.fromkeys(range(0x80, 0xA0), "\ufffd"),
    ord("\r"): "",
    0x7F: "\u2421",
}


def harmless(text: str) -> str:
    """``text`` without control characters: what a model or a file says must not move the cursor or worse.

    >>> harmless("a" + chr(27) + "[2Jb")
    'a␛[2Jb'
    """
    return text.translate(_INVISIBLE)


class Output:
    """Writes and flushes. After the first failure (``lost``) it stays silent, having told ``on_lost`` once."""

    def __init__(self, stream: TextIO, env: Mapping[str, str] | None = None) -> None:
        env = os.environ if env is None else env
        self._stream: TextIO = stream
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(errors="replace")  # lone surrogates, or a terminal that has no arrows
        self.is_terminal = stream.isatty()
        self.has_colours = self.is_terminal and not env.get("NO_COLOR") and env.get("TERM") != "dumb"
        self.lost: OSError | None = None
        self._silent = False
        self.on_lost: Callable[[], object] = lambda: None

    def write(self, text: str) -> None:
        """Writes ``text`` as it is, at once."""
        if self.lost is not None or self._silent:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError as error:
            self.lost = error
            self.on_lost()

    def silence(self) -> None:
        """Writes nothing more, and lets nothing that waits in a buffer hold up the end."""
        self._silent = True
        abandon(self._stream)

    def can_show(self, text: str) -> bool:
        """Whether the stream's encoding has these characters."""
        try:
            text.encode(getattr(self._stream, "encoding", None) or "utf-8")
        except (UnicodeEncodeError, LookupError):
            return False
        return True

    def style(self, text: str, *codes: int) -> str:
        """``text`` in a colour, where there are colours."""
        return f"\x1b[{';'.join(map(str, codes))}m{text}\x1b[0m" if self.has_colours else text


def abandon(stream: TextIO) -> None:
    """Makes the interpreter's last flush of a broken or blocked ``stream`` harmless."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):  # no real file behind it, so nothing to flush to
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


BOLD, DIM, RED, GREEN, CYAN = 1, 2, 31, 32, 36
