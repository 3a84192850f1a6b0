"""Wrong input, refused where it is given: each error names the field, the value and the way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rx_agent import Agent, ConfigurationError, ImageContent, UserMessage, tool, tool_from_schema
from rx_agent.providers.scripted import scripted

IMAGE = ImageContent(data="aGk=", mime_type="image/png")


def agent_with(**given: Any) -> Callable[[], object]:
    return lambda: Agent(**{"stream_function": scripted(["one"]), **given})


def agent() -> Agent:
    return Agent(stream_function=scripted(["one"]))


HOOKS = [
    "convert_to_llm",
    "transform_context",
    "before_tool_call",
    "after_tool_call",
    "prepare_next_turn",
    "prepare_next_turn_with_context",
    "should_stop_after_turn",
    "get_api_key",
    "on_payload",
    "on_response",
    "stream_function",
]


async def prepares(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


def named_tool(name: str = "fine", **given: Any) -> object:
    def body(text: str) -> str:
        return text

    return tool(name=name, **given)(body)


WRONG: dict[str, tuple[Callable[[], object], tuple[str, ...]]] = {
    **{f"hook {name}": (agent_with(**{name: 3}), (name, "3", "int")) for name in HOOKS},
    "options": (agent_with(options=3), ("options", "3", "StreamOptions")),
    "options as a dict": (agent_with(options={"max_tokens": 3}), ("options", "dict", "StreamOptions")),
    "scheduler": (agent_with(scheduler=3), ("scheduler", "3", "SchedulerBase")),
    "messages": (agent_with(messages=3), ("messages", "3", "list of messages")),
    "messages of text": (agent_with(messages=["hi"]), ("messages", "item 0", "UserMessage(content=text)")),
    "one message": (agent_with(messages=UserMessage(content="hi")), ("messages", "list of messages")),
    "tools": (agent_with(tools=3), ("tools", "3", "list of tools")),
    "system prompt": (agent_with(system_prompt=None), ("system_prompt", "None", "str")),
    "thinking level": (agent_with(thinking_level="hi"), ("thinking_level", "'hi'", "'high'")),
    "steering mode": (agent_with(steering_mode="some"), ("steering_mode", "'some'", "'one-at-a-time'")),
    "follow-up mode": (agent_with(follow_up_mode="some"), ("follow_up_mode", "'some'", "'all'")),
    "steering point": (agent_with(steering_point="soon"), ("steering_point", "'soon'", "'after_turn'")),
    "tool execution": (agent_with(tool_execution="both"), ("tool_execution", "'both'", "'parallel'")),
    "assigned messages": (lambda: setattr(agent(), "messages", ["hi"]), ("messages", "item 0")),
    "assigned system prompt": (lambda: setattr(agent(), "system_prompt", 3), ("system_prompt", "3")),
    "assigned mode": (lambda: setattr(agent(), "steering_mode", "x"), ("steering_mode", "'x'")),
    "prompt": (lambda: agent().prompt(3), ("prompt", "3", "text, message or list")),  # type: ignore[arg-type]
    "an image alone": (lambda: agent().prompt(IMAGE), ("prompt", "images=[...]")),  # type: ignore[arg-type]
    "images": (lambda: agent().prompt("hi", images=3), ("images", "3", "list of ImageContent")),  # type: ignore[arg-type]
    "an image in no list": (lambda: agent().prompt("hi", images=IMAGE), ("images", "list of ImageContent")),  # type: ignore[arg-type]
    "images of ints": (lambda: agent().prompt("hi", images=[3]), ("images", "3", "ImageContent")),  # type: ignore[list-item]
    "script": (lambda: scripted(3), ("scripted(3)", "list of answers")),  # type: ignore[arg-type]
    "script of one text": (lambda: scripted("hello"), ("scripted('hello')", "a list")),
    "script item": (lambda: scripted([3]), ("3", "say(...)")),  # type: ignore[list-item]
    "script piece": (lambda: scripted([["fine", 3]]), ("3", "say(...)")),  # type: ignore[list-item]
    "schema": (
        lambda: tool_from_schema("t", "", 3, lambda args: ""),  # type: ignore[arg-type]
        ("'t'", "parameters", "int"),
    ),
    "coroutine that prepares": (
        lambda: named_tool(prepare_arguments=prepares),
        ("'fine'", "prepare_arguments", "not a coroutine"),
    ),
    "preparation": (lambda: named_tool(prepare_arguments=3), ("'fine'", "prepare_arguments", "3")),
}


@pytest.mark.parametrize("given", WRONG, ids=lambda name: name.replace(" ", "-"))
def test_wrong_input_is_refused_by_name(given: str) -> None:
    attempt, said = WRONG[given]
    with pytest.raises(ConfigurationError) as refusal:
        attempt()
    for part in said:
        assert part in str(refusal.value)


def test_a_refused_prompt_leaves_the_agent_ready() -> None:
    one = agent()
    with pytest.raises(ConfigurationError):
        one.prompt("hi", images=[3])  # type: ignore[list-item]
    assert one.prompt("hi").text == "one"
