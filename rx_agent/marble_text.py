"""Lanes of marks drawn as text: one time axis, a row for each lane, long waits shortened to ``~``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rx_agent.timeline import MORE, Lane, Lanes

FINE = 1e-6
"""Seconds: moments that are nearer to each other than this are one."""
LONGEST_GAP = 8
"""Columns; a wait that would take more is drawn with a break."""
DOTS = 4
"""More moments than this in a row at which texts only went on are drawn as one mark with their number."""


def seconds_text(seconds: float) -> str:
    """A time in words.

    >>> [seconds_text(each) for each in (0, 0.25, 1.5, 90, 600, 5400)]
    ['0 s', '0.25 s', '1.5 s', '90 s', '10 min', '1.5 h']
    """
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        whole = seconds / size
        if whole >= 1 and abs(whole * 4 - round(whole * 4)) < FINE and (whole >= 2 or name != "min"):
            return f"{whole:g} {name}"
    return f"{round(seconds, 3):g} s"


@dataclass(frozen=True, slots=True)
class Column:
    """A moment on the axis: where it stands, and what each lane shows there."""

    time: float
    place: int
    cells: tuple[str, ...]
    broken: bool = False
    """Whether the wait before it is shortened."""


def drawn(
    lanes: Lanes, *, width: int = 100, finest: float = 0.0, note: tuple[str, float] | None = None
) -> str:
    """``lanes`` as text, ``width`` characters wide at most, in as many blocks as that takes.

    Moments that follow each other within ``finest`` seconds are drawn as one. ``note``: a lane's name and a time; a
    ``^`` is put below that mark.

    >>> from rx_agent.timeline import Mark
    >>> print(drawn(Lanes([Lane("text", [Mark(2, "a"), Mark(4, "b"), Mark(5, "|")])], {"a": "'Hi'"})))
    time  0 s  5 s
    text  --a-b|
    a = 'Hi'
    """
    names = [lane.name for lane in lanes.lanes]
    margin = max((len(name) for name in ["time", *names]), default=4) + 2
    blocks: list[str] = []
    for columns in _blocks(_columns(lanes.lanes, finest), max(20, width - margin)):
        rows = [("time", _axis(columns))]
        for index, name in enumerate(names):
            rows.append((name, _row(columns, index)))
            if note is not None and note[0] == name:
                place = next((each.place for each in columns if abs(each.time - note[1]) < FINE), None)
                if place is not None:
                    rows.append(("", " " * place + "^"))
        blocks.append("\n".join(f"{name:{margin}}{row}".rstrip() for name, row in rows))
    legend = "\n".join(f"{symbol} = {meaning}" for symbol, meaning in lanes.legend.items())
    return "\n\n".join(blocks) + ("\n" + legend if legend else "")


def _columns(lanes: Sequence[Lane], finest: float) -> list[Column]:
    drawn_at: dict[float, float] = {0.0: 0.0}
    last = 0.0
    for time in sorted({round(mark.time, 6) for lane in lanes for mark in lane.marks}):
        last = last if time - last <= finest else time
        drawn_at[time] = last
    moments: dict[float, list[list[str]]] = {}
    for time in drawn_at.values():
        moments[time] = [[] for _ in lanes]
    for index, lane in enumerate(lanes):
        for mark in lane.marks:
            moments[drawn_at[round(mark.time, 6)]][index].append(mark.symbol)
    times = _thinned(sorted(moments), moments)
    unit = min((later - earlier for earlier, later in pairwise(times)), default=1.0)
    columns: list[Column] = []
    place, before, widest = 0, 0.0, 1
    for number, time in enumerate(times):
        gap = round((time - before) / unit) if number else 0
        broken = gap > LONGEST_GAP
        place += max(LONGEST_GAP if broken else gap, widest if number else 0)
        cells = tuple(_cell(symbols) for symbols in moments[time])
        columns.append(Column(time, place, cells, broken))
        before, widest = time, max([1, *map(len, cells)])
    return columns


def _thinned(times: list[float], moments: dict[float, list[list[str]]]) -> list[float]:
    """``times`` with long rows of moments at which a single lane only went on made one."""
    kept: list[float] = []
    row: list[float] = []

    def flush() -> None:
        if len(row) <= DOTS:
            kept.extend(row)
        else:
            kept.append(row[0])
            for symbols in moments[row[0]]:
                if symbols:
                    symbols[:] = [f"{MORE}x{len(row)}"]
        row.clear()

    going_on = None
    for time in times:
        shown = [index for index, symbols in enumerate(moments[time]) if symbols]
        only_on = shown[0] if len(shown) == 1 and set(moments[time][shown[0]]) == {MORE} else None
        if row and only_on != going_on:
            flush()
        going_on = only_on
        if only_on is None:
            kept.append(time)
        else:
            row.append(time)
    flush()
    return kept


def _cell(symbols: list[str]) -> str:
    return "" if not symbols else symbols[0] if len(symbols) == 1 else f"({','.join(symbols)})"


def _blocks(columns: list[Column], width: int) -> Iterator[list[Column]]:
    block: list[Column] = []
    shift = 0
    for column in columns:
        end = column.place - shift + max([1, *map(len, column.cells)])
        if block and end > width:
            yield block
            block, shift = [], column.place
        block.append(Column(column.time, column.place - shift, column.cells, column.broken and bool(block)))
    if block:
        yield block


def _axis(columns: list[Column]) -> str:
    line = ""
    for column in columns:
        if not line or len(line) + 2 <= column.place:
            line = line.ljust(column.place) + seconds_text(column.time)
    return line


def _row(columns: list[Column], lane: int) -> str:
    line = ""
    for column in columns:
        if column.broken and len(line) < column.place - 2:
            half = (len(line) + column.place) // 2
            line = line.ljust(half, "-") + "~"
        line = line.ljust(column.place, "-") + column.cells[lane]
    shown = [column.cells[lane] for column in columns if column.cells[lane]]
    if shown and shown[-1][-1] in "|!#":
        return line[: line.rindex(shown[-1][-1]) + 1]
    return line
