"""Rx operators over event streams: ``agent.events``, a ``Run``, ``agent.ask(...)``, ``agent_loop(...)``.

All are pipeable and compose with RxPY's own:

>>> from rx_agent import Agent
>>> from rx_agent.providers.scripted import say, scripted
>>> agent = Agent(stream_function=scripted([[say("hel", "lo")]]))
>>> agent.ask("hi").pipe(text_deltas()).subscribe(print).dispose()
hel
lo
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from reactivex import Observable
from reactivex import operators as ops

from rx_agent.errors import RunFailedError
from rx_agent.events import (
    AgentEndEvent,
    AgentEvent,
    AgentStartEvent,
    MessageEndEvent,
    MessageUpdateEvent,
    TextDeltaEvent,
    ThinkingDeltaEvent,
    ToolExecutionEndEvent,
    ToolExecutionStartEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from rx_agent.messages import AgentMessage, AssistantMessage, ToolResult
from rx_agent.models import Usage

T = TypeVar("T")
EventOperator: TypeAlias = Callable[[Observable[AgentEvent]], Observable[T]]


def events_of(kind: type[T]) -> EventOperator[T]:
    """Only the events of one class: ``agent.events.pipe(events_of(TurnEndEvent))``."""
    return lambda source: source.pipe(ops.filter(lambda event: isinstance(event, kind)))  # pyright: ignore[reportReturnType]


def _updates() -> EventOperator[Any]:
    return lambda source: source.pipe(
        events_of(MessageUpdateEvent), ops.map(lambda event: event.assistant_message_event)
    )


def text_deltas() -> EventOperator[str]:
    """The pieces of the answer's text as they come."""
    return lambda source: source.pipe(
        _updates(),
        ops.filter(lambda update: isinstance(update, TextDeltaEvent)),
        ops.map(lambda update: update.delta),
    )


def thinking_deltas() -> EventOperator[str]:
    """The pieces of the model's thinking as they come."""
    return lambda source: source.pipe(
        _updates(),
        ops.filter(lambda update: isinstance(update, ThinkingDeltaEvent)),
        ops.map(lambda update: update.delta),
    )


def messages() -> EventOperator[AgentMessage]:
    """Each message once it is whole: prompts, answers, tool results, delivered steering."""
    return lambda source: source.pipe(events_of(MessageEndEvent), ops.map(lambda event: event.message))


def answers() -> EventOperator[str]:
    """The text of each turn's whole answer that ends without a tool call, an error or an abort.

    So one item per question that was answered, follow-ups and steering included.
    """

    def is_answer(message: AssistantMessage) -> bool:
        return message.stop_reason in ("stop", "length") and not message.tool_calls

    return lambda source: source.pipe(
        events_of(TurnEndEvent),
        ops.map(lambda event: event.message),
        ops.filter(is_answer),
        ops.map(lambda message: message.text),
    )


@dataclass(frozen=True, slots=True)
class ExecutedToolCall:
    """A tool call together with what came of it."""

    tool_call_id: str
    tool_name: str
    args: dict[str, Any]
    result: ToolResult
    is_error: bool


def tool_calls() -> EventOperator[ExecutedToolCall]:
    """Each tool call with its result, as tools finish: starts and ends paired by call id."""

    def is_end(event: Any) -> bool:
        return isinstance(event, ToolExecutionEndEvent)

    def pair(events: tuple[Any, Any]) -> ExecutedToolCall:
        start, end = events
        return ExecutedToolCall(start.tool_call_id, start.tool_name, start.args, end.result, end.is_error)

    def call_id(event: Any) -> str:
        return event.tool_call_id

    def until_end(call: Observable[Any]) -> Observable[Any]:
        return call.pipe(ops.filter(is_end))

    def paired(call: Observable[Any]) -> Observable[ExecutedToolCall]:
        return call.pipe(ops.pairwise(), ops.map(pair))

    def is_execution(event: AgentEvent) -> bool:
        return isinstance(event, ToolExecutionStartEvent | ToolExecutionEndEvent)

    return lambda source: source.pipe(
        ops.filter(is_execution), ops.group_by_until(call_id, None, until_end), ops.flat_map(paired)
    )


def usage_totals() -> EventOperator[Usage]:
    """The usage summed up so far, after each answer (tools' own usage included as their results come)."""

    def used(message: AgentMessage) -> list[Usage]:
        usage = getattr(message, "usage", None)
        return [] if usage is None else [usage]

    def add(total: Usage, usage: list[Usage]) -> Usage:
        return sum(usage, total)

    return lambda source: source.pipe(messages(), ops.map(used), ops.filter(bool), ops.scan(add, Usage()))


def turns() -> EventOperator[Observable[AgentEvent]]:
    """Each turn as an observable of its events, ``turn_start`` and ``turn_end`` included.

    ``agent.events.pipe(turns(), ops.flat_map(lambda turn: turn.pipe(ops.count())))``
    """

    def count(last: tuple[int, Any], event: AgentEvent) -> tuple[int, Any]:
        return last[0] + isinstance(event, TurnStartEvent), event

    def in_a_turn(numbered: tuple[int, Any]) -> bool:
        return not isinstance(numbered[1], AgentStartEvent | AgentEndEvent)

    def number(numbered: tuple[int, Any]) -> int:
        return numbered[0]

    def event(numbered: tuple[int, Any]) -> AgentEvent:
        return numbered[1]

    def until_end(turn: Observable[Any]) -> Observable[Any]:
        return turn.pipe(events_of(TurnEndEvent))

    return lambda source: source.pipe(
        ops.scan(count, (0, None)),
        ops.filter(in_a_turn),
        ops.group_by_until(number, event, until_end),
    )


def raise_on_error() -> EventOperator[AgentEvent]:
    """Passes events on; the ``agent_end`` of an error or an abort becomes ``on_error(RunFailedError)``.

    So ``retry``, ``catch`` and fallbacks apply. A retried ``agent.ask`` puts its question into the transcript
    again; ask a fork to keep each try apart: ``reactivex.defer(lambda _: agent.fork().ask("...")).pipe(
    raise_on_error(), ops.retry(3))``.
    """

    def check(event: AgentEvent) -> AgentEvent:
        if isinstance(event, AgentEndEvent) and event.reason in ("error", "aborted"):
            raise RunFailedError(event.error_message or f"the run was {event.reason}", reason=event.reason)
        return event

    return ops.map(check)


def until_idle() -> EventOperator[AgentEvent]:
    """Passes events on and completes with the run's ``agent_end``: makes ``agent.events`` finite."""
    return ops.take_while(lambda event: not isinstance(event, AgentEndEvent), inclusive=True)
