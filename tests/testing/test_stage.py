"""The stage: what it draws, what it refuses, and what it finds left behind."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
import time
from typing import Any

import pytest
import reactivex
from reactivex import operators as ops

from rx_agent import Agent, AssistantMessage, ToolResult, operators, tool
from rx_agent.testing import (
    DiagramError,
    FakeModel,
    FakeTool,
    Marbles,
    abort,
    call,
    error,
    follow_up,
    prompt,
    say,
    steer,
    think,
)


def failing(stage: Marbles, **lanes: str) -> str:
    with pytest.raises(AssertionError) as caught:
        stage.expect(**lanes)
    return str(caught.value)


# --- what a legend may mean --------------------------------------------------------------------------------


def test_thinking_calls_messages_and_failures_are_drawn(marbles: Marbles) -> None:
    marbles.legend(h=think("hm"), d=call("dig", deep=2), w=AssistantMessage(content="whole"))
    marbles.model("-h-a(d|)", "-w", "-a-x", a="Let me see.", x=error("Overloaded", kind="overloaded"))
    marbles.tool("dig", "-(r|)", r=ToolResult(content="gold"))
    marbles.user("p----f", p=prompt("Dig"), f=follow_up("More"))
    marbles.expect(
        thinking="-h",
        text="      ---a--wa-#",
        calls="     ----d",
        dig="       ----^r",
        follow_ups="-----10",
        state="     s---ts---e",
        run="       ^--------#",
    )
    assert [message.role for message in marbles.agent.messages] == [
        "user",
        "assistant",
        "tool_result",
        "assistant",
        "user",
        "assistant",
    ]
    assert marbles.agent.messages[-1].error_kind == "overloaded"
    assert marbles.agent.messages[3].text == "whole"
    assert marbles.tools["dig"].calls[0].arguments == {"deep": 2}


def test_pipelines_are_drawn_like_agents(marbles: Marbles) -> None:
    marbles.model("--a|", "-b-c|")
    questions = marbles.hot("q-r", q="one", r="two")
    marbles.watch("answers", questions.pipe(ops.switch_map(marbles.agent.ask), operators.text_deltas()))
    marbles.expect(answers="---b-c", text="---b-c", requests="r-r", run="^-(!^)|")


def test_data_and_functions_may_answer_instead_of_diagrams(marbles: Marbles) -> None:
    marbles.model(lambda context: say(context.messages[-1].text.upper()), [say("data")])
    marbles.user("pf", p=prompt("hi"), f=prompt("again"))
    marbles.legend(H="HI", d="data")
    marbles.expect(text="Hd", requests="rr")


def test_a_tick_may_last_anything(marbles: Marbles) -> None:
    marbles.tick = "100 ms"
    marbles.model("--a|")
    marbles.user("p", p=prompt("Hi"))
    marbles.expect(text="200 ms a")
    assert marbles.time == pytest.approx(0.3)


# --- failures ----------------------------------------------------------------------------------------------


def test_a_lane_that_differs_is_shown_under_what_was_expected() -> None:
    stage = Marbles()
    stage.model("--a-b|", a="Hel", b="lo")
    stage.user("p", p=prompt("Hi"))
    assert failing(stage, text="--a--b") == (
        "lane 'text' differs: expected 'b' ('lo') at 5 s; text: 'lo' came at 4 s\n"
        "\n"
        "time      0 s  5 s\n"
        "expected  --a--b\n"
        "actual    --a-b\n"
        "              ^\n"
        "a = 'Hel'\n"
        "b = 'lo'\n"
        "\n"
        "at 4 s happened:\n"
        "  text: 'lo'"
    )
    stage.close()


@pytest.mark.parametrize(
    ("lanes", "said"),
    [
        ({"text": "--a-b-c"}, "expected 'c' at 6 s; nothing came"),
        ({"text": "--a"}, "text: 'lo' at 4 s was not expected"),
        ({"text": "--b-a"}, "expected 'b' ('lo') at 2 s; it was text: 'Hel'"),
        ({"run": "^---|"}, "expected '|' at 4 s; run: end 'completed' came at 5 s"),
        ({"requests": "-"}, "requests: 'Hi' at 0 s was not expected"),
        ({"nonsense": "a"}, "expected 'a' ('Hel') at 0 s; nothing came"),
    ],
)
def test_every_kind_of_difference_is_said_in_words(lanes: dict[str, str], said: str) -> None:
    stage = Marbles()
    stage.model("--a-b|", a="Hel", b="lo")
    stage.user("p", p=prompt("Hi"))
    assert said in failing(stage, **lanes)
    stage.close()


@pytest.mark.parametrize("diagram", ["a,b", "(a", "a)b", "((a))"])
def test_a_diagram_that_cannot_be_read_is_shown_with_the_place(diagram: str) -> None:
    with Marbles() as stage, pytest.raises(DiagramError, match="cannot be read here"):
        stage.expect(text=diagram)


def test_a_user_lane_takes_actions_only() -> None:
    with Marbles() as stage, pytest.raises(DiagramError, match=r"'p' stands for None, which is no action"):
        stage.user("p")


def test_what_the_user_may_not_do_fails_the_test() -> None:
    stage = Marbles()
    stage.model("---a|")
    stage.user("p-q", p=prompt("one"), q=prompt("two"))
    assert "prompt('two') at 2 s raised AgentBusyError" in failing(stage, text="---a")
    stage.close()


# --- what is left behind -----------------------------------------------------------------------------------


def left_by(body: Any, **options: Any) -> str:
    stage = Marbles()
    stage.model("-t|", "-a|", t=call("odd"))
    stage.agent = Agent(stream_function=stage.fake_model, tools=[tool(body)], **options)
    stage.user("p", p=prompt("Hi"))
    try:
        return failing(stage)
    finally:
        stage.close()


def odd_task() -> reactivex.Observable[str]:
    """Leaves a task."""

    async def forgotten() -> None:
        await asyncio.Event().wait()

    held.append(asyncio.get_running_loop().create_task(forgotten()))
    return reactivex.return_value("x")


held: list[Any] = []


def test_a_task_a_timer_and_a_subscription_are_found() -> None:
    def odd() -> reactivex.Observable[str]:
        """Leaves a timer."""
        asyncio.get_running_loop().call_later(10**9, print)
        return reactivex.return_value("x")

    odd_task.__name__ = "odd"
    assert "a task is left behind: odd_task.<locals>.forgotten" in left_by(odd_task)
    assert "a timer is left behind, due at" in left_by(odd)
    stage = Marbles()
    stage.model("-a|")
    stage.user("p", p=prompt("Hi"))
    stage.cold("-a-b").subscribe(scheduler=stage.scheduler)
    assert "a subscription is left behind: cold '-a-b'" in failing(stage)
    stage.close()


def test_a_run_that_never_ends_is_found() -> None:
    stage = Marbles()
    stage.model("-a-b")
    stage.user("p", p=prompt("Hi"))
    assert "the run never ends: nothing happens any more after 3 s" in failing(stage)
    stage.close()


# --- the wall clock and the network ------------------------------------------------------------------------


def sleeps() -> str:
    time.sleep(3)
    return "slept"


def waits() -> str:
    threading.Event().wait(3)
    return "waited"


def starts_a_thread() -> str:
    threading.Thread(target=print, name="worker").start()
    return "started"


def connects() -> str:
    with socket.socket() as it:
        it.connect(("127.0.0.1", 1))
    return "connected"


async def opens_a_connection() -> str:
    await asyncio.open_connection("example.com", 80)
    return "connected"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (sleeps, "time.sleep(3) would wait on the wall clock"),
        (waits, "a wait of 3 s for a threading.Event would wait on the wall clock"),
        (starts_a_thread, "thread 'worker' would run outside of virtual time"),
        (connects, "the network would be used (('127.0.0.1', 1))"),
        (opens_a_connection, "the network would be used (example.com:80)"),
    ],
)
def test_who_touches_the_wall_clock_or_the_network_is_named(body: Any, said: str) -> None:
    def odd() -> str:
        """Does it."""
        return body()

    async def odd_coroutine() -> str:
        """Does it."""
        return await body()

    found = odd_coroutine if asyncio.iscoroutinefunction(body) else odd
    found.__name__ = "odd"
    assert said in left_by(found)


def test_an_rx_operator_without_the_scheduler_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Marbles()
    stage.model("-a|")
    stage.user("p", p=prompt("Hi"))
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    stage.agent.events.pipe(ops.debounce(1.0)).subscribe()
    assert "would run outside of virtual time; pass the scheduler on" in failing(stage)
    stage.close()


# --- coroutines --------------------------------------------------------------------------------------------


def test_locks_queues_timeouts_and_threads_of_asyncio_run_in_virtual_time(marbles: Marbles) -> None:
    lock = asyncio.Lock()
    heard: list[tuple[float, str]] = []

    @tool
    async def hold(seconds: int) -> str:
        """Holds the lock."""
        async with lock:
            await asyncio.sleep(seconds)
        return f"held {seconds}"

    @tool
    async def late() -> str:
        """Is too late."""
        try:
            async with asyncio.timeout(5):
                await asyncio.sleep(60)
        except TimeoutError:
            return await asyncio.to_thread(str, "timed out")
        return "never"

    async def listener(event: Any) -> None:
        await asyncio.sleep(0.25)
        heard.append((marbles.time, event.type))

    marbles.model([call("hold", seconds=2), call("hold", seconds=3), call("late")], "-a|")
    marbles.agent = Agent(stream_function=marbles.fake_model, tools=[hold, late])
    marbles.agent.subscribe(listener)
    marbles.user("p", p=prompt("Go"))
    marbles.legend(x="held 2", y="held 3", z="timed out")
    marbles.expect(late="^----z")
    assert [(t, e.type) for t, e in marbles.record.events if e.type == "tool_execution_end"] == [
        (2.0, "tool_execution_end"),
        (5.0, "tool_execution_end"),
        (5.0, "tool_execution_end"),
    ]
    assert heard[-1][1] == "agent_end"


def test_fakes_work_without_a_stage() -> None:
    fake = FakeModel([[call("look")], say("ok")])
    look = FakeTool("look", lambda arguments: "seen")
    agent = Agent(stream_function=fake, tools=[look])
    assert agent.prompt("hi").text == "ok"
    assert [request.text for request in fake.asked] == ["hi", "seen"]
    assert [each.arguments for each in look.calls] == [{}]


def test_the_steering_of_a_run_is_drawn_in_any_mode(marbles: Marbles) -> None:
    marbles.model("-a-b-c|", "-d|")
    marbles.user("p--s--x", p=prompt("Hi"), s=steer("Stop!", interrupt=True), x=abort())
    marbles.expect(text="-a-!d|", steering="---(1,0)", user="p--s--x")
