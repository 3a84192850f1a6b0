"""The kit as a user meets it: small agents, drawn."""

from __future__ import annotations

import asyncio

import pytest

from rx_agent import Agent, ToolContext, tool
from rx_agent.testing import Marbles, abort, call, dispose, error, prompt, steer


def test_text_comes_as_drawn(marbles: Marbles) -> None:
    marbles.model("--a-b|", a="Hel", b="lo")
    marbles.user("p", p=prompt("Hi"))
    marbles.expect(text="--a-b|", requests="r", run="^----|", messages="u----a")


def test_steering_waits_for_the_tool(marbles: Marbles) -> None:
    marbles.model("-d|", "--b-c|", d=call("dig"), b="Found ", c="gold.")
    marbles.tool("dig", "---p---(r|)", p="half way", r="done")
    marbles.user("u---s", u=prompt("Dig!"), s=steer("Faster"))
    marbles.expect(
        dig="      --^--p---r",
        text="     -----------b-c",
        steering=" ----1----0",
        requests=" u--------s",
    )


def test_ten_minutes_of_retries_and_a_slow_tool(marbles: Marbles) -> None:
    marbles.model("x", "d|", "b|", x=error("Overloaded", retry_after="30 s"), d=call("dig"), b="Done.")
    marbles.tool("dig", "10 min (r|)", r="gold")
    marbles.user("p", p=prompt("Dig!"))
    marbles.expect(requests="r 29 s r 10 min r", text="631 s b")


@pytest.mark.parametrize("end", [abort(), dispose()])
def test_an_abort_in_the_middle_of_an_answer(marbles: Marbles, end: object) -> None:
    marbles.model("-a-b-c-d|")
    marbles.user("p---x", p=prompt("Hi"), x=end)
    marbles.expect(text="-a-b!", run="^---!", state="s---e")


def test_a_coroutine_tool_sleeps_in_virtual_time(marbles: Marbles) -> None:
    @tool
    async def nap(context: ToolContext) -> str:
        """Sleeps."""
        async with asyncio.timeout(3600):
            await asyncio.sleep(60)
        context.update("yawn")
        await asyncio.sleep(60)
        return "awake"

    marbles.model("n|", "b|", n=call("nap"), b="Good morning.")
    marbles.agent = Agent(stream_function=marbles.fake_model, tools=[nap])
    marbles.user("p", p=prompt("Sleep."))
    marbles.legend(y="yawn", z="awake")
    marbles.expect(nap="-^ 59 s y 59 s z", text="- 2 min b")
