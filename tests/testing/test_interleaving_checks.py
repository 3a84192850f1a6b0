"""``check_interleavings`` and the checks it stands on: quiet about sound agents, short about broken ones."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rx_agent import Agent, AgentEndEvent, AgentStartEvent, ToolCall, TurnStartEvent, tool
from rx_agent.messages import AssistantMessage, ToolResultMessage, UserMessage
from rx_agent.testing import (
    Guard,
    InterleavingError,
    Marbles,
    assert_brackets,
    assert_state_is_fold,
    assert_transcript_valid,
    call,
    check_interleavings,
    follow_up,
    prompt,
    steer,
)


def two_tools(marbles: Marbles) -> None:
    marbles.legend(d=call("dig"), w=call("wash"), a="Found ", b="gold.")
    marbles.model("-(dw|)", "-a-b|", "-a|", "-b|")
    marbles.tool("dig", "--p-(r|)")
    marbles.tool("wash", "----(r|)")
    marbles.user("p--s--f", p=prompt("Go"), s=steer("Faster"), f=follow_up("And then?"))


def test_a_sound_agent_passes_in_every_order() -> None:
    assert check_interleavings(None, two_tools, examples=150) == 150


def test_an_agent_of_ones_own_is_made_afresh_for_each_way() -> None:
    made: list[Agent] = []

    def factory(marbles: Marbles) -> Agent:
        made.append(Agent(stream_function=marbles.fake_model, tools=list(marbles.tools.values())))
        return made[-1]

    check_interleavings(factory, two_tools, examples=5)
    assert len({id(agent) for agent in made}) == 6


def test_a_race_in_a_users_tool_is_found_and_shown_as_a_test_to_paste() -> None:
    """Two calls read, wait and write: whoever comes last wins, and the sum is wrong in some order only."""

    def factory(marbles: Marbles) -> Agent:
        balance = {"now": 0}

        @tool
        async def deposit(amount: int) -> str:
            """Pays in."""
            before = balance["now"]
            await asyncio.sleep(1 if amount == 1 else 0)
            balance["now"] = before + amount
            return str(balance["now"])

        agent = Agent(stream_function=marbles.fake_model, tools=[deposit])
        agent.deps = balance
        return agent

    def script(marbles: Marbles) -> None:
        marbles.model([call("deposit", amount=1), call("deposit", amount=2)], "-a|")
        marbles.user("p", p=prompt("Pay in 1 and 2"))

    def check(marbles: Marbles) -> None:
        ended = marbles.agent.messages[-1].stop_reason == "stop"
        assert not ended or marbles.agent.deps["now"] == 3, (
            f"3 were paid in, {marbles.agent.deps['now']} are there"
        )

    with pytest.raises(InterleavingError, match="3 were paid in, 1 are there") as caught:
        check_interleavings(factory, script, check=check, kinds=(), examples=50)
    assert caught.value.plan.disturbances == ()
    assert "def test_found_by_check_interleavings(marbles):" in caught.value.script


def test_an_order_that_only_some_ways_have_is_found() -> None:
    """Both tools end at one instant; the agent's hook trusts the order in which they were asked."""
    seen: list[str] = []

    def factory(marbles: Marbles) -> Agent:
        seen.clear()

        def after(context: Any) -> None:
            seen.append(context.tool_call.name)

        return Agent(
            stream_function=marbles.fake_model, tools=list(marbles.tools.values()), after_tool_call=after
        )

    def check(_: Marbles) -> None:
        assert seen in ([], ["dig"], ["wash"], ["dig", "wash"]), f"washed before it was dug: {seen}"

    def script(marbles: Marbles) -> None:
        marbles.model("-(dw|)", "-a|", d=call("dig"), w=call("wash"))
        marbles.tool("dig", "--(r|)")
        marbles.tool("wash", "--(r|)")
        marbles.user("p", p=prompt("Go"))

    with pytest.raises(InterleavingError, match="washed before it was dug") as caught:
        check_interleavings(factory, script, check=check, kinds=())
    assert "Marbles(order=random.Random(" in caught.value.script


def test_a_message_that_gets_lost_is_found_and_the_plan_is_shrunk() -> None:
    def factory(marbles: Marbles) -> Agent:
        agent = Agent(stream_function=marbles.fake_model, tools=list(marbles.tools.values()))

        def forgetful(event: Any) -> None:
            if event.type == "tool_execution_start":
                agent.clear_steering_queue()

        agent.subscribe(forgetful)
        return agent

    with pytest.raises(InterleavingError, match="is there 0 times") as caught:
        check_interleavings(factory, two_tools)
    (disturbance,) = caught.value.plan.disturbances
    assert disturbance.kind == "steer"
    assert disturbance.time <= 1


# --- single checks -----------------------------------------------------------------------------------------

ASKED = AssistantMessage(
    content=[ToolCall(id="1", name="f"), ToolCall(id="2", name="g")], stop_reason="tool_use"
)


def result(id: str) -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=id, tool_name="f")


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([ASKED], r"message 0 .*its call '1' has no result"),
        ([ASKED, result("1"), UserMessage(content="x")], r"message 0 .*its call '2' has no result"),
        (
            [ASKED, result("2"), result("1")],
            r"message 1 .*a result of call '2', where the result of '1' is due",
        ),
        ([result("1")], r"message 0 .*no call waits for a result"),
        ([ASKED, result("1"), result("2"), result("2")], r"message 3 .*no call waits"),
        ([AssistantMessage(content="x", stop_reason=None)], r"message 0 .*it still streams"),
    ],
)
def test_a_transcript_that_is_not_valid_is_refused_with_the_place(messages: Any, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        assert_transcript_valid(messages)


def test_a_valid_transcript_passes() -> None:
    failed = ASKED.model_copy(update={"stop_reason": "aborted"})
    assert_transcript_valid([UserMessage(content="x"), ASKED, result("1"), result("2"), failed])


def test_brackets_that_do_not_nest_are_refused_with_the_place() -> None:
    with pytest.raises(AssertionError, match=r"event 3 \(agent_end\) came inside turn in run"):
        assert_brackets([AgentStartEvent(), TurnStartEvent(), AgentEndEvent(())])
    with pytest.raises(AssertionError, match="still open at the end: run"):
        assert_brackets([AgentStartEvent()])
    with pytest.raises(AssertionError, match=r"event 1 \(turn_start\) came inside nothing"):
        assert_brackets([TurnStartEvent()])


def test_a_state_that_is_no_fold_is_named(marbles: Marbles) -> None:
    marbles.model("-a|")
    marbles.user("p", p=prompt("Hi"))
    before = marbles.agent.state
    guard = Guard(marbles.agent)
    marbles.play()
    guard.at_rest()
    events = [event for _, event in marbles.record.events]
    assert_brackets(events)
    assert_state_is_fold(before, events, marbles.agent.state)
    with pytest.raises(AssertionError, match="the state is not the fold of the events: messages"):
        assert_state_is_fold(before, events[:-3], marbles.agent.state)
