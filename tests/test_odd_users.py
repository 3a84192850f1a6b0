"""Users' code that does what it should not, from wherever it is called: nothing hangs, nothing is lost unheard."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import reactivex
from reactivex import operators as ops
from reactivex.scheduler import NewThreadScheduler, ThreadPoolScheduler
from reactivex.subject import Subject

from rx_agent import (
    AfterToolCallResult,
    Agent,
    AgentEndEvent,
    AssistantMessage,
    ConfigurationError,
    QueueMode,
    RxAgentError,
    ToolCall,
    ToolContext,
    ToolExecutionMode,
    ToolResult,
    ToolResultMessage,
    UserMessage,
    tool,
)
from rx_agent.messages import message_from_json, to_json
from rx_agent.providers.scripted import Response, call, say, scripted
from tests.invariants import Watch
from tests.on_loop import on_loop
from tests.providers.loopback import ChatServer, says

SOON = 5.0
"""Seconds after which a test counts as hung."""


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is reported while the test runs."""
    seen: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    return seen


def in_another_loop(work: Callable[[], Awaitable[Any]]) -> Any:
    """What ``work()`` gives, awaited in an event loop of a thread of its own."""
    outcome: list[Any] = []

    async def main() -> Any:
        async with asyncio.timeout(SOON):
            return await work()

    def body() -> None:
        try:
            outcome.append(asyncio.run(main()))
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join(2 * SOON)
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


# --- waiting in the wrong place ----------------------------------------------------------------------------


def waits_from_another_loop(wait: Callable[[Agent, Any], Awaitable[Any]]) -> None:
    async def main() -> None:
        agent = Agent(stream_function=scripted([Response([say("a", "b", "c")], every=0.01)]))
        heard: list[str] = []

        async def listener(event: Any) -> None:
            await asyncio.sleep(0.005)
            heard.append(event.type)

        agent.subscribe(listener)
        run = agent.prompt("hi")

        async def there() -> Any:
            return await wait(agent, run)

        await asyncio.to_thread(in_another_loop, there)
        assert heard[-1] == "agent_end"

    asyncio.run(main())


def test_a_run_can_be_awaited_from_another_event_loop() -> None:
    waits_from_another_loop(lambda agent, run: run)


def test_idle_can_be_awaited_from_another_event_loop() -> None:
    waits_from_another_loop(lambda agent, run: agent.wait_for_idle())


def test_waiting_for_what_a_closed_loop_left_behind_ends() -> None:
    agent = Agent(stream_function=scripted(["one", "two"]))

    async def listener(event: Any) -> None:
        await asyncio.sleep(0)

    agent.subscribe(listener)
    loop = asyncio.new_event_loop()

    async def begin() -> None:
        agent.prompt("hi")

    loop.run_until_complete(begin())
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    asyncio.run(asyncio.wait_for(agent.wait_for_idle(), SOON))


@on_loop
async def test_a_tool_that_awaits_its_own_run_is_told_that_it_waits_for_itself() -> None:
    @tool
    async def impatient() -> str:
        """Waits for the end of the run."""
        assert agent.active_run is not None
        await agent.active_run
        return "never"

    @tool
    async def curious() -> str:
        """Reads the events of the run."""
        assert agent.active_run is not None
        async for _ in agent.active_run:
            pass
        return "never"

    agent = Agent(
        stream_function=scripted([[call("impatient"), call("curious")], "ok"]), tools=[impatient, curious]
    )
    async with asyncio.timeout(SOON):
        await agent.prompt("go")
    assert ["wait for itself" in message.text for message in agent.messages[2:4]] == [True, True]
    assert agent.messages[-1].text == "ok"


@on_loop
async def test_a_listener_that_awaits_its_own_run_is_told_so_and_one_that_does_after_the_end_is_not() -> None:
    outcomes: list[Any] = []

    async def listener(event: Any) -> None:
        if event.type in ("turn_start", "agent_end"):
            try:
                outcomes.append(await run)
            except RxAgentError as error:
                outcomes.append(error)

    async with ChatServer(says("hello")) as server, asyncio.timeout(SOON):
        agent = Agent(model=server.model())
        agent.subscribe(listener)
        run = agent.prompt("hi")
        await run
        await agent.wait_for_idle()
    assert isinstance(outcomes[0], RxAgentError)
    assert isinstance(outcomes[1], AgentEndEvent)


# --- what comes after the end ------------------------------------------------------------------------------


@on_loop
async def test_what_a_plain_tool_raises_after_the_abort_is_reported() -> None:
    seen: list[Any] = []
    hook, sys.unraisablehook = sys.unraisablehook, seen.append
    try:
        left = threading.Event()

        @tool
        def stubborn(context: ToolContext) -> str:
            """Works until the abort and fails then."""
            context.signal.wait(SOON)
            try:
                raise ValueError("cleaning up went wrong")
            finally:
                left.set()

        @tool
        def drip(context: ToolContext) -> Any:
            """Fails in its cleanup."""
            try:
                yield "one"
                context.signal.wait(SOON)
                yield "two"
            finally:
                raise KeyError("drip")

        agent = Agent(stream_function=scripted([[call("stubborn"), call("drip")]]), tools=[stubborn, drip])
        run = agent.prompt("go")
        await agent.events.pipe(ops.filter(lambda event: event.type == "tool_execution_update"), ops.take(1))
        run.dispose()
        await asyncio.to_thread(left.wait, SOON)
        for _ in range(100):
            await asyncio.sleep(0.01 if len(seen) < 2 else 0)
    finally:
        sys.unraisablehook = hook
    assert {type(report.exc_value) for report in seen} == {ValueError, KeyError}
    assert all("after the end" in report.err_msg for report in seen)


# --- exceptions that are none ------------------------------------------------------------------------------


class Unspeakable(Exception):
    """Cannot even be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def odd_errors() -> list[BaseException]:
    return [asyncio.CancelledError("odd"), GeneratorExit(), Unspeakable()]


def raising(error: BaseException) -> Callable[..., Any]:
    def function(*_: Any) -> Any:
        raise error

    return function


def an_observable_raising(error: BaseException) -> Callable[..., Any]:
    return lambda *_: reactivex.create(raising(error))


HOOKS = [
    "convert_to_llm",
    "transform_context",
    "before_tool_call",
    "after_tool_call",
    "prepare_next_turn",
    "should_stop_after_turn",
    "get_api_key",
]


@pytest.mark.parametrize("error", odd_errors(), ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("make", [raising, an_observable_raising])
@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_that_raises_whatever_never_hangs_the_run(hook: str, make: Any, error: BaseException) -> None:
    @tool
    def look() -> str:
        """Looks."""
        return "seen"

    async def main() -> None:
        agent = Agent(stream_function=scripted([[call("look")], "ok"]), tools=[look], **{hook: make(error)})
        watch = Watch(agent)
        async with asyncio.timeout(SOON):
            end = await agent.prompt("go")
        watch.at_rest()
        in_a_tool = hook in ("before_tool_call", "after_tool_call")
        assert end.reason == ("completed" if in_a_tool else "error")
        said = agent.messages[2].text if in_a_tool else end.error_message
        assert said
        assert type(error).__name__ in said

    asyncio.run(main())


@pytest.mark.parametrize("error", odd_errors(), ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("make", [raising, an_observable_raising])
def test_a_stream_function_that_raises_whatever_becomes_a_failed_answer(
    make: Any, error: BaseException
) -> None:
    agent = Agent(stream_function=make(error), model=scripted([]).model)
    run = agent.prompt("go")
    assert run.end is not None
    assert run.end.reason == "error"
    assert type(error).__name__ in (run.end.error_message or "")


@pytest.mark.parametrize("error", odd_errors(), ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("delay", [0.0, 0.01])
def test_a_script_that_raises_whatever_becomes_a_failed_answer(delay: float, error: BaseException) -> None:
    async def main() -> None:
        agent = Agent(stream_function=scripted(raising(error)))
        async with asyncio.timeout(SOON):
            end = await agent.prompt("go")
        assert end.reason == "error"
        assert type(error).__name__ in (end.error_message or "")

    asyncio.run(main())


@pytest.mark.parametrize("error", odd_errors(), ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("make", [raising, an_observable_raising])
def test_a_tool_that_raises_whatever_gives_an_error_result(make: Any, error: BaseException) -> None:
    body = make(error)

    @tool
    def odd() -> reactivex.Observable[Any]:
        """Odd."""
        return body()

    async def main() -> None:
        agent = Agent(stream_function=scripted([[call("odd")], "ok"]), tools=[odd])
        async with asyncio.timeout(SOON):
            await agent.prompt("go")
        assert agent.messages[2].is_error
        assert type(error).__name__ in agent.messages[2].text
        assert agent.messages[-1].text == "ok"

    asyncio.run(main())


@pytest.mark.parametrize("error", odd_errors(), ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("hook", ["on_payload", "on_response"])
def test_a_request_hook_that_raises_whatever_fails_the_answer_and_closes_the_connection(
    hook: str, error: BaseException
) -> None:
    async def main() -> None:
        async with ChatServer(says("hello")) as server, asyncio.timeout(SOON):
            agent = Agent(model=server.model(), **{hook: raising(error)})
            end = await agent.prompt("go")
            await agent.wait_for_idle()
        assert end.reason == "error"
        assert hook in (end.error_message or "")

    asyncio.run(main())


def test_an_async_stream_function_is_refused_with_what_to_write() -> None:
    async def stream(model: Any, context: Any, options: Any) -> Any: ...

    run = Agent(stream_function=stream, model=scripted([]).model).prompt("go")  # type: ignore[arg-type]
    assert run.end is not None
    assert "returned coroutine; it must be a plain function that returns an Observable" in str(
        run.end.error_message
    )


@pytest.mark.parametrize(
    ("hook", "answer", "said"),
    [
        ("convert_to_llm", "text", "convert_to_llm returned str 'text'; return a list of UserMessage"),
        ("convert_to_llm", ["text"], "convert_to_llm returned a list whose item 0 is str 'text'"),
        ("transform_context", 7, "transform_context returned int 7; return a list of messages"),
        ("transform_context", [{"role": "user"}], "transform_context returned a list whose item 0 is dict"),
        ("get_api_key", b"secret", "get_api_key returned bytes; return a str or None"),
    ],
)
def test_a_hook_that_answers_junk_is_named(hook: str, answer: Any, said: str) -> None:
    agent = Agent(stream_function=scripted(["ok"]), **{hook: lambda *_: answer})
    end = agent.prompt("go").end
    assert end is not None
    assert said in str(end.error_message)
    assert "secret" not in str(end.error_message)


# --- in the middle of a run --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", list(ToolExecutionMode))
def test_a_fork_in_the_middle_of_a_turn_can_be_prompted(mode: ToolExecutionMode) -> None:
    twins: list[Agent] = []

    @tool
    def branch(n: int) -> str:
        """Forks the agent that calls it."""
        twins.append(agent.fork())
        return str(n)

    provider = scripted([[call("branch", n=1), call("branch", n=2)], [call("branch", n=3)], "done", "yes"])
    agent = Agent(stream_function=provider, tools=[branch], tool_execution=mode)
    agent.prompt("go")
    roles = [[message.role for message in twin.messages] for twin in twins]
    assert roles == [["user"], ["user"], ["user", "assistant", "tool_result", "tool_result"]]
    assert twins[-1].prompt("and you?").text == "yes"


def test_a_fork_at_rest_has_the_whole_transcript_however_it_looks() -> None:
    orphan = AssistantMessage(content=ToolCall(id="1", name="f"), stop_reason="tool_use")
    agent = Agent(stream_function=scripted(["ok"]), messages=[UserMessage(content="hi"), orphan])
    assert list(agent.fork().messages) == [UserMessage(content="hi"), orphan]


@pytest.mark.parametrize("early", [1, 3])
def test_who_hears_of_the_past_and_aborts_hears_of_the_end_too(early: int) -> None:
    answers: Subject[Any] = Subject()

    @tool
    def wait() -> reactivex.Observable[Any]:
        """Waits."""
        return answers

    agent = Agent(stream_function=scripted([[call("wait")]]), tools=[wait])
    run = agent.prompt("go")
    seen: list[str] = []
    ended: list[bool] = []

    def late(event: Any) -> None:
        seen.append(event.type)
        if len(seen) == early:
            run.dispose()

    run.subscribe(late, on_completed=lambda: ended.append(True))
    live: list[str] = []
    run.subscribe(lambda event: live.append(event.type))
    assert seen == live
    assert seen[-1] == "agent_end"
    assert ended == [True]


def test_who_hears_of_the_present_state_and_changes_it_hears_of_the_change() -> None:
    agent = Agent(stream_function=scripted(["ok"]), system_prompt="one")
    prompts: list[str] = []

    def on_state(state: Any) -> None:
        prompts.append(state.system_prompt)
        if len(prompts) == 1:
            agent.system_prompt = "two"

    agent.states.subscribe(on_state)
    assert prompts == ["one", "two"]


def test_an_abort_at_the_answers_end_closes_a_sequential_batch_call_by_call() -> None:
    @tool(execution_mode="sequential")
    def step(n: int) -> str:
        """A step."""
        return str(n)

    agent = Agent(stream_function=scripted([[call("step", n=1), call("step", n=2)]]), tools=[step])
    seen: list[str] = []

    def listener(event: Any) -> None:
        seen.append(event.type)
        if event.type == "message_end" and event.message.role == "assistant":
            agent.abort()

    agent.subscribe(listener)
    agent.prompt("go")
    one = ["tool_execution_start", "tool_execution_end", "message_start", "message_end"]
    assert seen[seen.index("tool_execution_start") :] == [*one, *one, "turn_end", "agent_end"]


def test_two_calls_of_one_id_are_both_pending_until_both_have_ended() -> None:
    asked = AssistantMessage(content=[ToolCall(id="x", name="wait"), ToolCall(id="x", name="wait")])
    doors = [Subject[Any](), Subject[Any]()]
    unopened = iter(doors)

    @tool
    def wait() -> reactivex.Observable[Any]:
        """Waits."""
        return next(unopened)

    agent = Agent(stream_function=scripted([asked, "ok"]), tools=[wait])
    run = agent.prompt("go")
    assert agent.state.pending_tool_calls == {"x"}
    doors[0].on_next(ToolResult(content="1"))
    assert agent.state.pending_tool_calls == {"x"}
    doors[1].on_next(ToolResult(content="2"))
    assert agent.state.pending_tool_calls == frozenset()
    assert run.text == "ok"


@pytest.mark.parametrize("value", [0, -1, 1.5, "two"])
def test_a_bound_that_is_none_is_refused_however_it_is_given(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"max_concurrency: .* must be a whole number from 1 up"):
        Agent(stream_function=scripted([]), max_concurrency=value)
    agent = Agent(stream_function=scripted([]))
    with pytest.raises(ConfigurationError, match="max_concurrency"):
        agent.max_concurrency = value


# --- arguments and results ---------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [90, 150, 300, 1_000, 100_000])
@pytest.mark.parametrize("brackets", [("[", "]"), ('{"a":', "}")])
def test_arguments_nested_too_deep_are_answered_not_fatal(levels: int, brackets: tuple[str, str]) -> None:
    @tool
    def look(where: Any) -> str:
        """Looks."""
        return "seen"

    opening, closing = brackets
    text = '{"where": ' + opening * levels + "1" + closing * levels + "}"
    piece = call("look")
    script = [[type(piece)("look", chunks=(text,))], "ok"]
    agent = Agent(stream_function=scripted(script), tools=[look])
    end = agent.prompt("go").end
    assert end is not None
    assert end.text == "ok"
    assert agent.messages[2].is_error == (levels > 100)
    for message in agent.messages:
        assert message_from_json(to_json(message)) == message


@pytest.mark.parametrize(
    "details",
    [
        {(1, 2): "pair"},
        {None: 1},
        {3: {4: 5}},
        {"when": {frozenset({1}): 2}},
        {"a": {1, 2}},
        [b"\xff"],
        {b"k": 1},
    ],
    ids=str,
)
def test_details_of_any_shape_can_be_written(details: Any) -> None:
    result = ToolResult(content="x", details=details)
    assert '"details"' in to_json(result)


# --- threads -----------------------------------------------------------------------------------------------


class PooledThreads(ThreadPoolScheduler):
    """Few threads, which end."""

    def __init__(self) -> None:
        super().__init__(4)


@pytest.mark.parametrize("scheduler", [NewThreadScheduler, PooledThreads])
def test_runs_on_threads_end_however_thin_they_are_sliced(scheduler: Any) -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(40):
            script = [Response([call("look")], every=0.0001), Response([say("a", "b")], every=0.0001)]

            @tool
            def look() -> reactivex.Observable[Any]:
                """Looks."""
                return reactivex.timer(0.0001).pipe(ops.map(lambda _: "seen"))

            threads = scheduler()
            agent = Agent(stream_function=scripted(script), tools=[look], scheduler=threads)
            done = threading.Event()
            agent.prompt("go").subscribe(on_completed=done.set)
            assert done.wait(SOON), "the run stopped in the middle"
            assert agent.messages[-1].text == "ab"
            if isinstance(threads, PooledThreads):
                threads.executor.shutdown()
    finally:
        sys.setswitchinterval(interval)


def test_events_are_told_one_at_a_time_whoever_steers_and_aborts_from_where() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for round_ in range(30):
            script = [Response([say(*"abcdefgh")], every=0.0002)] * 5
            agent = Agent(stream_function=scripted(script), scheduler=NewThreadScheduler())
            watch = Watch(agent)
            telling = threading.Lock()
            overlaps: list[str] = []

            def listener(event: Any, _: Any = None, telling: Any = telling, overlaps: Any = overlaps) -> None:
                if not telling.acquire(blocking=False):
                    overlaps.append(event.type)
                    return
                time.sleep(0.00005)
                telling.release()

            agent.subscribe(listener)
            done = threading.Event()
            agent.prompt("go").subscribe(on_completed=done.set)
            time.sleep(0.0003 * (round_ % 7))
            agent.steer("other way", interrupt=True)
            time.sleep(0.0003 * (round_ % 5))
            agent.abort()
            assert done.wait(SOON)
            assert overlaps == []
            watch.at_rest()
    finally:
        sys.setswitchinterval(interval)


# --- leaving, and being cut off ----------------------------------------------------------------------------


@on_loop
async def test_who_leaves_is_told_nothing_more_and_its_coroutine_is_cancelled() -> None:
    agent = Agent(stream_function=scripted([Response([say(*"abcdef")], every=0.005)]))
    told: list[str] = []
    others: list[str] = []
    fate: list[str] = []
    begun = asyncio.Event()

    async def slow(event: Any) -> None:
        told.append(event.type)
        begun.set()
        try:
            await asyncio.sleep(SOON)
        except asyncio.CancelledError:
            fate.append("cancelled")
            raise

    async def other(event: Any) -> None:
        others.append(event.type)

    leaving = agent.subscribe(slow)
    agent.subscribe(other)
    run = agent.prompt("hi")
    await begun.wait()
    leaving.dispose()
    async with asyncio.timeout(SOON / 2):
        await run
    assert (told, fate) == (["agent_start"], ["cancelled"])
    assert others[0] == "agent_start"
    assert others[-1] == "agent_end"


@on_loop
async def test_a_coroutine_listener_may_leave_from_inside_itself_and_from_another_thread() -> None:
    agent = Agent(stream_function=scripted([Response([say(*"abcdef")], every=0.005), "again"]))
    told: list[str] = []

    async def once(event: Any) -> None:
        leaving.dispose()
        await asyncio.sleep(0.01)
        told.append(event.type)

    leaving = agent.subscribe(once)
    await agent.prompt("hi")
    assert told == ["agent_start"]

    heard: list[str] = []

    async def listener(event: Any) -> None:
        heard.append(event.type)
        await asyncio.sleep(SOON)

    from_elsewhere = agent.subscribe(listener)
    run = agent.prompt("hi")
    await asyncio.to_thread(from_elsewhere.dispose)
    async with asyncio.timeout(SOON / 2):
        await run
    assert heard in ([], ["agent_start"])


@on_loop
async def test_cancelling_who_waits_still_cancels_a_listener_that_has_been_left() -> None:
    """A dropped delivery must not swallow the cancellation of the worker itself."""
    agent = Agent(stream_function=scripted(["one"]))
    begun = asyncio.Event()

    async def stubborn(event: Any) -> None:
        begun.set()
        try:
            await asyncio.sleep(SOON)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)  # goes on for a while, and ends as if nothing had been

    leaving = agent.subscribe(stubborn)
    agent.prompt("hi")
    await begun.wait()
    leaving.dispose()
    leaving.dispose()
    async with asyncio.timeout(SOON / 2):
        await agent.wait_for_idle()
    assert asyncio.all_tasks() == {asyncio.current_task()}


def abandoned(wait: Callable[[Agent, Any], Awaitable[Any]]) -> None:
    agent = Agent(stream_function=scripted([Response(["never"], delay=SOON), "two"]))
    loop = asyncio.new_event_loop()

    async def begin() -> Any:
        return agent.prompt("hi")

    run = loop.run_until_complete(begin())
    loop.close()

    async def main() -> None:
        async with asyncio.timeout(SOON):
            await wait(agent, run)

    asyncio.run(main())
    assert run.end.reason == "aborted"
    assert agent.active_run is None


def test_idle_comes_for_a_run_whose_loop_was_closed_under_it() -> None:
    abandoned(lambda agent, run: agent.wait_for_idle())


def test_a_run_whose_loop_was_closed_under_it_can_be_awaited() -> None:
    async def wait(agent: Agent, run: Any) -> None:
        assert (await run).reason == "aborted"

    abandoned(wait)


def test_the_events_of_a_run_whose_loop_was_closed_under_it_end() -> None:
    async def wait(agent: Agent, run: Any) -> None:
        assert [event.type async for event in run][-1] == "agent_end"

    abandoned(wait)


@on_loop
async def test_steering_from_another_thread_keeps_its_order() -> None:
    agent = Agent(
        stream_function=scripted([Response(["never"], delay=SOON), "answered"]), steering_mode=QueueMode.ALL
    )
    agent.prompt("hi")

    def steer() -> None:
        agent.steer("first", interrupt=True)
        agent.steer("second")
        assert [message.text for message in agent.steering_queue] == ["first", "second"]

    # The loop stands still meanwhile, so that nothing of it can slip in between.
    thread = threading.Thread(target=steer)
    thread.start()
    thread.join()
    async with asyncio.timeout(SOON / 2):
        await agent.wait_for_idle()
    said = [message.text for message in agent.messages if isinstance(message, UserMessage)]
    assert said == ["hi", "first", "second"]
    assert agent.messages[-1].text == "answered"  # type: ignore[union-attr]


@on_loop
async def test_an_abort_after_a_tools_end_does_not_say_that_it_was_interrupted() -> None:
    @tool
    def write(text: str) -> str:
        """Writes."""
        return text

    hooked = asyncio.Event()

    async def after(context: Any) -> None:
        hooked.set()
        await asyncio.sleep(SOON)

    agent = Agent(stream_function=scripted([[call("write", text="x")]]), tools=[write], after_tool_call=after)
    agent.prompt("hi")
    await hooked.wait()
    agent.abort()
    await agent.wait_for_idle()
    result = agent.messages[2]
    assert isinstance(result, ToolResultMessage)
    assert "had run to its end" in result.text
    assert "interrupted" not in result.text


@pytest.mark.parametrize("wrong", [{"is_error": "x"}, {"content": 3}, {"usage": 3}, {"terminate": "maybe?"}])
def test_a_hook_that_overrides_with_junk_gives_an_error_result(wrong: dict[str, Any]) -> None:
    @tool
    def write(text: str) -> str:
        """Writes."""
        return text

    agent = Agent(
        stream_function=scripted([[call("write", text="x")], "done"]),
        tools=[write],
        after_tool_call=lambda context: AfterToolCallResult(**wrong),
    )
    Watch(agent)
    agent.prompt("hi")
    result = agent.messages[2]
    assert isinstance(result, ToolResultMessage)
    assert result.is_error
    assert next(iter(wrong)) in result.text
    assert agent.messages[-1].text == "done"  # type: ignore[union-attr]


def test_an_observer_of_ask_that_raises_is_reported_by_its_own_name(reports: list[Any]) -> None:
    def my_listener(event: Any) -> None:
        raise ValueError("mine")

    Agent(stream_function=scripted(["one"])).ask("hi").subscribe(my_listener)
    assert [report.object for report in reports] == [my_listener]
