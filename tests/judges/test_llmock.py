"""Real agents against llmock, which breaks what they ask for and judges how they take it: before an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from rx_agent import ImageContent, TextContent, ToolResult, ToolResultMessage, tool
from rx_agent.messages import ErrorKind
from rx_agent.providers.base import Timeouts
from tests.judges.asking import ANSWER, KEY, PIXEL, REPLY, Api, last_answer, over_apis, played
from tests.judges.serving import Llmock

TOKENS_PER_MINUTE = 60_000
WINDOW = 2_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llmock]:
    log = tmp_path_factory.mktemp("llmock") / "log"
    limits = ("--tpm", str(TOKENS_PER_MINUTE), "--context-window", str(WINDOW))
    with Llmock(log, *limits) as running:
        yield running


@pytest.fixture
def llmock(server: Llmock) -> Llmock:
    server.reset()
    return server


def statuses(llmock: Llmock) -> list[int]:
    return [request["status"] for request in llmock.requests]


# --- what passes by itself ---------------------------------------------------------------------------------

PASSING: Mapping[str, tuple[Mapping[str, Any], list[int]]] = {
    "429 with Retry-After": (
        {"type": "fail", "status": 429, "retry_after": 0.2, "times": 2},
        [429, 429, 200],
    ),
    "500": ({"type": "fail", "status": 500}, [500, 200]),
    "503": ({"type": "fail", "status": 503, "retry_after": 0.1}, [503, 200]),
    "529": ({"type": "fail", "status": 529, "retry_after": 0.1}, [529, 200]),
    "slow first token": ({"type": "slow_first_token", "seconds": 0.3}, [200]),
    "slow response": ({"type": "delay", "seconds": 0.3}, [200]),
}


@over_apis
@pytest.mark.parametrize("fault", PASSING)
def test_what_passes_by_itself_is_not_noticed(llmock: Llmock, api: Api, fault: str) -> None:
    behavior, answered = PASSING[fault]
    llmock.script(behavior, REPLY)

    async def story() -> None:
        agent = api.agent(llmock.url)
        end = await agent.prompt("Count to ten.")
        assert (end.reason, end.text) == ("completed", ANSWER), end.error_message
        assert last_answer(agent).stop_reason == "stop"
        assert len(agent.messages) == 2
        assert statuses(llmock) == answered
        await agent.wait_for_idle()

    played(story)
    llmock.assert_resilient()


# --- what does not -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Final:
    """A fault that ends the run: as what, after which answers, and in which words.

    ``again``: seconds after which the user tries once more, with success. ``strict``: the judge may have no
    doubts either. It doubts whoever gives up a 429 at once, as is right where the wait is too long or in vain.
    """

    behavior: Mapping[str, Any]
    kind: ErrorKind
    statuses: list[int]
    says: str
    again: float | None = None
    strict: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)


USED_UP = {
    "type": "fail",
    "status": 429,
    "code": "insufficient_quota",
    "message": "You exceeded your current quota, please check your plan and billing details.",
}
OVERFLOW = {
    "type": "fail",
    "status": 400,
    "code": "context_length_exceeded",
    "message": "This model's maximum context length was exceeded.",
}
FINAL: Mapping[str, Final] = {
    "outage": Final(
        {"type": "fail", "status": 503, "retry_after": 0.1, "times": None},
        "overloaded",
        [503, 503, 503],
        "Tried again 2 times in vain",
        again=0.1,
    ),
    "outage without a word when it ends": Final(
        {"type": "fail", "status": 500, "times": None},
        "unknown",
        [500, 500],
        "Tried again once in vain",
        again=0.6,
        options={"max_retries": 1},
    ),
    "context overflow": Final(OVERFLOW, "context_overflow", [400], "shorten or compact"),
    "first token too late": Final(
        {"type": "slow_first_token", "seconds": 5},
        "timeout",
        [200],
        "has sent nothing within 0.2 s",
        again=0.0,
        options={"timeouts": Timeouts(connect=5, first_byte=0.2, idle=5)},
    ),
    "429 with too long a wait": Final(
        {"type": "fail", "status": 429, "retry_after": 3600},
        "rate_limit",
        [429],
        "asks to wait 3600 s",
        strict=False,
    ),
    "quota used up": Final(USED_UP, "rate_limit", [429], "check plan and billing", strict=False),
}


@over_apis
@pytest.mark.parametrize("fault", FINAL)
def test_what_does_not_pass_ends_the_run_and_says_why(llmock: Llmock, api: Api, fault: str) -> None:
    final = FINAL[fault]
    llmock.script(final.behavior)

    async def story() -> None:
        agent = api.agent(llmock.url, options=final.options)
        end = await agent.prompt("Count to ten.")
        failed = last_answer(agent)
        assert (end.reason, failed.stop_reason, failed.error_kind) == ("error", "error", final.kind)
        assert failed.content == ()
        assert failed.error_message == end.error_message
        assert final.says in (end.error_message or "")
        assert KEY not in (end.error_message or "")
        assert statuses(llmock) == final.statuses
        if final.again is not None:
            llmock.recover()
            llmock.script(REPLY)
            await asyncio.sleep(final.again)
            end = await agent.continue_()
            assert (end.reason, end.text) == ("completed", ANSWER), end.error_message
            assert statuses(llmock) == [*final.statuses, 200]
        await agent.wait_for_idle()

    played(story)
    llmock.assert_resilient(strict=final.strict)


@over_apis
def test_a_prompt_beyond_the_window_is_called_so_in_each_providers_words(llmock: Llmock, api: Api) -> None:
    async def story() -> None:
        agent = api.agent(llmock.url)
        end = await agent.prompt("lorem ipsum " * WINDOW)
        assert (end.reason, last_answer(agent).error_kind) == ("error", "context_overflow")
        assert statuses(llmock) == [400]
        await agent.wait_for_idle()

    played(story)
    llmock.assert_resilient()


@over_apis
def test_a_quota_of_tokens_is_waited_for_as_long_as_it_takes(llmock: Llmock, api: Api) -> None:
    """Two answers of half a minute's tokens and a bit: the second must wait until the bit is there again."""
    llmock.script(REPLY)

    async def story() -> None:
        agent = api.agent(llmock.url, options={"max_tokens": TOKENS_PER_MINUTE // 2 + 150})
        for question in ("Count to ten.", "Again, please."):
            end = await agent.prompt(question)
            assert (end.reason, end.text) == ("completed", ANSWER), end.error_message
        assert statuses(llmock) == [200, 429, 200]
        refused = llmock.requests[1]
        assert refused["fault"] == "ratelimit:tokens"
        assert 0 < refused["retry_after"] < 1
        await agent.wait_for_idle()

    played(story)
    llmock.assert_resilient()


# --- tools -------------------------------------------------------------------------------------------------


@over_apis
@pytest.mark.parametrize("fault", ["malformed_arguments", "unknown_tool"])
def test_a_broken_tool_call_is_told_to_the_model_and_not_run(llmock: Llmock, api: Api, fault: str) -> None:
    ran: list[str] = []

    @tool
    async def weather(city: str) -> str:
        """The weather in a city."""
        ran.append(city)
        return "rain"

    call = {"name": "weather", "arguments": {"city": "Oslo"}}
    llmock.script({"type": "reply", "tool_calls": [call]}, {"type": "tool_fault", "kind": fault}, REPLY)

    async def story() -> None:
        agent = api.agent(llmock.url, tools=[weather])
        end = await agent.prompt("What is the weather in Oslo?")
        assert (end.reason, end.text) == ("completed", ANSWER), end.error_message
        assert ran == []
        question, asked, result, answered = agent.messages
        assert [message.role for message in (question, asked, answered)] == ["user", "assistant", "assistant"]
        assert isinstance(result, ToolResultMessage)
        assert result.is_error
        assert ("not found" if fault == "unknown_tool" else "city") in result.text
        assert statuses(llmock) == [200, 200]
        assert result.text[:20] in str(llmock.requests[1]["body"])
        await agent.wait_for_idle()

    played(story)
    llmock.assert_resilient()


DOT = "R0lGODlhAQABAIAAAAUEBAAAACwAAAAAAQABAAACAkQBADs="


@over_apis
def test_two_turns_with_tools_and_images(llmock: Llmock, api: Api) -> None:
    """The user shows one, the tool another, one request is refused on the way; the outer report agrees."""
    llmock.script({"type": "fail", "status": 429, "retry_after": 0.1})
    for _ in range(2):
        call = {"name": "photograph", "arguments": {"city": "Oslo"}}
        llmock.script({"type": "reply", "tool_calls": [call]}, {"type": "reply", "text": ANSWER})

    @tool
    async def photograph(city: str) -> ToolResult:
        """Takes a photograph of the sky above a city."""
        return ToolResult(
            content=[TextContent(text=f"above {city}"), ImageContent(data=DOT, mime_type="image/gif")]
        )

    async def story() -> None:
        agent = api.agent(llmock.url, tools=[photograph], system_prompt="You are a weatherman.")
        for question in ("Is the sky above Oslo like this?", "And now, above Oslo?"):
            end = await agent.prompt(question, images=[ImageContent(data=PIXEL, mime_type="image/png")])
            assert (end.reason, end.text) == ("completed", ANSWER), end.error_message
        roles = ["user", "assistant", "tool_result", "assistant"]
        assert [message.role for message in agent.messages] == roles * 2
        assert all(not message.is_error for message in agent.messages if message.role == "tool_result")
        assert statuses(llmock) == [429, 200, 200, 200, 200]
        bodies = [str(request["body"]) for request in llmock.requests]
        assert [body.count(PIXEL) for body in bodies] == [1, 1, 1, 2, 2]
        assert [body.count(DOT) for body in bodies] == [0, 0, 1, 1, 2]
        await agent.wait_for_idle()

    played(story)
    llmock.assert_resilient()
    report = llmock.report("--strict")
    assert report.returncode == 0, report.stdout
    assert "PASS" in report.stdout
