"""Agents in Rx pipelines, against a real HTTP server: who is left, and whose connection is closed."""

from __future__ import annotations

import asyncio
from typing import Any

import reactivex
from reactivex import Observable
from reactivex import operators as ops

from rx_agent import Agent, StreamOptions, tool
from rx_agent import operators as agent_ops
from tests.on_loop import on_loop
from tests.providers.loopback import ChatServer, answer, finish, refuses, says, text, tool_call, usage

SLOW = answer(text("one ", "two ", "three"), finish("stop"), delay=0.2)


def agent_for(server: ChatServer, **fields: Any) -> Agent:
    return Agent(model=server.model(), options=StreamOptions(max_retries=0), **fields)


async def all_of(source: Observable[Any]) -> list[Any]:
    """What ``source`` says until it completes; raises what it signals."""
    return await source.pipe(ops.to_list())


async def closed_soon(server: ChatServer, count: int = 0) -> None:
    await server.until(lambda: server.open_connections == count, seconds=0.1)


@on_loop
async def test_switch_map_closes_the_old_answers_stream() -> None:
    async with ChatServer(SLOW, says("second")) as server:
        agent = agent_for(server)
        questions: reactivex.Subject[str] = reactivex.Subject()
        seen: list[str] = []
        questions.pipe(ops.switch_map(agent.ask), agent_ops.answers()).subscribe(seen.append)
        questions.on_next("first?")
        await server.until(lambda: server.requests)
        await asyncio.sleep(0.25)
        questions.on_next("second?")
        await server.until(lambda: server.requests[0].closed is not None, seconds=0.1)
        await agent.wait_for_idle()
        assert seen == ["second"]
        assert [message.text for message in agent.messages] == ["first?", "one ", "second?", "second"]
        sent = server.requests[1].json["messages"]
        assert [message["role"] for message in sent].count("assistant") == 0, "the cut answer is left out"


@on_loop
async def test_many_questions_one_agent_each_a_few_at_a_time() -> None:
    async with ChatServer(answer(text("yes"), finish("stop"), delay=0.02)) as server:
        agent = agent_for(server)
        most = 0

        def watch(_: Any) -> None:
            nonlocal most
            most = max(most, server.open_connections)

        questions = [f"question {number}" for number in range(9)]
        answers = await all_of(
            reactivex.from_iterable(questions).pipe(
                ops.map(lambda question: agent.fork().ask(question)),
                ops.merge(max_concurrent=3),
                ops.do_action(watch),
                agent_ops.answers(),
            )
        )
        assert answers == ["yes"] * 9
        assert 1 < most <= 3
        await closed_soon(server)


@on_loop
async def test_flat_map_over_forks_leaves_the_original_alone() -> None:
    async with ChatServer(says("yes")) as server:
        agent = agent_for(server)
        source = reactivex.of("a", "b").pipe(ops.flat_map(lambda q: agent.fork().ask(q)), agent_ops.answers())
        assert await all_of(source) == ["yes", "yes"]
        assert len(agent.messages) == 0
        await closed_soon(server)


@on_loop
async def test_amb_of_two_models_closes_the_losers_stream() -> None:
    async with ChatServer(SLOW) as tortoise, ChatServer(says("first!")) as hare:
        slow, quick = agent_for(tortoise), agent_for(hare)

        def text_of(agent: Agent) -> Observable[str]:
            return agent.ask("who?").pipe(agent_ops.text_deltas())

        assert await all_of(text_of(slow).pipe(ops.amb(text_of(quick)))) == ["first!"]
        await closed_soon(tortoise)
        assert slow.active_run is None
        assert slow.messages[-1].stop_reason == "aborted"
        await slow.wait_for_idle()
        await quick.wait_for_idle()


@on_loop
async def test_retry_asks_again_until_it_works() -> None:
    async with ChatServer(refuses(401, "no"), refuses(401, "no"), says("welcome")) as server:
        agent = agent_for(server)
        source = agent.ask("hi").pipe(agent_ops.raise_on_error(), ops.retry(3), agent_ops.answers())
        assert await all_of(source) == ["welcome"]
        assert len(server.requests) == 3
        await closed_soon(server)


@on_loop
async def test_a_timeout_closes_the_stream() -> None:
    async with ChatServer(SLOW) as server:
        agent = agent_for(server)
        fallback = reactivex.return_value("too slow")
        source = agent.ask("hi").pipe(agent_ops.answers(), ops.timeout(0.1, fallback))
        assert await all_of(source) == ["too slow"]
        await closed_soon(server)
        await agent.wait_for_idle()


@on_loop
async def test_a_failed_model_falls_back_to_another() -> None:
    async with ChatServer(refuses(500, "down")) as broken, ChatServer(says("here")) as spare:
        first, second = agent_for(broken), agent_for(spare)
        source = first.ask("hi").pipe(
            agent_ops.raise_on_error(), ops.catch(lambda *_: second.ask("hi")), agent_ops.answers()
        )
        assert await all_of(source) == ["here"]
        await closed_soon(broken)


@on_loop
async def test_dispose_in_mid_stream_is_seen_by_the_server_at_once() -> None:
    async with ChatServer(SLOW) as server:
        agent = agent_for(server)
        run = agent.prompt("hi")
        await server.until(lambda: server.requests)
        await asyncio.sleep(0.25)
        run.dispose()
        assert agent.active_run is None
        assert agent.messages[-1].text == "one "
        await closed_soon(server)
        await agent.wait_for_idle()


@on_loop
async def test_an_interrupting_message_replaces_the_stream() -> None:
    async with ChatServer(SLOW, says("sure")) as server:
        agent = agent_for(server)
        run = agent.prompt("hi")
        await server.until(lambda: server.requests)
        await asyncio.sleep(0.25)
        agent.steer("shorter", interrupt=True)
        await server.until(lambda: server.requests[0].closed is not None, seconds=0.1)
        await run
        assert [message.text for message in agent.messages] == ["hi", "one ", "shorter", "sure"]


@on_loop
async def test_a_slow_reader_slows_the_read() -> None:
    async with ChatServer(answer(text(*["x" * 2000] * 600), finish("stop"))) as server:
        agent = agent_for(server)
        taken = 0
        run = agent.prompt("hi")
        async for _ in run:
            taken += 1
            if taken % 100 == 0:
                await asyncio.sleep(0.02)
        assert len(run.text) == 1_200_000
        assert server.requests[0].answered


@on_loop
async def test_tools_run_between_two_requests() -> None:
    @tool
    async def weather(city: str) -> str:
        """The weather."""
        await asyncio.sleep(0.01)
        return f"rain in {city}"

    calls = answer(tool_call("weather", {"city": "Oslo"}), finish("tool_calls"), usage(10, 5))
    async with ChatServer(calls, says("Take an umbrella.")) as server:
        agent = agent_for(server, tools=[weather])
        totals = await all_of(agent.ask("Oslo?").pipe(agent_ops.usage_totals()))
        assert agent.messages[-1].text == "Take an umbrella."
        assert server.requests[1].json["messages"][-1]["content"] == "rain in Oslo"
        assert totals[-1].input == 15
