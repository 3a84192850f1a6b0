"""The agent on a real event loop: what is awaited, what is cancelled, what is left behind (nothing)."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import itertools
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from reactivex import operators as ops
from reactivex.scheduler.eventloop import AsyncIOScheduler

from rx_agent import (
    Agent,
    AgentEndEvent,
    EventLoopRunningError,
    RxAgentError,
    StreamOptions,
    ToolContext,
    UserMessage,
    tool,
)
from rx_agent import operators as agent_ops
from rx_agent.providers.scripted import Response, call, say, scripted, think
from tests.invariants import Watch
from tests.on_loop import on_loop


@contextmanager
def unraisable_ignored() -> Iterator[None]:
    """For what is meant to be reported."""
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        yield
    finally:
        sys.unraisablehook = hook


def slow_answer() -> Response:
    return Response([say("one ", "two ", "three")], delay=0.01, every=0.05)


@on_loop
async def test_await_gives_the_end_as_often_as_asked() -> None:
    agent = Agent(stream_function=scripted(["Hello!"]))
    run = agent.prompt("Hi")
    first, second = await run, await run
    assert isinstance(first, AgentEndEvent)
    assert first is second
    assert (run.text, run.done, run.end) == ("Hello!", True, first)


@on_loop
async def test_a_second_prompt_sees_the_first() -> None:
    provider = scripted(["one", "two"])
    agent = Agent(stream_function=provider)
    await agent.prompt("a")
    await agent.prompt("b")
    assert [message.text for message in provider.requests[1][1].messages] == ["a", "one", "b"]


@on_loop
async def test_cancelling_the_task_that_awaits_aborts_the_run() -> None:
    agent = Agent(stream_function=scripted([slow_answer()]))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.08):
            await agent.prompt("Hi")
    assert agent.active_run is None
    assert agent.messages[-1].stop_reason == "aborted"
    assert agent.messages[-1].text == "one "


@on_loop
async def test_a_loop_over_the_events_that_is_left_early_aborts_the_run() -> None:
    agent = Agent(stream_function=scripted([slow_answer()]))
    async for event in agent.prompt("Hi"):
        if event.type == "message_update":
            break
    await asyncio.sleep(0.01)
    assert agent.active_run is None
    assert agent.messages[-1].stop_reason == "aborted"


@on_loop
async def test_a_loop_over_the_events_sees_all_of_them_and_ends() -> None:
    agent = Agent(stream_function=scripted([[say("a", "b")]]))
    types = [event.type async for event in agent.prompt("Hi")]
    assert types[0] == "agent_start"
    assert types[-1] == "agent_end"
    assert types.count("message_update") == 3


@on_loop
async def test_a_late_observer_gets_the_events_from_the_start_with_deltas_joined() -> None:
    agent = Agent(stream_function=scripted([[say("a", "b", "c")]]))
    run = agent.prompt("Hi")
    await run
    seen: list[Any] = []
    run.subscribe(seen.append)
    updates = [event.assistant_message_event for event in seen if event.type == "message_update"]
    assert [update.type for update in updates] == ["text_start", "text_delta", "text_end"]
    assert updates[1].delta == "abc"
    assert [update.partial.text for update in updates] == ["", "abc", "abc"]
    assert updates[1].delta is run.messages[-1].content[0].text


@on_loop
async def test_a_block_that_has_ended_is_replayed_joined_while_the_next_one_streams() -> None:
    agent = Agent(stream_function=scripted([Response([think("a", "b"), say("c", "d", "e")], every=0.01)]))
    run = agent.prompt("Hi")
    await agent.events.pipe(agent_ops.text_deltas(), ops.take(2))
    late: list[Any] = []
    run.subscribe(late.append)
    updates = [event.assistant_message_event for event in late if event.type == "message_update"]
    assert [getattr(update, "delta", update.type) for update in updates] == [
        "thinking_start",
        "ab",
        "thinking_end",
        "text_start",
        "cd",
    ]
    assert [(update.partial.thinking, update.partial.text) for update in updates] == [
        ("", ""),
        ("ab", ""),
        ("ab", ""),
        ("ab", ""),
        ("ab", "cd"),
    ]
    await run


@on_loop
async def test_aborting_cancels_a_coroutine_tool_and_tells_the_model_the_truth() -> None:
    seen: list[str] = []

    @tool
    async def slow() -> str:
        """Takes long."""
        try:
            await asyncio.sleep(30)
        finally:
            seen.append("cleaned up")
        return "never"

    @tool
    def fast() -> str:
        """Takes no time."""
        return "done"

    agent = Agent(stream_function=scripted([[call("slow"), call("fast")], "after"]), tools=[slow, fast])
    watch = Watch(agent)
    run = agent.prompt("go")
    await asyncio.sleep(0.05)
    run.dispose()
    assert agent.active_run is None, "dispose is synchronous for the agent"
    watch.at_rest()
    results = [message for message in agent.messages if message.role == "tool_result"]
    assert [result.is_error for result in results] == [True, False]
    assert "interrupted" in results[0].text
    assert "may have had effects" in results[0].text
    await agent.wait_for_idle()
    assert seen == ["cleaned up"]
    assert (await agent.continue_()).text == "after", "a run goes on from the results of an aborted one"


@on_loop
async def test_a_blocking_tool_does_not_stall_the_loop() -> None:
    ticks: list[float] = []

    @tool
    def sleepy() -> str:
        """Blocks."""
        time.sleep(0.2)
        return "awake"

    agent = Agent(stream_function=scripted([[call("sleepy")], "good morning"]), tools=[sleepy])
    run = agent.prompt("go")
    while not run.done:
        ticks.append(time.monotonic())
        await asyncio.sleep(0.01)
    assert max(b - a for a, b in itertools.pairwise(ticks)) < 0.15
    assert run.text == "good morning"


@on_loop
async def test_progress_from_a_worker_thread_comes_before_its_result() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name")
    name.set("me")

    @tool
    def count(context: ToolContext) -> str:
        """Counts."""
        for step in range(3):
            context.update(f"{step}")
        return name.get()

    agent = Agent(stream_function=scripted([[call("count")], "ok"]), tools=[count])
    threads = set()
    seen: list[str] = []
    agent.subscribe(lambda event: threads.add(threading.get_ident()))
    agent.subscribe(
        lambda event: seen.append(
            event.partial_result.text if event.type == "tool_execution_update" else event.type
        )
    )
    await agent.prompt("go")
    assert [item for item in seen if item in {"0", "1", "2", "tool_execution_end"}] == [
        "0",
        "1",
        "2",
        "tool_execution_end",
    ]
    assert agent.messages[2].text == "me"
    assert threads == {threading.get_ident()}


@on_loop
async def test_coroutine_listeners_are_awaited_in_order_and_before_the_run_settles() -> None:
    seen: list[str] = []

    async def first(event: Any) -> None:
        await asyncio.sleep(0.001)
        seen.append(f"first {event.type}")

    async def second(event: Any, signal: Any) -> None:
        assert not signal.aborted
        seen.append(f"second {event.type}")

    agent = Agent(stream_function=scripted(["Hi"]))
    agent.subscribe(first)
    agent.subscribe(second)
    await agent.prompt("go")
    types = [event.removeprefix("first ") for event in seen[::2]]
    assert seen == [f"{who} {type_}" for type_ in types for who in ("first", "second")]
    assert types[-1] == "agent_end"


@on_loop
async def test_backpressure_is_offered_to_the_provider_while_a_listener_works() -> None:
    release = asyncio.Event()

    async def slow(event: Any) -> None:
        if event.type == "message_start" and event.message.role == "assistant":
            await release.wait()

    offered: list[Any] = []
    provider = scripted([Response([say("a", "b")], every=0.01)])
    agent = Agent(stream_function=provider)
    agent.subscribe(slow)
    run = agent.prompt("go")
    await asyncio.sleep(0.005)
    options: StreamOptions = provider.requests[0][2]
    assert options.ready is not None
    waiting = options.ready()
    assert waiting is not None
    offered.append(asyncio.ensure_future(waiting))
    await asyncio.sleep(0.01)
    assert not offered[0].done()
    release.set()
    await offered[0]
    await run


@on_loop
async def test_waiting_for_idle_inside_a_listener_is_refused() -> None:
    refused: list[Exception] = []
    agent = Agent(stream_function=scripted(["Hi"]))

    async def listener(event: Any) -> None:
        if event.type == "agent_end":
            try:
                await agent.wait_for_idle()
            except RxAgentError as error:
                refused.append(error)

    agent.subscribe(listener)
    await agent.prompt("go")
    assert len(refused) == 1


@on_loop
async def test_prompt_sync_inside_a_loop_says_what_to_do() -> None:
    with pytest.raises(EventLoopRunningError, match=r"await agent\.prompt"):
        Agent(stream_function=scripted(["Hi"])).prompt_sync("go")


def test_prompt_sync_runs_coroutines_too() -> None:
    @tool
    async def nap() -> str:
        """Sleeps a little."""
        await asyncio.sleep(0.01)
        return "slept"

    agent = Agent(stream_function=scripted([[call("nap")], "ok"]), tools=[nap])
    assert agent.prompt_sync("go").text == "ok"
    assert agent.messages[2].text == "slept"


@on_loop
async def test_an_abort_from_another_thread_hops_to_the_run() -> None:
    agent = Agent(stream_function=scripted([slow_answer()]))
    threads = set()
    agent.subscribe(lambda event: threads.add(threading.get_ident()))
    run = agent.prompt("go")
    await asyncio.sleep(0.02)
    thread = threading.Thread(target=agent.abort)
    thread.start()
    end = await run
    thread.join()
    assert end.reason == "aborted"
    assert threads == {threading.get_ident()}


@on_loop
async def test_steering_from_another_thread_is_delivered() -> None:
    agent = Agent(stream_function=scripted([slow_answer(), "yes"]))
    run = agent.prompt("go")
    thread = threading.Thread(target=lambda: agent.steer("stop that", interrupt=True))
    await asyncio.sleep(0.08)
    thread.start()
    await run
    thread.join()
    assert [message.text for message in agent.messages] == ["go", "one ", "stop that", "yes"]


@on_loop
async def test_hooks_may_be_coroutines() -> None:
    async def keys(provider: str) -> str:
        await asyncio.sleep(0)
        return f"key of {provider}"

    async def last_only(messages: Any) -> Any:
        await asyncio.sleep(0)
        return messages[-1:]

    provider = scripted(["a", "b"])
    agent = Agent(stream_function=provider, get_api_key=keys, transform_context=last_only)
    await agent.prompt("one")
    await agent.prompt("two")
    assert provider.requests[1][2].api_key == "key of scripted"
    assert [message.text for message in provider.requests[1][1].messages] == ["two"]


@on_loop
async def test_aborting_a_hook_that_has_not_begun_leaves_no_unawaited_coroutine() -> None:
    async def slow(context: Any) -> None:
        await asyncio.sleep(30)

    agent = Agent(stream_function=scripted([[call("x")]]), tools=[tool(name="x")(lambda: "x")])
    agent.hooks = type(agent.hooks)(before_tool_call=slow)
    agent.prompt("go")
    agent.abort()
    await agent.wait_for_idle()
    assert agent.messages[-1].is_error


@on_loop
async def test_the_scheduler_given_is_the_one_used() -> None:
    loop = asyncio.get_running_loop()
    agent = Agent(stream_function=scripted([slow_answer()]), scheduler=AsyncIOScheduler(loop))
    await agent.prompt([UserMessage(content="a"), UserMessage(content="b")])
    assert agent.messages[0].text == "a"


@on_loop
async def test_a_coroutine_that_raises_no_exception_is_an_error_result_too() -> None:
    @tool
    async def odd() -> str:
        """Leaves in an odd way."""
        raise GeneratorExit

    agent = Agent(stream_function=scripted([[call("odd")], "ok"]), tools=[odd])
    with unraisable_ignored():
        assert (await agent.prompt("go")).text == "ok"
    assert "GeneratorExit" in agent.messages[2].text


def test_a_run_whose_loop_was_closed_under_it_does_not_keep_the_agent_busy() -> None:
    agent = Agent(stream_function=scripted([Response(["never"], delay=60), "again"]))
    watch = Watch(agent)

    async def forget_to_wait() -> None:
        agent.prompt("go")

    asyncio.run(forget_to_wait())
    assert agent.prompt_sync("still there?").text == "again"
    watch.at_rest()
    assert [message.text for message in agent.messages] == ["go", "", "still there?", "again"]


@on_loop
async def test_finished_runs_are_not_held() -> None:
    class Forgetful:
        """A provider that keeps no requests, other than ``scripted``."""

        model = scripted([]).model

        def __call__(self, model: Any, context: Any, options: Any) -> Any:
            return scripted(["yes"])(model, context, options)

    agent = Agent(stream_function=Forgetful())
    agent.subscribe(lambda event: None)
    runs = []
    for _ in range(20):
        run = agent.prompt("go")
        await run
        runs.append(weakref.ref(run))
        del run
    gc.collect()
    assert [run() for run in runs] == [None] * 20


@on_loop
async def test_a_coroutine_listener_that_awaits_something_cancelled_takes_no_other_with_it() -> None:
    cancelled = asyncio.get_running_loop().create_future()
    cancelled.cancel()
    seen: list[str] = []

    async def odd(event: Any) -> None:
        await cancelled

    async def good(event: Any) -> None:
        seen.append(event.type)

    agent = Agent(stream_function=scripted(["hello"]))
    agent.subscribe(odd)
    agent.subscribe(good)
    with unraisable_ignored():
        await agent.prompt("hi")
    assert (seen[0], seen[-1]) == ("agent_start", "agent_end")
