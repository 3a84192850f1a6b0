"""Marble diagrams as users of this kit write them, read into times and symbols.

The language of Rx: each character is one tick, ``-`` waits, ``(ab)`` happens at the instant of its ``(`` and takes
the room of its characters, ``|`` ends, ``#`` fails, blanks only align. Beyond that:

- ``^`` begins and ``!`` cuts short, where a lane shows that;
- a time in words between blanks waits that long: ``"a 10 min b"``.

Where Rx's own dialects differ this is RxJS's: every character is a marble, while ``reactivex.testing.marbles`` reads
``ab`` as one with a long name. In a group with commas a name may be long: ``(10,a)``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}
_WAIT = re.compile(r"(?<!\S)(\d+(?:\.\d+)?)\s*(ms|s|min|h|d)(?!\S)")
_TOKEN = re.compile(r"\((?P<group>[^()]*)\)|(?P<wait>-+)|(?P<sign>[|#^!])|(?P<name>[^-|#^!(),\s])")
_NAMED = re.compile(r"[|#^!]|[^|#^!,\s]+")
_LETTERS = re.compile(r"[^,\s]")
SIGNS = "|#^!"


class DiagramError(ValueError):
    """A marble diagram that cannot be read; the message shows where."""


@dataclass(frozen=True, slots=True)
class Marble:
    """A symbol at a time, in seconds from the diagram's start."""

    time: float
    symbol: str


@dataclass(frozen=True, slots=True)
class Diagram:
    """A diagram that has been read: its marbles in order, and how long it is in seconds."""

    marbles: tuple[Marble, ...]
    length: float

    @property
    def ended(self) -> bool:
        """Whether it says how it ends (``|`` or ``#``)."""
        return any(marble.symbol in "|#" for marble in self.marbles)


def seconds(time: str | float) -> float:
    """``"5 s"``, ``"250 ms"``, ``"10 min"``, ``"2 h"``, ``"1 d"`` or a number, in seconds.

    >>> seconds("10 min"), seconds(3)
    (600.0, 3.0)
    """
    if isinstance(time, int | float):
        return float(time)
    match = re.fullmatch(_WAIT, time.strip())
    if match is None:
        raise DiagramError(f"time {time!r} is none; write '250 ms', '5 s', '10 min', '2 h' or '1 d'")
    return float(match[1]) * _UNITS[match[2]]


def read(text: str, *, tick: float = 1.0) -> Diagram:
    """The diagram ``text``, whose characters are ``tick`` seconds each. Raises :class:`DiagramError`.

    >>> [(marble.time, marble.symbol) for marble in read("--a-(b,c|) 1 min d").marbles]
    [(2.0, 'a'), (4.0, 'b'), (4.0, 'c'), (4.0, '|'), (70.0, 'd')]
    """
    marbles: list[Marble] = []
    ticks, waited = 0, 0.0
    place = 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        if match := _WAIT.match(text, place):
            waited += float(match[1]) * _UNITS[match[2]]
            place = match.end()
            continue
        match = _TOKEN.match(text, place)
        if match is None:
            pointer = " " * place + "^"
            raise DiagramError(
                f"this diagram cannot be read here (commas stand in groups only):\n{text}\n{pointer}"
            )
        now = round(ticks * tick + waited, 9)
        if match["group"] is not None:
            names = (_NAMED if "," in match["group"] else _LETTERS).findall(match["group"])
            marbles += [Marble(now, symbol) for symbol in names]
        elif match["wait"] is None:
            marbles.append(Marble(now, match[0]))
        ticks += sum(not character.isspace() for character in match[0])
        place = match.end()
    return Diagram(tuple(marbles), round(ticks * tick + waited, 9))
