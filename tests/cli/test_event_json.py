"""Events as JSON lines: whatever a run can say survives the way to text and back."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rx_agent import events as ev
from rx_agent.event_json import event_from_json, event_to_json
from rx_agent.message_builder import MessageBuilder
from rx_agent.messages import (
    AgentMessage,
    AssistantMessage,
    BashExecutionMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    UserMessage,
)
from rx_agent.models import Usage

# Every code point, lone surrogates included: text that comes out of a model or a file can hold them.
text = st.text(st.characters(codec=None, exclude_categories=()), max_size=12)
names = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
arguments = st.dictionaries(text, json_values, max_size=3)
counts = st.integers(0, 10**9)

text_blocks = st.builds(TextContent, text=text, signature=st.none() | text)
images = st.builds(ImageContent, data=names, mime_type=st.just("image/png"))
thoughts = st.builds(ThinkingContent, thinking=text, signature=st.none() | text, redacted=st.booleans())
calls = st.builds(
    ToolCall,
    id=text,
    name=names,
    arguments=arguments,
    invalid_arguments=st.none() | text,
    signature=st.none() | text,
)
user_blocks = st.lists(text_blocks | images, max_size=3).map(tuple)
usages = st.builds(Usage, input=counts, output=counts, cache_read=counts, reasoning=counts)

users = st.builds(UserMessage, content=user_blocks, timestamp=counts)
assistants = st.builds(
    AssistantMessage,
    content=st.lists(text_blocks | thoughts | calls, max_size=3).map(tuple),
    model=text,
    usage=usages,
    stop_reason=st.sampled_from([None, "stop", "length", "tool_use", "error", "aborted"]),
    error_message=st.none() | text,
    error_kind=st.sampled_from([None, "network", "auth"]),
    response_id=st.none() | text,
    timestamp=counts,
)
results = st.builds(
    ToolResult,
    content=user_blocks,
    details=json_values,
    usage=st.none() | usages,
    terminate=st.none() | st.booleans(),
)
result_messages = st.builds(
    ToolResultMessage,
    tool_call_id=text,
    tool_name=names,
    content=user_blocks,
    details=json_values,
    usage=st.none() | usages,
    is_error=st.booleans(),
    timestamp=counts,
)
customs = st.builds(
    BashExecutionMessage, command=text, output=text, exit_code=st.none() | st.integers(0, 255)
)
messages: st.SearchStrategy[AgentMessage] = st.one_of(users, assistants, result_messages, customs)


class Stored:
    """A partial message that is what it is at every position."""

    def __init__(self, message: AssistantMessage) -> None:
        self.message = message

    def message_at(self, position: int) -> AssistantMessage:
        return self.message


sources = assistants.map(Stored)
indexes, positions = st.integers(0, 99), st.integers(0, 99)
updates = st.one_of(
    *(
        st.builds(kind, indexes, sources, positions)
        for kind in (ev.TextStartEvent, ev.ThinkingStartEvent, ev.ToolCallStartEvent)
    ),
    *(
        st.builds(kind, indexes, sources, positions, text)
        for kind in (
            ev.TextDeltaEvent,
            ev.ThinkingDeltaEvent,
            ev.ToolCallDeltaEvent,
            ev.TextEndEvent,
            ev.ThinkingEndEvent,
        )
    ),
    st.builds(ev.ToolCallEndEvent, indexes, sources, positions, calls),
)
agent_events: st.SearchStrategy[ev.AgentEvent] = st.one_of(
    st.just(ev.AgentStartEvent()),
    st.just(ev.TurnStartEvent()),
    st.builds(
        ev.AgentEndEvent,
        st.lists(messages, max_size=3).map(tuple),
        st.sampled_from(["completed", "stopped", "aborted", "error"]),
    ),
    st.builds(ev.TurnEndEvent, assistants, st.lists(result_messages, max_size=2).map(tuple)),
    st.builds(ev.MessageStartEvent, messages),
    st.builds(ev.MessageUpdateEvent, updates),
    st.builds(ev.MessageEndEvent, messages),
    st.builds(ev.ToolExecutionStartEvent, text, names, arguments),
    st.builds(ev.ToolExecutionUpdateEvent, text, names, arguments, results),
    st.builds(ev.ToolExecutionEndEvent, text, names, results, st.booleans()),
)


@settings(max_examples=250, deadline=None)
@given(agent_events)
def test_every_event_comes_back_as_it_was(event: ev.AgentEvent) -> None:
    line = event_to_json(event)
    assert line.isascii()
    assert "\n" not in line
    again = event_from_json(line)
    assert again == event
    assert type(again) is type(event)
    if isinstance(event, ev.MessageUpdateEvent):
        assert isinstance(again, ev.MessageUpdateEvent)
        assert again.message == event.message
        assert again.assistant_message_event.partial == event.message
    assert event_to_json(again) == line


@settings(max_examples=80, deadline=None)
@given(agent_events)
def test_without_partials_all_but_the_partial_message_comes_back(event: ev.AgentEvent) -> None:
    again = event_from_json(event_to_json(event, partials=False))
    assert again == event
    if isinstance(again, ev.MessageUpdateEvent):
        with pytest.raises(ValueError, match="partials=False"):
            _ = again.message


def test_the_lines_of_a_long_answer_grow_with_its_text_not_with_its_square() -> None:
    def size(deltas: int) -> int:
        builder = MessageBuilder()
        index = builder.text_start().content_index
        lines = [
            event_to_json(ev.MessageUpdateEvent(builder.text_delta(index, "word ")), partials=False)
            for _ in range(deltas)
        ]
        return sum(map(len, lines))

    assert size(2_000) == 2 * size(1_000)


def test_a_provider_event_is_nested_under_its_own_type() -> None:
    builder = MessageBuilder()
    builder.text_start()
    data = json.loads(event_to_json(ev.MessageUpdateEvent(builder.text_delta(0, "hel"))))
    assert data["type"] == "message_update"
    assert data["assistant_message_event"] == {"type": "text_delta", "content_index": 0, "delta": "hel"}
    assert data["message"]["content"] == [{"type": "text", "text": "hel"}]


class Opaque:
    def __repr__(self) -> str:
        return "<opaque>"


def looped() -> dict[str, Any]:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    return loop


@pytest.mark.parametrize(
    ("details", "written"),
    [
        ({"ratio": float("nan")}, {"ratio": None}),
        ({(1, 2): 3}, {"(1, 2)": 3}),
        (Opaque(), "<opaque>"),
        (b"\xff\xfe", "__4="),
        ({"name": "\ud800", "raw": {1.5}}, {"name": "\ud800", "raw": [1.5]}),
    ],
)
def test_details_that_json_lacks_are_written_as_best_they_can(details: Any, written: Any) -> None:
    event = ev.ToolExecutionEndEvent("call_1", "odd", ToolResult(content="x", details=details))
    assert json.loads(event_to_json(event))["result"]["details"] == written


def test_details_that_contain_themselves_end_somewhere() -> None:
    event = ev.ToolExecutionEndEvent("call_1", "odd", ToolResult(content="x", details=looped()))
    data = json.loads(event_to_json(event))
    assert data["result"]["content"] == [{"type": "text", "text": "x"}]
    assert "again" in data["result"]["details"]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("[]", "an event is a JSON object, not list"),
        ('{"type": "agent_strat"}', "'agent_strat' is no agent event; known are agent_start"),
        ('{"type": "tool_execution_start", "tool_name": "add"}', "the field 'tool_call_id' is missing"),
        (
            '{"type": "message_update", "assistant_message_event": {"type": "done"}}',
            "'done' is no block event",
        ),
        ('{"type": "message_update", "assistant_message_event": "hi"}', "a field is of the wrong kind"),
        ('{"type": "message_end", "message": {"role": "wizard"}}', "'wizard' is not a message kind"),
        ("{", "Expecting"),
    ],
)
def test_what_is_no_event_is_refused_with_the_reason(line: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        event_from_json(line)
