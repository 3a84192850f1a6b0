"""What must hold of every run, checked event by event, apart from how the runtime keeps its books."""

from __future__ import annotations

from collections.abc import Sequence

from rx_agent import Agent, AgentMessage, AssistantMessage, ToolResultMessage, reduce
from rx_agent.events import AgentEvent, MessageUpdateEvent
from rx_agent.state import AgentState


class Watch:
    """Follows an agent and asserts after every event that brackets nest and the state is the events' fold."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.shadow: AgentState = agent.state
        self.events: list[AgentEvent] = []
        self.open: list[str] = []
        self.running: dict[str, int] = {}
        self.runs_ended = 0
        agent.subscribe(self.see)

    def see(self, event: AgentEvent) -> None:
        self.events.append(event)
        self._brackets(event)
        self.shadow = reduce(self.shadow, event)
        assert self.agent.state == self.shadow, "the state is not the fold of the events"
        assert set(self.agent.state.pending_tool_calls) == {call for call, n in self.running.items() if n}
        assert self.agent.state.is_streaming == bool(self.open)
        assert self.agent.state.streaming_message == self.shadow.streaming_message

    def assigned(self) -> None:
        """The user has assigned something: take the fold up from here."""
        self.shadow = self.agent.state

    def _brackets(self, event: AgentEvent) -> None:
        match event.type:
            case "agent_start":
                assert self.open == []
                self.open = ["run"]
            case "turn_start":
                assert self.open == ["run"]
                self.open.append("turn")
            case "message_start":
                assert self.open == ["run", "turn"]
                self.open.append(f"message {event.message.role}")
            case "message_update":
                assert isinstance(event, MessageUpdateEvent)
                assert self.open == ["run", "turn", "message assistant"]
            case "message_end":
                assert self.open == ["run", "turn", f"message {event.message.role}"]
                self.open.pop()
            case "tool_execution_start":
                assert self.open == ["run", "turn"]
                self.running[event.tool_call_id] = self.running.get(event.tool_call_id, 0) + 1
            case "tool_execution_update":
                assert self.running.get(event.tool_call_id), "progress of a tool that does not run"
            case "tool_execution_end":
                assert self.running.get(event.tool_call_id), "the end of a tool that does not run"
                self.running[event.tool_call_id] -= 1
            case "turn_end":
                assert self.open == ["run", "turn"]
                assert not any(self.running.values()), "a turn ended while a tool runs"
                self.running = {}
                answered = [call.id for call in event.message.tool_calls]
                if event.message.stop_reason in ("error", "aborted"):
                    answered = []
                assert [result.tool_call_id for result in event.tool_results] == answered
                self.open.pop()
            case "agent_end":
                assert self.open == ["run"], self.open
                self.open = []
                self.runs_ended += 1
                new = self.agent.messages[len(self.agent.messages) - len(event.messages) :]
                assert tuple(new) == event.messages, "agent_end names other messages than were added"

    def at_rest(self) -> None:
        """After a run: everything closed, the transcript valid."""
        assert self.open == []
        assert not self.agent.state.is_streaming
        assert self.agent.state.pending_tool_calls == frozenset()
        assert_transcript_valid(self.agent.messages)


def assert_transcript_valid(messages: Sequence[AgentMessage]) -> None:
    """Each call of an answer that was whole has exactly one result, right behind it and in source order."""
    expected: list[str] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            assert expected, f"a result without a call: {message.tool_call_id}"
            assert message.tool_call_id == expected.pop(0)
            continue
        assert expected == [], f"calls without a result: {expected}"
        if isinstance(message, AssistantMessage) and message.stop_reason not in ("error", "aborted"):
            assert message.stop_reason is not None, "a streaming message in the transcript"
            expected = [call.id for call in message.tool_calls]
    assert expected == [], f"calls without a result: {expected}"
