"""What every way of showing a run has in common, and the two short ones: JSON lines and the bare answer."""

from __future__ import annotations

from typing import Protocol

from reactivex import Observable, abc
from reactivex import operators as ops

from rx_agent.cli.offline_evidence import NOTICE
from rx_agent.cli.output import Output, harmless
from rx_agent.event_json import event_to_json
from rx_agent.events import AgentEndEvent, AgentEvent
from rx_agent.operators import events_of


class Renderer(Protocol):
    """Shows runs. The text, JSON and quiet ones are here; another (a rich terminal) needs no more than this."""

    def show(self, events: Observable[AgentEvent], scheduler: abc.SchedulerBase) -> abc.DisposableBase:
        """Shows events as they come, of one run after another, until disposed. Time is the scheduler's."""
        ...

    def note(self, text: str) -> None:
        """Tells the user something that is no part of a run."""
        ...

    def await_input(self) -> None:
        """Shows that the user may type."""
        ...


class _Plain:
    """Notes go to standard error, one line each."""

    def __init__(self, output: Output, errors: Output) -> None:
        self._output = output
        self._errors = errors

    def note(self, text: str) -> None:
        """See :class:`Renderer`."""
        self._errors.write(f"{harmless(text)}\n")

    def await_input(self) -> None:
        """Nothing to show."""


class JsonLines(_Plain):
    """Each event as a line of JSON (see :mod:`rx_agent.event_json`), without partial messages."""

    def show(self, events: Observable[AgentEvent], scheduler: abc.SchedulerBase) -> abc.DisposableBase:
        """See :class:`Renderer`."""
        return events.pipe(ops.map(lambda event: event_to_json(event, partials=False))).subscribe(
            lambda line: self._output.write(line + "\n"), scheduler=scheduler
        )


class OnlyAnswer(_Plain):
    """The text of each run's answer, once it is there; why there is none goes to standard error."""

    def show(self, events: Observable[AgentEvent], scheduler: abc.SchedulerBase) -> abc.DisposableBase:
        """See :class:`Renderer`."""
        return events.pipe(events_of(AgentEndEvent)).subscribe(self._end, scheduler=scheduler)

    def _end(self, end: AgentEndEvent) -> None:
        if end.text:
            # The offline model opens by saying what it is; that goes to standard error here.
            text = end.text.removeprefix(NOTICE).lstrip("\n")
            text = harmless(text) if self._output.is_terminal else text
            self._output.write(text if text.endswith("\n") else text + "\n")
        if end.reason != "completed":
            self.note(f"rx-agent: {end.error_message or end.reason}")
