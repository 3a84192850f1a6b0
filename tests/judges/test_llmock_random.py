"""Two hundred agents at once against an llmock that breaks a good part of all that it is asked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from rx_agent import Agent, AgentEndEvent, tool
from rx_agent.providers.base import Timeouts
from rx_agent.testing import assert_transcript_valid
from tests.judges.asking import APIS, KEY, last_answer, played
from tests.judges.serving import Llmock

RUNS = 200
PATIENCE = 60.0
"""Seconds after which a run counts as hung; its own timeouts and retries are through within ten."""
FAULTS = ("--response-style", "static", "--error-rate", "503=0.1", "--stream-stall-seconds", "30")
BROKEN = ("disconnect", "truncate", "stall", "malformed")


@pytest.fixture
def llmock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llmock]:
    stream_faults = [flag for kind in BROKEN for flag in ("--stream-fault", f"{kind}=0.1")]
    with Llmock(tmp_path_factory.mktemp("llmock") / "log", *FAULTS, *stream_faults) as running:
        yield running


def test_two_hundred_runs_at_once_all_end_and_say_how(llmock: Llmock) -> None:
    @tool
    async def weather(city: str) -> str:
        """The weather in a city."""
        return f"rain in {city}"

    reasons: Counter[str] = Counter()
    answers: set[str] = set()

    def checked(agent: Agent, end: AgentEndEvent) -> bool:
        """Whether the run answered; if it did not, it says why."""
        reasons[end.reason] += 1
        answer = last_answer(agent)
        assert_transcript_valid(agent.messages)
        if end.reason == "completed":
            assert (answer.stop_reason, answer.error_message) == ("stop", None)
            answers.add(answer.text)
            return True
        assert (end.reason, answer.stop_reason) == ("error", "error")
        assert answer.error_kind in ("network", "timeout", "overloaded")
        assert answer.error_message
        assert KEY not in answer.error_message
        return False

    async def asked(number: int) -> None:
        options = {"timeouts": Timeouts(connect=20, first_byte=20, idle=1)}
        agent = APIS[number % len(APIS)].agent(llmock.url, tools=[weather], options=options)
        end = await agent.prompt(f"What is the weather like? ({number})")
        while not checked(agent, end):
            end = await agent.continue_()
        await agent.wait_for_idle()

    async def story() -> None:
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*map(asked, range(RUNS)))
        assert reasons["completed"] == RUNS
        # The server says one thing for each model. A stream that was cut and taken for whole would be a shorter one.
        assert answers == {f"Mock response from {api.model}." for api in APIS}
        assert reasons["error"] > RUNS / 4  # or the server was too kind

    played(story)
