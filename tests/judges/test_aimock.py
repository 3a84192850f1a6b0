"""A second opinion on the wire formats: aimock, which reads what each API is asked and answers in its own words.

Skipped without node and the package: ``npm install --prefix FOLDER @copilotkit/aimock`` and RX_AGENT_AIMOCK=FOLDER.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from rx_agent import AssistantMessage, ImageContent, ThinkingContent, tool
from rx_agent.models import ThinkingLevel
from tests.judges.asking import PIXEL, Api, last_answer, over_apis, played
from tests.judges.serving import Aimock, aimock_cli

PATHS = {"openai_chat": "/v1", "openai_responses": "/v1", "anthropic": "/v1", "google": "/v1beta"}
CITIES = ("Oslo", "Zürich")
ANSWER = "Rain in Oslo, sun in Zürich. \N{UMBRELLA WITH RAIN DROPS}"
USAGE = {"prompt_tokens": 70, "completion_tokens": 30, "total_tokens": 100}
FIXTURES = {
    "fixtures": [
        {
            "match": {"userMessage": "weather", "hasToolResult": True},
            "response": {"content": ANSWER, "usage": USAGE},
        },
        {
            "match": {"userMessage": "weather"},
            "response": {
                "content": "Let me look.",
                "toolCalls": [{"name": "weather", "arguments": {"city": city}} for city in CITIES],
            },
        },
        {
            "match": {"userMessage": "think"},
            "response": {"reasoning": "Easy: twice two.", "content": "Four."},
        },
        {
            "match": {"userMessage": "too much"},
            "response": {"error": {"message": "Slow down.", "type": "rate_limit_error"}, "status": 429},
        },
    ]
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aimock]:
    if (cli := aimock_cli()) is None:
        pytest.skip(
            "needs node and the npm package @copilotkit/aimock, below RX_AGENT_AIMOCK or installed globally"
        )
    folder = tmp_path_factory.mktemp("aimock")
    fixtures = folder / "fixtures.json"
    fixtures.write_text(json.dumps(FIXTURES))
    with Aimock(cli, folder / "log", fixtures) as running:
        yield running


@pytest.fixture
def aimock(server: Aimock) -> Aimock:
    server.forget()
    return server


def test_the_answers_are_ones_that_aimock_finds_no_fault_with(server: Aimock) -> None:
    assert "warn" not in server.said().lower()


@over_apis
def test_a_conversation_with_parallel_tools_and_an_image(aimock: Aimock, api: Api) -> None:
    asked: list[str] = []

    @tool
    async def weather(city: str) -> str:
        """The weather in a city."""
        asked.append(city)
        return "rain" if city == "Oslo" else "sun"

    async def story() -> None:
        agent = api.agent(
            aimock.url, path=PATHS[api.name], tools=[weather], system_prompt="You are a weatherman."
        )
        end = await agent.prompt(
            "How is the weather?", images=[ImageContent(data=PIXEL, mime_type="image/png")]
        )
        assert (end.reason, end.text) == ("completed", ANSWER), end.error_message
        assert asked == list(CITIES)
        roles = ["user", "assistant", "tool_result", "tool_result", "assistant"]
        assert [message.role for message in agent.messages] == roles
        calling = agent.messages[1]
        assert isinstance(calling, AssistantMessage)
        assert (calling.text, calling.stop_reason) == ("Let me look.", "tool_use")
        usage = last_answer(agent).usage
        assert (usage.input, usage.output) == (70, 30)
        await agent.wait_for_idle()

    played(story)
    first, second = (request["body"] for request in aimock.requests)
    assert [part["role"] for part in first["messages"]] == ["system", "user"]
    said = second["messages"][1:]
    assert {part["role"] for part in said} == {"user", "assistant", "tool"}
    assert tools_of(first) == tools_of(second) == ["weather"]
    calls = [call for part in said for call in part.get("tool_calls") or ()]
    assert [json.loads(call["function"]["arguments"]) for call in calls] == [
        {"city": city} for city in CITIES
    ]
    results = {part["tool_call_id"]: part["content"] for part in said if part["role"] == "tool"}
    for call, weather_there in zip(calls, ("rain", "sun"), strict=True):
        assert weather_there in results[call["id"]]


def tools_of(body: dict[str, Any]) -> list[str]:
    return [given["function"]["name"] for given in body["tools"]]


@over_apis
def test_thinking_is_told_apart_from_the_answer(aimock: Aimock, api: Api) -> None:
    async def story() -> None:
        agent = api.agent(aimock.url, path=PATHS[api.name], reasoning=True, options={"max_tokens": 4000})
        agent.thinking_level = ThinkingLevel.LOW
        end = await agent.prompt("think: what is 2 + 2?")
        assert (end.reason, end.text) == ("completed", "Four."), end.error_message
        thoughts = [block for block in last_answer(agent).content if isinstance(block, ThinkingContent)]
        assert [block.thinking for block in thoughts] == ["Easy: twice two."]
        await agent.wait_for_idle()

    played(story)


@over_apis
def test_an_error_is_one(aimock: Aimock, api: Api) -> None:
    async def story() -> None:
        agent = api.agent(aimock.url, path=PATHS[api.name], options={"max_retries": 0})
        end = await agent.prompt("This is too much.")
        assert (end.reason, last_answer(agent).error_kind) == ("error", "rate_limit"), end.error_message
        assert "Slow down." in (end.error_message or "")
        await agent.wait_for_idle()

    played(story)
