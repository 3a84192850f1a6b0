"""What a user does in a test, as meanings for a legend.

``marbles.user("p---s", p=prompt("Hi"), s=steer("Stop!"))``
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rx_agent.agent import Agent
from rx_agent.run import Run


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do to an agent; ``name`` and ``text`` say it in words."""

    name: str
    perform: Callable[[Agent], Any]
    text: str = ""

    def __str__(self) -> str:
        return f"{self.name}({self.text!r})" if self.text else f"{self.name}()"


def _said(input: Any) -> str:
    return input if isinstance(input, str) else str(getattr(input, "text", input))


def prompt(input: Any) -> Action:
    """Starts a run; see ``Agent.prompt``."""
    return Action("prompt", lambda agent: agent.prompt(input), _said(input))


def steer(input: Any, *, interrupt: bool = False) -> Action:
    """Steers; see ``Agent.steer``."""
    return Action("steer", lambda agent: agent.steer(input, interrupt=interrupt), _said(input))


def follow_up(input: Any) -> Action:
    """Queues a follow-up; see ``Agent.follow_up``."""
    return Action("follow_up", lambda agent: agent.follow_up(input), _said(input))


def continue_() -> Action:
    """Goes on; see ``Agent.continue_``."""
    return Action("continue_", lambda agent: agent.continue_())


def abort() -> Action:
    """Aborts the active run."""
    return Action("abort", lambda agent: agent.abort())


def dispose() -> Action:
    """Disposes of the active run, as whoever subscribed to it would."""

    def perform(agent: Agent) -> None:
        run: Run | None = agent.active_run
        if run is not None:
            run.dispose()

    return Action("dispose", perform)


def reset() -> Action:
    """Empties transcript and queues."""
    return Action("reset", lambda agent: agent.reset())


def do(what: Callable[[Agent], Any], name: str = "") -> Action:
    """Anything else: ``do(lambda agent: agent.clear_all_queues())``."""
    return Action(name or getattr(what, "__name__", "do"), what)
