"""The lanes of a test: what was recorded on each, what was expected, and the first place where they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rx_agent.events import AgentEvent, MessageEndEvent
from rx_agent.marble_text import FINE, drawn, seconds_text
from rx_agent.messages import (
    AssistantMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResult,
)
from rx_agent.providers.scripted import Call, Say, Think
from rx_agent.testing.actions import Action
from rx_agent.testing.diagram import SIGNS, Diagram
from rx_agent.testing.fakes import Error, Legend
from rx_agent.timeline import Entry, Lane, Lanes, Mark, call_text, entries_of, shortened

_SIGN_OF = {"start": "^", "end": "|", "stop": "!", "fail": "#"}


class Happened(NamedTuple):
    """Something recorded: when (seconds of virtual time), on which lane, as what."""

    time: float
    entry: Entry

    @property
    def words(self) -> str:
        """In words."""
        said = f" {shortened(self.entry.value, 60)!r}" if self.entry.value else ""
        kind = "" if self.entry.kind == "value" else f" {self.entry.kind}"
        return f"{self.entry.lane}:{kind}{said}"


@dataclass(slots=True)
class Record:
    """Everything that happened, in order."""

    happened: list[Happened] = field(default_factory=list[Happened])
    events: list[tuple[float, AgentEvent]] = field(default_factory=list[tuple[float, AgentEvent]])

    def note(self, time: float, entry: Entry) -> None:
        """Adds an entry."""
        self.happened.append(Happened(time, entry))

    def see(self, time: float, event: AgentEvent) -> None:
        """Adds an event and what it shows on the lanes."""
        self.events.append((time, event))
        for entry in entries_of(event):
            self.note(time, entry)
        if isinstance(event, MessageEndEvent) and isinstance(event.message, AssistantMessage):
            kind = {"error": "fail", "aborted": "stop"}.get(event.message.stop_reason or "", "end")
            for lane in ("text", "thinking"):
                self.note(time, Entry(lane, kind, event.message.error_message or ""))

    def lane(self, name: str) -> list[Happened]:
        """What happened on one lane."""
        return [happened for happened in self.happened if happened.entry.lane == name]

    def names(self) -> list[str]:
        """The lanes on which something happened, in order of appearance."""
        return list(dict.fromkeys(happened.entry.lane for happened in self.happened))

    def at(self, time: float) -> list[str]:
        """What happened at an instant, in words."""
        return [happened.words for happened in self.happened if abs(happened.time - time) < FINE]


class Wanted(NamedTuple):
    """Something expected: when, the symbol that says so, and what that means."""

    time: float
    symbol: str
    meaning: Any


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where a lane is not as expected."""

    lane: str
    time: float
    words: str


# --- comparing ---------------------------------------------------------------------------------------------

_ROLES = {"u": "user", "a": "assistant", "t": "tool_result"}
OPTIONAL = {"text": "|!#", "thinking": "|!#"}
"""Signs that a lane is compared for only where its expectation has them."""


def wanted_of(diagram: Diagram, legend: Legend) -> list[Wanted]:
    """What a diagram asks for."""
    return [
        Wanted(marble.time, marble.symbol, legend.get(marble.symbol, marble.symbol))
        for marble in diagram.marbles
    ]


def compared(name: str, wanted: Sequence[Wanted], happened: Iterable[Happened]) -> list[Happened]:
    """What happened, less what ``wanted`` says nothing of."""
    signs = {each.symbol for each in wanted}
    unasked = {sign for sign in OPTIONAL.get(name, "") if sign not in signs}
    return [each for each in happened if _SIGN_OF.get(each.entry.kind) not in unasked]


def difference(name: str, wanted: Sequence[Wanted], happened: Sequence[Happened]) -> Difference | None:
    """The first difference in time, or None. Within one instant the order counts."""
    for index in range(max(len(wanted), len(happened))):
        if index >= len(happened):
            missing = wanted[index]
            return Difference(
                name,
                missing.time,
                f"expected {_meant(missing)} at {seconds_text(missing.time)}; nothing came",
            )
        came = happened[index]
        if index >= len(wanted):
            return Difference(name, came.time, f"{came.words} at {seconds_text(came.time)} was not expected")
        asked = wanted[index]
        if abs(asked.time - came.time) >= FINE:
            first = min(asked.time, came.time)
            return Difference(
                name,
                first,
                f"expected {_meant(asked)} at {seconds_text(asked.time)}; {came.words} came at "
                f"{seconds_text(came.time)}",
            )
        if not matches(asked, came.entry):
            return Difference(
                name,
                came.time,
                f"expected {_meant(asked)} at {seconds_text(asked.time)}; it was {came.words}",
            )
    return None


def matches(wanted: Wanted, entry: Entry) -> bool:
    """Whether ``entry`` is what ``wanted`` means."""
    symbol, meaning = wanted.symbol, wanted.meaning
    if symbol in SIGNS and meaning == symbol:
        if symbol == "!" and entry.kind == "fail":
            return "aborted" in entry.value
        return _SIGN_OF.get(entry.kind) == symbol
    if isinstance(meaning, Error):
        return entry.kind == "fail" and meaning.message in entry.value
    if entry.kind != "value":
        return False
    # These letters speak for themselves on their lanes, whatever else they mean elsewhere.
    if entry.lane == "messages" and entry.key == _ROLES.get(symbol):
        return True
    if entry.lane == "requests" and symbol == "r":
        return True
    if entry.lane == "user" and isinstance(meaning, Action):
        return entry.value == str(meaning)
    if callable(meaning):
        return bool(meaning(entry.value))
    if entry.lane == "calls" and meaning == symbol:
        return entry.value == symbol or entry.value.partition("(")[0] == symbol
    return entry.value == text_of(meaning)


def text_of(meaning: Any) -> str:
    """The text by which a legend's meaning shows on a lane."""
    match meaning:
        case Action():
            return meaning.text
        case Say() | Think():
            return "".join(meaning.chunks)
        case Call():
            return call_text(meaning.name, dict(meaning.arguments))
        case ToolCall():
            return call_text(meaning.name, meaning.arguments)
        case TextContent() | ToolResult():
            return meaning.text
        case ThinkingContent():
            return meaning.thinking
        case ImageContent():
            return ""
        case AssistantMessage():
            return meaning.text
        case _:
            return str(meaning)


def _meant(wanted: Wanted) -> str:
    if wanted.meaning == wanted.symbol:
        return repr(wanted.symbol)
    return f"{wanted.symbol!r} ({shortened(text_of(wanted.meaning), 60)!r})"


# --- drawing -----------------------------------------------------------------------------------------------


class Symbols:
    """Symbols for what happened: those of the legend where they fit, else new letters."""

    def __init__(self, legend: Legend) -> None:
        self._legend = {
            symbol: text_of(meaning) for symbol, meaning in legend.items() if not callable(meaning)
        }
        self._by_text: dict[str, str] = {}
        self.shown: dict[str, str] = {}
        for symbol, text in self._legend.items():
            self._by_text.setdefault(text, symbol)
        self._free = (letter for letter in "αβγδεζηθικλμνξοπρστυφχψωΓΔΘΛΞΠΣΦΨΩ" * 100)

    def of(self, entry: Entry, wanted: Sequence[Wanted] = ()) -> str:
        """The symbol of ``entry``; that of an expectation it fits, where there is one."""
        if entry.kind != "value":
            return _SIGN_OF[entry.kind]
        for each in wanted:
            if matches(each, entry):
                if each.meaning != each.symbol:
                    self.shown[each.symbol] = self._legend.get(each.symbol, entry.value)
                return each.symbol
        if entry.lane == "messages":
            return entry.key[0]
        if entry.value.isalnum() and len(entry.value) <= 2:
            return entry.value
        if entry.value not in self._by_text:
            self._by_text[entry.value] = next(self._free)
        symbol = self._by_text[entry.value]
        self.shown[symbol] = entry.value
        return symbol

    def want(self, wanted: Wanted) -> str:
        """The symbol of an expectation."""
        if wanted.meaning != wanted.symbol and not callable(wanted.meaning):
            self.shown[wanted.symbol] = text_of(wanted.meaning)
        return wanted.symbol

    def legend(self) -> dict[str, str]:
        """What the symbols used stand for."""
        return {symbol: repr(shortened(text)) for symbol, text in self.shown.items()}


def failure_text(
    found: Difference, wanted: Sequence[Wanted], happened: Sequence[Happened], record: Record, legend: Legend
) -> str:
    """Expected and actual lane under each other, the difference marked, the legend, and that instant in words."""
    symbols = Symbols(legend)
    expected = Lane("expected", [Mark(each.time, symbols.want(each)) for each in wanted])
    actual = Lane("actual", [Mark(each.time, symbols.of(each.entry, wanted)) for each in happened])
    picture = drawn(Lanes([expected, actual], symbols.legend()), note=("actual", found.time))
    there = record.at(found.time)
    then = "\n".join(f"  {words}" for words in there) if there else "  nothing at all"
    when = seconds_text(found.time)
    return f"lane {found.lane!r} differs: {found.words}\n\n{picture}\n\nat {when} happened:\n{then}"


def whole_picture(record: Record, legend: Legend, lane_filter: Callable[[str], bool] = lambda _: True) -> str:
    """Everything that happened, drawn."""
    symbols = Symbols(legend)
    lanes = [
        Lane(name, [Mark(each.time, symbols.of(each.entry)) for each in record.lane(name)])
        for name in record.names()
        if lane_filter(name)
    ]
    return drawn(Lanes(lanes, symbols.legend()))
