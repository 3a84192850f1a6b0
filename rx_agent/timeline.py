"""What a run looks like in time: its events as marks on lanes, for drawings and for comparing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from rx_agent.events import (
    AgentEndEvent,
    AgentEvent,
    AgentStartEvent,
    MessageEndEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    TextDeltaEvent,
    ThinkingDeltaEvent,
    ToolCallEndEvent,
    ToolExecutionEndEvent,
    ToolExecutionStartEvent,
    ToolExecutionUpdateEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from rx_agent.messages import AgentMessage
from rx_agent.replay import Beat

START, END, STOP, FAIL = "^", "|", "!", "#"
"""Marks with a meaning of their own: begun, ended, cut short, failed."""


class Entry(NamedTuple):
    """One thing that happened on a lane. ``kind``: ``start``, ``end``, ``stop``, ``fail`` or ``value``."""

    lane: str
    kind: str
    value: str = ""
    key: str = ""
    """What it belongs to, where a lane shows several at once: a tool call's id, a block's index."""


_KINDS = {"start": START, "end": END, "stop": STOP, "fail": FAIL}
_ENDS = {"completed": "end", "stopped": "end", "aborted": "stop", "error": "fail"}


def entries_of(event: AgentEvent) -> Iterator[Entry]:
    """What ``event`` shows on the lanes ``run``, ``turns``, ``messages``, ``thinking``, ``text``, ``calls`` and one
    for each tool, named like it.
    """
    match event:
        case MessageUpdateEvent(TextDeltaEvent() as update):
            yield Entry("text", "value", update.delta, str(update.content_index))
        case MessageUpdateEvent(ThinkingDeltaEvent() as update):
            yield Entry("thinking", "value", update.delta, str(update.content_index))
        case MessageUpdateEvent(ToolCallEndEvent(tool_call=call)):
            yield Entry("calls", "value", call_text(call.name, call.arguments), call.id)
        case MessageEndEvent(message):
            yield Entry("messages", "value", message_text(message), message.role)
        case ToolExecutionStartEvent():
            yield Entry(event.tool_name, "start", call_text("", event.args), event.tool_call_id)
        case ToolExecutionUpdateEvent():
            yield Entry(event.tool_name, "value", event.partial_result.text, event.tool_call_id)
        case ToolExecutionEndEvent():
            kind = "fail" if event.is_error else "value"
            yield Entry(event.tool_name, kind, event.result.text, event.tool_call_id)
        case TurnStartEvent():
            yield Entry("turns", "start")
        case TurnEndEvent():
            yield Entry("turns", "end")
        case AgentStartEvent():
            yield Entry("run", "start")
        case AgentEndEvent():
            yield Entry("run", _ENDS[event.reason], event.reason)
        case MessageUpdateEvent() | MessageStartEvent():
            pass


def call_text(name: str, arguments: dict[str, Any]) -> str:
    """A tool call as ``name(key=value, …)``."""
    shown = ", ".join(
        f"{key}={json.dumps(value, ensure_ascii=False, default=repr)}" for key, value in arguments.items()
    )
    return f"{name}({shown})"


def message_text(message: AgentMessage) -> str:
    """A message in words: its text, or its calls, or why it failed."""
    text = str(getattr(message, "text", "") or "")
    calls = [call_text(call.name, call.arguments) for call in getattr(message, "tool_calls", ())]
    failed = getattr(message, "error_message", None)
    return " ".join([*([text] if text else []), *calls, *([f"({failed})"] if failed else [])])


# --- lanes of marks ----------------------------------------------------------------------------------------


class Mark(NamedTuple):
    """A mark at a time (seconds)."""

    time: float
    symbol: str


@dataclass(slots=True)
class Lane:
    """A named row of marks, in order of time."""

    name: str
    marks: list[Mark] = field(default_factory=list[Mark])


@dataclass(slots=True)
class Lanes:
    """Lanes on one time axis, and what their symbols stand for."""

    lanes: list[Lane] = field(default_factory=list[Lane])
    legend: dict[str, str] = field(default_factory=dict[str, str])


MORE = "."
"""A further piece of what the mark before it begins."""
MAIN = ("run", "turns", "messages", "thinking", "text", "calls")


def lanes_of(beats: Iterable[Beat]) -> Lanes:
    """A run's lanes. Texts get letters, explained in the legend; the further deltas of a block are dots."""
    names = symbol_names()
    given: dict[tuple[str, str], str] = {}
    lanes: dict[str, Lane] = {name: Lane(name) for name in MAIN}
    legend: dict[str, str] = {}

    def symbol(entry: Entry) -> str:
        if entry.kind != "value":
            return _KINDS[entry.kind]
        if entry.lane == "messages":
            return entry.key[0]
        text = entry.value
        if (entry.lane, text) not in given:
            given[entry.lane, text] = name = next(names)
            legend[name] = repr(shortened(text))
        return given[entry.lane, text]

    for beat in beats:
        for entry in entries_of(beat.event):
            lane = lanes.setdefault(entry.lane, Lane(entry.lane))
            lane.marks.append(Mark(beat.time, symbol(entry)))
            lane.marks.extend(Mark(time, MORE) for time in beat.times[1:])
    return Lanes([lane for lane in lanes.values() if lane.marks], legend)


def shortened(text: str, most: int = 40) -> str:
    """``text`` on one line, with its middle left out where it is longer than ``most`` characters."""
    line = " ".join(text.split()) if text.strip() != text or "\n" in text else text
    if len(line) <= most:
        return line if text.strip() else text[:most]
    return f"{line[: most // 2]} … {line[-(most // 3) :]}"


def symbol_names() -> Iterator[str]:
    """``a`` to ``z``, ``A`` to ``Z``, then ``a1``, ``b1`` …

    >>> names = symbol_names()
    >>> next(names), next(names)
    ('a', 'b')
    """
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    yield from letters
    for round_ in count(1):
        yield from (f"{letter}{round_}" for letter in letters)
