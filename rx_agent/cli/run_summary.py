"""What a run came to: turns, tool calls, tokens, cost, time."""

from __future__ import annotations

from datetime import datetime

from rx_agent.events import AgentEndEvent, AgentEvent, AgentStartEvent, MessageEndEvent, TurnEndEvent
from rx_agent.messages import AssistantMessage, ToolResultMessage
from rx_agent.models import Usage


class RunSummary:
    """A fold of one run's events after another."""

    def __init__(self, dot: str = "·") -> None:
        self._dot = dot
        self._started: datetime | None = None
        self._ended: datetime | None = None
        self._clear()

    def _clear(self) -> None:
        self.turns = 0
        self.tool_calls = 0
        self.usage = Usage()
        self.reason = "completed"
        self.model = ""
        self.provider = ""

    def see(self, event: AgentEvent, now: datetime) -> None:
        """Folds ``event``, which came at ``now``."""
        match event:
            case AgentStartEvent():
                self._clear()
                self._started = now
            case TurnEndEvent():
                self.turns += 1
                self.tool_calls += len(event.tool_results)
            case MessageEndEvent(message=AssistantMessage() as message):
                self.usage += message.usage
                self.model, self.provider = message.model or self.model, message.provider or self.provider
            case MessageEndEvent(message=ToolResultMessage(usage=Usage() as usage)):
                self.usage += usage
            case AgentEndEvent():
                self.reason = event.reason
                self._ended = now
            case _:
                pass

    def text(self) -> str:
        """One line: ``completed: 3 turns · 5 tool calls · 1,234 tokens in, 56 out · $0.0012 · 2.1 s``."""
        parts = [_plural(self.turns, "turn")]
        if self.tool_calls:
            parts.append(_plural(self.tool_calls, "tool call"))
        parts += [self._tokens(), self._cost()]
        if self._started and self._ended:
            parts.append(f"{(self._ended - self._started).total_seconds():.1f} s")
        model = f" {self._dot} {self.provider}:{self.model}" if self.model else ""
        return f"{self.reason}: {f' {self._dot} '.join(parts)}{model}"

    def _tokens(self) -> str:
        usage = self.usage
        cached = f" ({usage.cache_read:,} cached)" if usage.cache_read else ""
        return (
            f"{usage.input + usage.cache_read + usage.cache_write:,} tokens in{cached}, {usage.output:,} out"
        )

    def _cost(self) -> str:
        if self.usage.cost.total:
            return f"${self.usage.cost.total:.4f}"
        # Nobody tells prices over the wire: without --prices a zero would be a lie.
        return "$0" if self.provider == "offline" or not self.usage.total_tokens else "cost unknown"


def _plural(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"
