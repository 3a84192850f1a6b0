"""Text that is not valid Unicode: file names that are no UTF-8, and characters that a stream has cut in two."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from rx_agent import (
    Agent,
    AssistantMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    tool,
)
from rx_agent.event_json import event_from_json, event_to_json
from rx_agent.message_builder import MessageBuilder
from rx_agent.messages import message_from_json, to_json
from rx_agent.providers.scripted import call, say, scripted, think

LONE = "caf\udce9.txt"
"""What ``os.listdir`` gives for the bytes ``caf\\xe9.txt``."""


@dataclass
class Entry:
    sizes: dict[str, int]


class Listing(BaseModel):
    entries: list[str]


@pytest.mark.parametrize(
    "value", [LONE, [LONE], {LONE: 1}, {"in": {LONE: [1, {2}]}}, Entry({LONE: 1}), Listing(entries=[LONE])]
)
def test_a_tool_may_be_given_and_may_return_a_name_that_is_no_utf8(value: Any) -> None:
    got: list[str] = []

    @tool
    def look(path: str) -> Any:
        """Looks."""
        got.append(path)
        return value

    agent = Agent(stream_function=scripted([[call("look", path=LONE)], "done"]), tools=[look])
    agent.prompt("what is there?")
    assert got == [LONE]
    result = agent.messages[2]
    assert isinstance(result, ToolResultMessage)
    assert not result.is_error
    assert LONE in result.text


surrogates = st.sampled_from(["\ud83d", "\ude00", "a", "é", "😀", '"'])
pieces = st.lists(st.text(surrogates, max_size=3), max_size=5)


@given(pieces, pieces)
def test_an_answer_cut_anywhere_comes_back_from_json_as_it_went(thought: list[str], said: list[str]) -> None:
    agent = Agent(stream_function=scripted([[think(*thought), say(*said)]]))
    run = agent.prompt("hi")
    answer = agent.messages[-1]
    assert message_from_json(to_json(answer)) == answer
    assert "\ud83d\ude00" not in run.text
    events: list[Any] = []
    run.subscribe(events.append)
    for event in events:
        line = event_to_json(event)
        assert event_to_json(event_from_json(line)) == line


@given(pieces)
def test_arguments_that_mix_escapes_and_characters_come_back_from_json(chunks: list[str]) -> None:
    builder = MessageBuilder()
    opened = builder.tool_call_start("1", "look")
    for chunk in ["{", '"path": "', *chunks, "\\ud83d", *chunks, '"}']:
        builder.tool_call_delta(opened.content_index, chunk)
    builder.tool_call_end(opened.content_index)
    message = builder.done("tool_use").message
    assert message_from_json(to_json(message)) == message


def test_details_that_hold_themselves_are_taken() -> None:
    details: dict[str, Any] = {"name": "\ud83d" + "\ude00"}
    details["self"] = details
    message = ToolResultMessage(tool_call_id="1", tool_name="look", content="", details=details)
    assert message.details["self"]["self"]["name"] == "😀"


@given(pieces)
def test_arguments_cut_anywhere_are_read(chunks: list[str]) -> None:
    got: list[Any] = []

    @tool
    def look(path: str) -> None:
        """Looks."""
        got.append(path)

    path = "".join(chunks)
    agent = Agent(stream_function=scripted([[call("look", path=path)], "done"]), tools=[look])
    agent.prompt("hi")
    assert got == [json.loads(json.dumps(path))]


@given(pieces)
def test_text_given_by_a_user_is_joined_too(chunks: list[str]) -> None:
    text = "".join(chunks)
    for message in (
        UserMessage(content=text),
        UserMessage(content=[TextContent(text=text, signature=text)]),
    ):
        assert message_from_json(to_json(message)) == message
    asked = ToolCall(id=text, name="look", arguments={"path": [text], text: {"in": text}})
    answer = ToolResultMessage(tool_call_id=text, tool_name=text, content=text, details=[{text: text}])
    for message in (AssistantMessage(content=[asked]), answer):
        assert message_from_json(to_json(message)) == message
    thought = ThinkingContent(thinking=text)
    assert ThinkingContent.model_validate(json.loads(to_json(thought))) == thought
