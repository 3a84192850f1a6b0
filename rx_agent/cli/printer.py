"""A run as text: the answer as it comes, each tool call with its progress, result and duration, then a summary."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reactivex import Observable, abc
from reactivex import operators as ops

from rx_agent.cli.output import BOLD, CYAN, DIM, GREEN, RED, Output, harmless
from rx_agent.cli.run_summary import RunSummary
from rx_agent.events import (
    AgentEndEvent,
    AgentEvent,
    AgentStartEvent,
    MessageEndEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    TextDeltaEvent,
    TextStartEvent,
    ThinkingDeltaEvent,
    ThinkingStartEvent,
    ToolExecutionEndEvent,
    ToolExecutionStartEvent,
    ToolExecutionUpdateEvent,
)
from rx_agent.messages import AssistantMessage, ToolResult, UserMessage


@dataclass(frozen=True, slots=True)
class _Signs:
    call: str = "→"
    done: str = "✓"
    failed: str = "✗"
    steered: str = "»"
    rule: str = "──"
    more: str = "…"
    dot: str = "·"


_ASCII = _Signs("->", "ok", "failed", ">>", "--", "...", "|")


@dataclass(frozen=True, slots=True)
class _Call:
    number: int
    started: datetime


class Printer:
    """Shows runs as text, plain where the output is no terminal. Durations are the scheduler's."""

    def __init__(self, output: Output, errors: Output) -> None:
        self._output = output
        self._errors = errors
        signs = _Signs()
        text = "".join(getattr(signs, name) for name in _Signs.__slots__)
        self._signs = signs if output.can_show(text) else _ASCII
        self._calls: dict[str, _Call] = {}
        self._numbered = 0
        self._in_line = False
        self._has_status = False
        self._section = ""
        self._answered = False
        self._summary = RunSummary(self._signs.dot)

    # --- a renderer ----------------------------------------------------------------------------------------

    def show(self, events: Observable[AgentEvent], scheduler: abc.SchedulerBase) -> abc.DisposableBase:
        """See :class:`~rx_agent.cli.renderer.Renderer`."""
        return events.pipe(ops.timestamp(scheduler=scheduler)).subscribe(
            lambda timed: self._on_next(timed.value, timed.timestamp), scheduler=scheduler
        )

    def note(self, text: str) -> None:
        """A line on standard error, between whatever is being printed."""
        self._new_line()
        self._errors.write(self._errors.style(harmless(text), DIM) + "\n")

    def await_input(self) -> None:
        """A prompt, where somebody sits at a terminal."""
        if self._output.is_terminal:
            self._new_line()
            self._output.write(self._output.style("> ", BOLD))

    # --- events --------------------------------------------------------------------------------------------

    def _on_next(self, event: AgentEvent, now: datetime) -> None:
        self._summary.see(event, now)
        match event:
            case AgentStartEvent():
                self._answered = False
                self._numbered = 0
                self._section = ""
                self._calls.clear()
            case MessageStartEvent(message=UserMessage() as message) if self._answered:
                self._begin("user")
                self._line(self._output.style(f"{self._signs.steered} {_one_line(message.text)}", BOLD))
            case MessageUpdateEvent():
                self._update(event)
            case MessageEndEvent(message=AssistantMessage() as message):
                self._answered = True
                self._message_end(message)
            case ToolExecutionStartEvent():
                self._begin("tools")
                self._call_start(event, now)
            case ToolExecutionUpdateEvent():
                self._call_update(event)
            case ToolExecutionEndEvent():
                self._call_end(event, now)
            case AgentEndEvent():
                self._begin("summary")
                colour = {"completed": DIM, "stopped": DIM}.get(event.reason, RED)
                self._line(self._output.style(f"{self._signs.rule} {self._summary.text()}", colour))
            case _:
                pass

    def _update(self, event: MessageUpdateEvent) -> None:
        match event.assistant_message_event:
            case TextStartEvent():
                self._begin("text")
            case ThinkingStartEvent():
                self._begin("thinking")
            case TextDeltaEvent(delta=delta):
                self._text(delta)
            case ThinkingDeltaEvent(delta=delta):
                self._text(delta, DIM)
            case _:
                pass

    def _message_end(self, message: AssistantMessage) -> None:
        self._new_line()
        if message.stop_reason == "error":
            self._line(self._output.style(_one_line(f"error: {message.error_message}", None), RED))
        elif message.stop_reason == "length":
            self._line(self._output.style("(cut off: the limit of output tokens was reached)", RED))
        elif message.stop_reason == "aborted":
            self._line(self._output.style("(aborted here)", DIM))

    # --- tool calls ----------------------------------------------------------------------------------------

    def _call_start(self, event: ToolExecutionStartEvent, now: datetime) -> None:
        self._numbered += 1
        self._calls[event.tool_call_id] = _Call(self._numbered, now)
        arguments = shown_arguments(event.args, self._signs.more)
        line = f"{self._signs.call} {self._numbered} {_one_line(event.tool_name)}({arguments})"
        self._line(self._output.style(line, CYAN))

    def _call_update(self, event: ToolExecutionUpdateEvent) -> None:
        call = self._calls.get(event.tool_call_id)
        progress = _one_line(event.partial_result.text, self._width() - 20)
        line = f"  {call.number if call else '?'} {self._signs.more} {progress}"
        if self._output.has_colours:
            self._clear_status()
            self._new_line()
            self._output.write(self._output.style(line, DIM))
            self._has_status = True
        else:
            self._line(line)

    def _call_end(self, event: ToolExecutionEndEvent, now: datetime) -> None:
        call = self._calls.pop(event.tool_call_id, None)
        sign = self._signs.failed if event.is_error else self._signs.done
        took = f" {(now - call.started).total_seconds():.2f} s" if call else ""
        head = f"{sign} {call.number if call else '?'} {_one_line(event.tool_name)}{took}"
        told = shown_result(event.result, max(30, self._width() - len(head) - 16), self._signs.more)
        styled = self._output.style(head, RED if event.is_error else GREEN)
        self._line(f"{styled}: {told}")

    # --- writing -------------------------------------------------------------------------------------------

    def _width(self) -> int:
        return shutil.get_terminal_size().columns if self._output.is_terminal else 120

    def _text(self, text: str, *codes: int) -> None:
        if not text:
            return
        self._clear_status()
        if self._output.is_terminal:
            text = harmless(text)
        self._output.write(self._output.style(text, *codes) if codes else text)
        self._in_line = not text.endswith("\n")

    def _begin(self, section: str) -> None:
        """Goes to a new line, and leaves one empty where something of another kind is to come."""
        self._new_line()
        if self._section not in ("", section):
            self._output.write("\n")
        self._section = section

    def _line(self, text: str) -> None:
        self._new_line()
        self._output.write(text + "\n")

    def _new_line(self) -> None:
        self._clear_status()
        if self._in_line:
            self._output.write("\n")
            self._in_line = False

    def _clear_status(self) -> None:
        if self._has_status:
            self._output.write("\r\x1b[K")
            self._has_status = False


def shown_arguments(args: dict[str, Any], more: str = "…") -> str:
    """A call's arguments as they would be written, long values cut.

    >>> shown_arguments({"path": "a.py", "limit": 3})
    'path="a.py", limit=3'
    """

    def written(value: Any) -> str:
        return _cut(json.dumps(value, ensure_ascii=False, default=repr), 60, more)

    return _cut(harmless(", ".join(f"{name}={written(value)}" for name, value in args.items())), 200, more)


def shown_result(result: ToolResult, width: int, more: str = "…") -> str:
    """The first line of a result and how many follow; where there is no text, how many blocks (images)."""
    lines = [line for line in result.text.splitlines() if line.strip()]
    if not lines:
        return f"({len(result.content)} without text)" if result.content else "(empty)"
    rest = f" (+{len(lines) - 1} line{'' if len(lines) == 2 else 's'})" if len(lines) > 1 else ""
    return _cut(_one_line(lines[0], None), width, more) + rest


def _one_line(text: str, width: int | None = 200) -> str:
    text = " ".join(harmless(text).split())
    return text if width is None else _cut(text, max(10, width), "…")


def _cut(text: str, width: int, more: str) -> str:
    return text if len(text) <= width else text[: width - len(more)].rstrip() + more
