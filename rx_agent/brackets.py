"""The fold of a run's events that knows what is open, and the one function that closes it.

Run, turn, message and tool execution are brackets. Whatever ends a run or a turn early (an abort, a disposal, an
interrupting steering message, a broken hook) asks :func:`closing_events` for the events that are missing; nothing
else in this package tidies up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rx_agent.events import (
    AgentEndEvent,
    AgentEvent,
    AgentStartEvent,
    EndReason,
    MessageEndEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    ToolExecutionEndEvent,
    ToolExecutionStartEvent,
    ToolExecutionUpdateEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from rx_agent.messages import (
    AgentMessage,
    AssistantMessage,
    ToolCall,
    ToolResult,
    ToolResultMessage,
)
from rx_agent.models import Model
from rx_agent.sequences import AppendOnly

NEVER_STARTED = "Operation aborted before this tool was started: it did not run and had no effect."
INTERRUPTED = (
    "Operation aborted while this tool was running: it was interrupted, its result is lost, and it may have had "
    "effects."
)
NOT_TAKEN_OVER = (
    "Operation aborted after this tool had run to its end: its effects stand, but its result was lost."
)


@dataclass(slots=True)
class CallProgress:
    """One tool call of the turn on its way to its one result."""

    call: ToolCall
    started: bool = False
    running: bool = False
    """Its body has been entered (the hook before it is through)."""
    finished: bool = False
    """Its body has ended (the hook after it is not through)."""
    result: ToolResult | None = None
    is_error: bool = False
    message: ToolResultMessage | None = None
    reported: bool = False

    def result_message(self, timestamp: int) -> ToolResultMessage:
        """The message that tells the model the result."""
        result = self.result or ToolResult()
        return ToolResultMessage(
            tool_call_id=self.call.id,
            tool_name=self.call.name,
            content=result.content,
            details=result.details,
            usage=result.usage,
            is_error=self.is_error,
            timestamp=timestamp,
        )


@dataclass(slots=True)
class TurnScope:
    """One turn's own mark that it has been ended early.

    Its generators may still be on the stack when the next turn already runs (an interruption out of a listener),
    so the mark is the turn's, not the run's.
    """

    cut: bool = False


@dataclass(slots=True)
class Brackets:
    """What a run has said so far and what of it is still open. ``see`` folds one event in, O(1)."""

    context: AppendOnly[AgentMessage]
    """The transcript as the next request sees it."""
    undelivered: list[AgentMessage] = field(default_factory=list[AgentMessage])
    """Messages that this run has taken on (prompts, drained queues) and not announced yet."""
    new_messages: AppendOnly[AgentMessage] = field(default_factory=AppendOnly[AgentMessage])
    run_open: bool = False
    turn_open: bool = False
    open_message: MessageStartEvent | MessageUpdateEvent | None = None
    assistant: AssistantMessage | None = None
    """The answer of the turn, once whole."""
    calls: list[CallProgress] = field(default_factory=list[CallProgress])
    sequential: bool = False
    """Each result message directly follows its call, instead of all of them the whole batch."""
    is_sequential: Callable[[AssistantMessage], bool] = lambda _: False
    """Whether that holds for the calls of an answer."""
    _by_id: dict[str, list[CallProgress]] = field(default_factory=dict[str, list[CallProgress]])
    _streaming: bool = False

    @property
    def tool_results(self) -> tuple[ToolResultMessage, ...]:
        """The turn's result messages so far, in source order."""
        return tuple(call.message for call in self.calls if call.message is not None)

    def see(self, event: AgentEvent) -> None:
        """Folds ``event`` in."""
        match event:
            case MessageUpdateEvent():
                self.open_message = event
            case MessageStartEvent():
                self.open_message = event
                self._streaming = is_streaming(event.message)
            case MessageEndEvent():
                self._message_ended(event.message)
            case ToolExecutionStartEvent():
                self._next(event.tool_call_id, "started").started = True
            case ToolExecutionEndEvent():
                call = self._next(event.tool_call_id, "result")
                call.result, call.is_error = event.result, event.is_error
            case TurnStartEvent():
                self.turn_open = True
                self.assistant = None
                self.calls = []
                self._by_id = {}
                self.sequential = False
            case TurnEndEvent():
                self.turn_open = False
            case AgentStartEvent():
                self.run_open = True
            case AgentEndEvent():
                self.run_open = False
            case ToolExecutionUpdateEvent():
                pass

    def _message_ended(self, message: AgentMessage) -> None:
        self.open_message = None
        self.context = self.context.plus(message)
        self.new_messages = self.new_messages.plus(message)
        if self.undelivered and self.undelivered[0] is message:
            del self.undelivered[0]
        elif isinstance(message, AssistantMessage):
            self.assistant = message
            if message.stop_reason not in ("error", "aborted"):
                self.calls = [CallProgress(call) for call in message.tool_calls]
                self.sequential = bool(self.calls) and self.is_sequential(message)
                for call in self.calls:
                    self._by_id.setdefault(call.call.id, []).append(call)
        elif isinstance(message, ToolResultMessage) and message.tool_call_id in self._by_id:
            call = self._next(message.tool_call_id, "reported")
            call.reported, call.message = True, message

    def _next(self, call_id: str, stage: Literal["started", "result", "reported"]) -> CallProgress:
        """The first call of that id that has not reached ``stage`` (ids may repeat in a careless model's answer)."""
        calls = self._by_id[call_id]
        return next((call for call in calls if not getattr(call, stage)), calls[-1])


def is_streaming(message: AgentMessage) -> bool:
    """Whether this is an assistant message that is still arriving."""
    return isinstance(message, AssistantMessage) and message.stop_reason is None


@dataclass(frozen=True, slots=True)
class Cut:
    """Why something ends early. ``message`` becomes the ``error_message`` of the assistant message that was cut."""

    kind: Literal["aborted", "interrupted", "error"]
    message: str


ABORTED = Cut("aborted", "Request was aborted")
INTERRUPTED_BY_STEERING = Cut("interrupted", "Request was interrupted by a steering message")

Scope: TypeAlias = Literal["turn", "run"]


def closing_events(
    open_: Brackets, cut: Cut, *, scope: Scope, model: Model, timestamp: int
) -> list[AgentEvent]:
    """The events that close what is open in ``open_``, inside out, up to the turn or the run. Pure.

    A message that streams ends with what came. Each call of the turn that lacks a result gets an error saying
    truthfully whether it ran. A turn without an answer, and a run that breaks between two turns, get an
    assistant message that carries the reason. Messages the run has taken on are delivered, so none is lost.
    """
    closing = _Closing(open_, cut, model, timestamp)
    if scope == "run" and open_.run_open:
        closing.deliver()
    if closing.turn_open:
        closing.close_turn()
    if scope == "run" and open_.run_open:
        closing.close_run()
    return closing.events


class _Closing:
    """One closing under construction: the events so far, and what they have changed."""

    def __init__(self, open_: Brackets, cut: Cut, model: Model, timestamp: int) -> None:
        self.open = open_
        self.cut = cut
        self.model = model
        self.timestamp = timestamp
        self.events: list[AgentEvent] = []
        self.turn_open = open_.turn_open
        self.ended: list[AgentMessage] = []
        self.failed_here = False

    def say(self, message: AgentMessage) -> None:
        self.events.append(MessageStartEvent(message))
        self.end(message)

    def end(self, message: AgentMessage) -> None:
        self.events.append(MessageEndEvent(message))
        self.ended.append(message)

    def deliver(self) -> None:
        """Announces what the run has taken on; one of them may be open already."""
        waiting = list(self.open.undelivered)
        if not waiting:
            return
        if not self.turn_open:
            self.events.append(TurnStartEvent())
            self.turn_open = True
        if self.open.open_message is not None and self.open.open_message.message is waiting[0]:
            self.end(waiting.pop(0))
        for message in waiting:
            self.say(message)

    def close_turn(self) -> None:
        assistant = self.open.assistant
        if assistant is None:
            assistant = self.close_answer()
        results = self.close_calls()
        self.events.append(TurnEndEvent(assistant, results))
        self.turn_open = False

    def close_answer(self) -> AssistantMessage:
        """Ends the answer that streams, or stands in for the one that never began."""
        self.failed_here = True
        begun = self.open.open_message
        if begun is not None and is_streaming(begun.message):
            assistant = self.failed(begun.message)
            self.end(assistant)
        elif begun is not None and isinstance(begun.message, AssistantMessage) and not self.ended:
            # It failed before it streamed, and came whole.
            assistant = begun.message
            self.end(assistant)
        else:
            if begun is not None and begun.message not in self.ended:
                self.end(begun.message)
            assistant = self.failed(None)
            self.say(assistant)
        return assistant

    def failed(self, partial: AgentMessage | None) -> AssistantMessage:
        """``partial``, or an empty answer, with stop reason and reason set."""
        base = (
            partial
            if isinstance(partial, AssistantMessage)
            else AssistantMessage(
                api=self.model.api,
                provider=self.model.provider,
                model=self.model.id,
                timestamp=self.timestamp,
            )
        )
        return base.model_copy(
            update={
                "stop_reason": "error" if self.cut.kind == "error" else "aborted",
                "error_message": self.cut.message,
            }
        )

    def close_calls(self) -> tuple[ToolResultMessage, ...]:
        """Gives each call its one result; in a sequential batch its message follows at once."""
        results: list[ToolResultMessage] = []
        closed: list[CallProgress] = []
        for call in self.open.calls:
            done = self.close_execution(call)
            closed.append(done)
            if self.open.sequential:
                results.append(self.close_result(done))
        if not self.open.sequential:
            results = [self.close_result(call) for call in closed]
        return tuple(results)

    def close_execution(self, call: CallProgress) -> CallProgress:
        if call.result is not None:
            return call
        if not call.started:
            self.events.append(ToolExecutionStartEvent(call.call.id, call.call.name, call.call.arguments))
        fate = NOT_TAKEN_OVER if call.finished else INTERRUPTED if call.running else NEVER_STARTED
        result = ToolResult(content=fate)
        self.events.append(ToolExecutionEndEvent(call.call.id, call.call.name, result, is_error=True))
        return CallProgress(call.call, started=True, result=result, is_error=True)

    def close_result(self, call: CallProgress) -> ToolResultMessage:
        if call.message is not None:
            return call.message
        begun = self.open.open_message
        if (
            begun is not None
            and isinstance(begun.message, ToolResultMessage)
            and begun.message.tool_call_id == call.call.id
        ):
            self.end(begun.message)
            return begun.message
        message = call.result_message(self.timestamp)
        self.say(message)
        return message

    def close_run(self) -> None:
        if self.cut.kind == "error" and not self.failed_here:
            failure = self.failed(None)
            self.events.append(TurnStartEvent())
            self.say(failure)
            self.events.append(TurnEndEvent(failure))
        reason: EndReason = "error" if self.cut.kind == "error" else "aborted"
        self.events.append(AgentEndEvent((*self.open.new_messages, *self.ended), reason))
