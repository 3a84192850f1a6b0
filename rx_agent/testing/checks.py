"""What must hold of every run, as checks that a user can put on an agent in one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rx_agent.agent import Agent
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
from rx_agent.state import AgentState, reduce
from rx_agent.timeline import message_text, shortened


def assert_transcript_valid(messages: Sequence[AgentMessage]) -> None:
    """Each call of an answer that was whole has exactly one result, right behind it and in source order.

    Raises ``AssertionError`` naming the first message that breaks this.

    >>> from rx_agent.messages import ToolCall
    >>> assert_transcript_valid([AssistantMessage(content=ToolCall(id="1", name="f"), stop_reason="tool_use")])
    Traceback (most recent call last):
    ...
    AssertionError: message 0 (assistant: 'f()'): its call '1' has no result
    """
    asked: tuple[int, list[str]] = (0, [])
    for place, message in enumerate(messages):
        where = f"message {place} ({message.role}: {shortened(message_text(message))!r})"
        if isinstance(message, ToolResultMessage):
            if not asked[1] or message.tool_call_id != asked[1][0]:
                wanted = f"the result of {asked[1][0]!r} is due" if asked[1] else "no call waits for a result"
                raise AssertionError(f"{where}: a result of call {message.tool_call_id!r}, where {wanted}")
            asked[1].pop(0)
            continue
        _all_answered(messages, asked)
        if isinstance(message, AssistantMessage):
            if message.stop_reason is None:
                raise AssertionError(f"{where}: it still streams")
            if message.stop_reason not in ("error", "aborted"):
                asked = place, [call.id for call in message.tool_calls]
    _all_answered(messages, asked)


def _all_answered(messages: Sequence[AgentMessage], asked: tuple[int, list[str]]) -> None:
    place, missing = asked
    if missing:
        said = shortened(message_text(messages[place]))
        raise AssertionError(
            f"message {place} ({messages[place].role}: {said!r}): its call {missing[0]!r} has no result"
        )


class Brackets:
    """Follows events and raises ``AssertionError`` at the first that breaks the nesting.

    Run, turn, message and tool executions nest; each call that starts ends once; a turn ends with the results of its
    answer's calls in source order; nothing comes outside of a run.
    """

    def __init__(self) -> None:
        self.open: list[str] = []
        self.seen = 0
        self._running: dict[str, int] = {}
        self._results: list[ToolResultMessage] = []

    def see(self, event: AgentEvent) -> None:
        """Checks the next event."""
        self.seen += 1
        match event:
            case AgentStartEvent():
                self._expect(event, [])
                self.open.append("run")
            case TurnStartEvent():
                self._expect(event, ["run"])
                self.open.append("turn")
                self._results = []
            case MessageStartEvent(message):
                self._expect(event, ["run", "turn"])
                self.open.append(f"{message.role} message")
            case MessageUpdateEvent():
                self._expect(event, ["run", "turn", "assistant message"])
            case MessageEndEvent(message):
                self._expect(event, ["run", "turn", f"{message.role} message"])
                self.open.pop()
                if isinstance(message, ToolResultMessage):
                    self._results.append(message)
            case ToolExecutionStartEvent():
                self._expect(event, ["run", "turn"])
                self._running[event.tool_call_id] = self._running.get(event.tool_call_id, 0) + 1
            case ToolExecutionUpdateEvent() | ToolExecutionEndEvent():
                self._runs(event)
            case TurnEndEvent():
                self._expect(event, ["run", "turn"])
                self._turn_ended(event)
                self.open.pop()
            case AgentEndEvent():
                self._expect(event, ["run"])
                self.open.pop()

    def _expect(self, event: AgentEvent, open_: list[str]) -> None:
        if self.open != open_:
            inside = " in ".join(reversed(self.open)) or "nothing"
            raise AssertionError(f"event {self.seen} ({event.type}) came inside {inside}")

    def _runs(self, event: ToolExecutionUpdateEvent | ToolExecutionEndEvent) -> None:
        if not self._running.get(event.tool_call_id):
            raise AssertionError(
                f"event {self.seen} ({event.type}): call {event.tool_call_id!r} does not run"
            )
        if isinstance(event, ToolExecutionEndEvent):
            self._running[event.tool_call_id] -= 1

    def _turn_ended(self, event: TurnEndEvent) -> None:
        still = [call for call, count in self._running.items() if count]
        if still:
            raise AssertionError(f"event {self.seen} (turn_end): call {still[0]!r} still runs")
        self._running = {}
        failed = event.message.stop_reason in ("error", "aborted")
        asked = [] if failed else [call.id for call in event.message.tool_calls]
        for what, results in (("names", event.tool_results), ("had", self._results)):
            given = [result.tool_call_id for result in results]
            if given != asked:
                raise AssertionError(
                    f"event {self.seen} (turn_end) {what} results of {given}; its answer called {asked}"
                )

    def at_rest(self) -> None:
        """After the last event: nothing is open."""
        if self.open:
            raise AssertionError(f"still open at the end: {' in '.join(reversed(self.open))}")


def assert_brackets(events: Iterable[AgentEvent]) -> None:
    """``events`` of whole runs nest as they must. Raises ``AssertionError`` naming the first that does not.

    >>> assert_brackets([AgentStartEvent(), AgentEndEvent(())])
    """
    brackets = Brackets()
    for event in events:
        brackets.see(event)
    brackets.at_rest()


def assert_state_is_fold(before: AgentState, events: Iterable[AgentEvent], after: AgentState) -> None:
    """``after`` is what folding ``events`` over ``before`` gives. Raises ``AssertionError`` naming the fields."""
    folded = before
    for event in events:
        folded = reduce(folded, event)
    _same_state(folded, after)


def _same_state(folded: AgentState, state: AgentState) -> None:
    names = ("messages", "is_streaming", "streaming_message", "pending_tool_calls", "error_message")
    for name in names:
        mine, real = getattr(folded, name), getattr(state, name)
        if mine != real:
            raise AssertionError(
                f"the state is not the fold of the events: {name} is {real!r}, folded {mine!r}"
            )


class Guard:
    """Watches an agent event by event: brackets, the fold, the end of each run, and the queues' messages.

    ``Guard(agent)`` and, when all is over, ``guard.at_rest()``. What it finds is raised by :meth:`at_rest`, since an
    exception inside a listener is only reported.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.problems: list[str] = []
        self.events: list[AgentEvent] = []
        self._brackets = Brackets()
        self._shadow = agent.state
        self._subscription = agent.events.subscribe(self._see)

    def _see(self, event: AgentEvent) -> None:
        self.events.append(event)
        if self.problems:
            return  # what follows the first problem follows from it
        try:
            self._brackets.see(event)
            self._shadow = reduce(self._shadow, event)
            _same_state(self._shadow, self.agent.state)
            if isinstance(event, AgentEndEvent):
                self._ended(event)
        except AssertionError as error:
            self.problems.append(str(error))

    def _ended(self, event: AgentEndEvent) -> None:
        new = tuple(self.agent.messages[len(self.agent.messages) - len(event.messages) :])
        if new != event.messages:
            raise AssertionError("agent_end names other messages than the run has added")
        assert_transcript_valid(self.agent.messages)

    def assigned(self) -> None:
        """Call it after assigning ``messages``, ``model`` … by hand: the fold goes on from there."""
        self._shadow = self.agent.state

    def at_rest(self) -> None:
        """Raises what was found; and checks that nothing is open and the transcript is valid."""
        self._subscription.dispose()
        if self.problems:
            raise AssertionError(self.problems[0])
        self._brackets.at_rest()
        assert_transcript_valid(self.agent.messages)
