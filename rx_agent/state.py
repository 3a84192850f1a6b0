"""The agent's state: a fold of its events."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from rx_agent.events import (
    AgentEndEvent,
    AgentEvent,
    AgentStartEvent,
    MessageEndEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    ToolExecutionEndEvent,
    ToolExecutionStartEvent,
    ToolExecutionUpdateEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from rx_agent.messages import AgentMessage, AssistantMessage, ToolResultMessage
from rx_agent.models import Model, ThinkingLevel
from rx_agent.sequences import AppendOnly
from rx_agent.tools import Tool

OPERATION_ABORTED = "Operation aborted"


@dataclass(frozen=True, slots=True)
class AgentState:
    """A snapshot. The first four and ``messages`` are what the user assigns; events change the rest."""

    system_prompt: str
    model: Model
    thinking_level: ThinkingLevel = ThinkingLevel.OFF
    tools: tuple[Tool, ...] = ()
    messages: AppendOnly[AgentMessage] = field(default_factory=AppendOnly[AgentMessage])
    is_streaming: bool = False
    calls_in_progress: tuple[str, ...] = ()
    """Their ids; one that a careless model used twice stands here twice."""
    error_message: str | None = None
    streaming_event: MessageStartEvent | MessageUpdateEvent | None = field(
        default=None, repr=False, compare=False
    )

    @property
    def pending_tool_calls(self) -> frozenset[str]:
        """The ids of the calls that are being worked on."""
        return frozenset(self.calls_in_progress)

    @property
    def streaming_message(self) -> AgentMessage | None:
        """The message that is arriving, as it was at this snapshot, made when read."""
        return self.streaming_event.message if self.streaming_event else None


def all_answered(messages: AppendOnly[AgentMessage]) -> AppendOnly[AgentMessage]:
    """``messages`` up to the last answer whose calls lack results; all of them if none lacks any."""
    results: Counter[str] = Counter()
    for place in range(len(messages) - 1, -1, -1):
        match messages[place]:
            case ToolResultMessage(tool_call_id=id):
                results[id] += 1
            case AssistantMessage() as answer:
                failed = answer.stop_reason in ("error", "aborted")
                open_ = Counter(call.id for call in answer.tool_calls) - results
                return AppendOnly(messages[:place]) if open_ and not failed else messages
            case _:
                pass
    return messages


def reduce(state: AgentState, event: AgentEvent) -> AgentState:
    """The state after ``event``. Pure: folding a run's events over the state before gives the state after.

    >>> before = AgentState("", Model(id="m", api="scripted", provider="scripted"))
    >>> reduce(before, AgentStartEvent()).is_streaming
    True
    """
    match event:
        case MessageUpdateEvent() | MessageStartEvent():
            return replace(state, streaming_event=event)
        case MessageEndEvent():
            return replace(state, streaming_event=None, messages=state.messages.plus(event.message))
        case ToolExecutionStartEvent():
            return replace(state, calls_in_progress=(*state.calls_in_progress, event.tool_call_id))
        case ToolExecutionEndEvent():
            left = list(state.calls_in_progress)
            if event.tool_call_id in left:
                left.remove(event.tool_call_id)
            return replace(state, calls_in_progress=tuple(left))
        case TurnEndEvent() if event.message.error_message:
            return replace(state, error_message=event.message.error_message)
        case AgentStartEvent():
            return replace(
                state,
                is_streaming=True,
                streaming_event=None,
                calls_in_progress=(),
                error_message=None,
            )
        case AgentEndEvent():
            return replace(
                state,
                is_streaming=False,
                streaming_event=None,
                calls_in_progress=(),
                error_message=state.error_message or _cut_short(state, event),
            )
        case TurnStartEvent() | TurnEndEvent() | ToolExecutionUpdateEvent():
            return state


def _cut_short(state: AgentState, event: AgentEndEvent) -> str | None:
    """An abort that came between two requests left no failed message to say so; one that cut nothing is no error."""
    if event.reason != "aborted" or not event.messages:
        return None
    last = state.messages[-1] if state.messages else None
    answered = isinstance(last, AssistantMessage) and last.stop_reason in ("stop", "length")
    return None if answered else OPERATION_ABORTED
