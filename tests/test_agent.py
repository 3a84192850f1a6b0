"""The agent without an event loop: virtual time and plain calls."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import reactivex
from reactivex import operators as ops
from reactivex.scheduler import VirtualTimeScheduler

from rx_agent import (
    AfterToolCallResult,
    Agent,
    AgentBusyError,
    AgentContext,
    AgentLoopTurnUpdate,
    AssistantMessage,
    BeforeToolCallResult,
    ConfigurationError,
    ContinueError,
    LoopConfig,
    Model,
    NoEventLoopError,
    QueueMode,
    SteeringPoint,
    ThinkingLevel,
    ToolContext,
    ToolDefinitionError,
    UserMessage,
    agent_loop,
    reduce,
    tool,
)
from rx_agent.events import DoneEvent, ErrorEvent
from rx_agent.message_builder import MessageBuilder
from rx_agent.providers.scripted import Call, Response, call, say, scripted
from tests.invariants import Watch


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def waiting(name: str, seconds: float) -> Any:
    """A tool that takes ``seconds`` of the scheduler's time."""
    return tool(name=name)(lambda: reactivex.timer(seconds).pipe(ops.map(lambda _: f"{name} done")))


def texts(agent: Agent) -> list[str]:
    return [message.text for message in agent.messages]


class Timeline:
    """An agent in virtual time."""

    def __init__(self, responses: Any, **fields: Any) -> None:
        self.scheduler = VirtualTimeScheduler()
        self.provider = scripted(responses)
        self.agent = Agent(stream_function=self.provider, scheduler=self.scheduler, **fields)
        self.watch = Watch(self.agent)
        self.ended_at: float | None = None
        self.agent.subscribe(self.note_end)

    def note_end(self, event: Any) -> None:
        if event.type == "agent_end":
            self.ended_at = self.scheduler.clock

    def at(self, time: float, action: Any) -> None:
        self.scheduler.schedule_absolute(time, lambda *_: action())

    def play(self) -> None:
        self.scheduler.start()
        self.watch.at_rest()


# --- wrong use ---------------------------------------------------------------------------------------------


def test_an_agent_without_a_model_says_how_to_give_one() -> None:
    with pytest.raises(ConfigurationError, match="give Agent\\(model="):
        Agent()


def test_an_unknown_api_names_the_nearest() -> None:
    agent = Agent(model=Model(id="m", api="openai_chatt", provider="p"))
    with pytest.raises(ConfigurationError, match="openai_chat"):
        agent.prompt("hi")


def test_a_network_model_without_an_event_loop_says_what_to_do() -> None:
    agent = Agent(model=Model(id="m", api="openai_chat", provider="p", base_url="http://127.0.0.1:9"))
    with pytest.raises(NoEventLoopError, match="prompt_sync"):
        agent.prompt("hi")
    errors: list[Exception] = []
    agent.ask("hi").subscribe(on_error=errors.append)
    assert isinstance(errors[0], NoEventLoopError)
    assert agent.active_run is None


def test_a_prompt_while_busy_is_refused_and_changes_nothing() -> None:
    line = Timeline([Response(["slow"], delay=5)])
    line.agent.prompt("hi")
    for refused in (lambda: line.agent.prompt("again"), line.agent.continue_, line.agent.reset):
        with pytest.raises(AgentBusyError, match=r"steer.*follow_up"):
            refused()
    line.play()
    assert texts(line.agent) == ["hi", "slow"]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="two are named 'add'"):
        Agent(stream_function=scripted([]), tools=[add, add])


def test_a_tool_with_an_unannotated_parameter_is_refused() -> None:
    def grow(size) -> str:  # type: ignore[no-untyped-def]
        return str(size)

    with pytest.raises(ToolDefinitionError, match="size"):
        Agent(stream_function=scripted([]), tools=[grow])


@pytest.mark.parametrize("nonsense", [7, None, b"bytes", [], [7], {"role": "user"}, object()])
def test_a_prompt_that_is_none_is_refused_by_name(nonsense: Any) -> None:
    agent = Agent(stream_function=scripted(["hi"]))
    with pytest.raises(ConfigurationError, match="prompt:"):
        agent.prompt(nonsense)
    assert agent.active_run is None
    assert agent.prompt("hi").text == "hi"


@pytest.mark.parametrize(
    "bad", [{"thinking_level": "huge"}, {"steering_mode": "some"}, {"max_concurrency": 0}]
)
def test_settings_out_of_range_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"huge|some|max_concurrency"):
        Agent(stream_function=scripted([]), **bad)


def test_continue_needs_something_to_go_on_from() -> None:
    agent = Agent(stream_function=scripted(["hello"]))
    with pytest.raises(ContinueError, match="empty"):
        agent.continue_()
    agent.prompt("hi")
    with pytest.raises(ContinueError, match="nothing is queued"):
        agent.continue_()


# --- listeners ---------------------------------------------------------------------------------------------


def test_a_listener_that_raises_is_reported_unsubscribed_and_hurts_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reports: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reports.append)
    agent = Agent(stream_function=scripted(["hello"]))
    seen: list[str] = []

    def broken(event: Any) -> None:
        raise ValueError("listener broke")

    agent.subscribe(broken)
    agent.events.subscribe(lambda event: 1 / 0)
    agent.subscribe(lambda event: seen.append(event.type))
    run = agent.prompt("hi")
    assert run.text == "hello"
    assert seen[-1] == "agent_end"
    assert [type(report.exc_value) for report in reports] == [ValueError, ZeroDivisionError]
    assert "broken" in reports[0].err_msg


def test_a_subscriber_of_ask_that_raises_has_left_and_its_run_is_aborted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reports: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reports.append)
    line = Timeline([Response([say("a", "b")], every=1)])
    line.agent.ask("hi").pipe(ops.filter(lambda event: event.type == "message_update")).subscribe(
        lambda event: 1 / 0
    )
    line.play()
    assert [type(report.exc_value) for report in reports] == [ZeroDivisionError]
    assert line.agent.messages[-1].stop_reason == "aborted"


def test_the_report_reaches_stderr_where_no_hook_is_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    agent = Agent(stream_function=scripted(["hello"]))

    def broken(event: Any) -> None:
        raise ValueError("listener broke")

    agent.subscribe(broken)
    agent.prompt("hi")
    error = capsys.readouterr().err
    assert "listener" in error
    assert "broken" in error
    assert "ValueError: listener broke" in error


def test_disposing_a_listener_stops_only_it() -> None:
    agent = Agent(stream_function=scripted(["hello"]))
    seen: list[str] = []
    subscription = agent.subscribe(lambda event: (seen.append(event.type), subscription.dispose()))
    assert agent.prompt("hi").text == "hello"
    assert seen == ["agent_start"]


def test_inside_a_listener_of_the_end_the_run_is_still_active() -> None:
    agent = Agent(stream_function=scripted(["hello", "never"]))
    refused: list[Exception] = []

    def ask_again(event: Any) -> None:
        if event.type == "agent_end":
            assert agent.active_run is not None
            try:
                agent.prompt("again")
            except AgentBusyError as error:
                refused.append(error)

    agent.subscribe(ask_again)
    run = agent.prompt("hi")
    assert len(refused) == 1
    assert agent.active_run is None
    assert run.done


def test_states_begin_with_the_present_one_and_follow_every_change() -> None:
    agent = Agent(stream_function=scripted([[say("a", "b")]]))
    states: list[Any] = []
    agent.states.subscribe(states.append)
    agent.thinking_level = ThinkingLevel.HIGH
    agent.prompt("hi")
    assert states[0].thinking_level is ThinkingLevel.OFF
    assert states[1].thinking_level is ThinkingLevel.HIGH
    streamed = [state.streaming_message.text for state in states if state.streaming_message is not None]
    assert streamed == ["hi", "", "", "a", "ab", "ab"]
    assert [len(state.messages) for state in states][-1] == 2
    assert states[-1] == agent.state


# --- aborting ----------------------------------------------------------------------------------------------


class TwoNotes:
    """An agent whose model calls a synchronous tool twice, and a listener that does something at the nth event."""

    def __init__(self, nth: int, do: Any, *, timed: bool) -> None:
        self.noted: list[str] = []

        @tool
        def note(what: str) -> str:
            """Notes."""
            self.noted.append(what)
            return what

        answer = [call("note", what="a"), call("note", what="b")]
        scheduler = VirtualTimeScheduler()
        pace = {"delay": 1, "every": 1} if timed else {}
        responses = [Response(content, **pace) for content in (answer, ["x"], ["y"])]
        self.agent = Agent(stream_function=scripted(responses), tools=[note], scheduler=scheduler)
        self.seen: list[str] = []

        def count(event: Any) -> None:
            self.seen.append(event.type)
            if len(self.seen) == nth:
                do(self.agent)
                assert self.seen[-1] == event.type, "nothing is told in between"

        self.agent.subscribe(count)
        self.watch = Watch(self.agent)
        self.run = self.agent.prompt("go")
        scheduler.start()
        self.watch.at_rest()
        assert self.agent.active_run is None

    def may_have_noted(self, nth: int) -> list[str]:
        """What had been noted by the nth event: 15 is the end of the first call, 16 that of the second."""
        return ["a", "b"][: max(0, min(nth - 14, 2))]


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("nth", range(1, 22))
def test_an_abort_from_a_listener_of_any_event_takes_effect_right_after_it(nth: int, timed: bool) -> None:
    play = TwoNotes(nth, lambda agent: agent.abort(), timed=timed)
    assert play.run.end is not None
    assert play.run.end.reason == "aborted"
    assert texts(play.agent)[0] == "go", "the prompt is not lost"
    assert play.seen.count("agent_end") == 1
    assert play.noted == play.may_have_noted(nth), "no tool starts after the abort"


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("nth", range(1, 22))
def test_an_interruption_from_a_listener_of_any_event_goes_on_with_its_message(nth: int, timed: bool) -> None:
    play = TwoNotes(nth, lambda agent: agent.steer("instead", interrupt=True), timed=timed)
    assert play.run.end is not None
    assert play.run.end.reason == "completed"
    said = [message.text for message in play.agent.messages if message.role == "user"]
    assert said == ["go", "instead"]
    if nth > 4:
        assert play.noted == play.may_have_noted(nth), "no tool starts after the interruption"


def test_what_is_told_of_aborted_calls_is_true() -> None:
    line = Timeline(
        [[call("quick"), call("slow"), call("late")]],
        tools=[waiting("quick", 1), waiting("slow", 9), waiting("late", 9)],
        max_concurrency=2,
    )
    line.agent.prompt("go")
    line.at(0.5, line.agent.abort)
    line.play()
    quick, slow, late = (message.text for message in line.agent.messages[2:])
    assert "may have had effects" in quick
    assert "may have had effects" in slow
    assert "did not run and had no effect" in late


def test_queued_messages_stay_queued_over_an_abort() -> None:
    line = Timeline([Response(["slow"], delay=5), "yes", "and yes"])
    line.agent.prompt("hi")
    line.agent.steer("s")
    line.agent.follow_up("f")
    line.at(1, line.agent.abort)
    line.play()
    assert [message.text for message in line.agent.steering_queue] == ["s"]
    assert [message.text for message in line.agent.follow_up_queue] == ["f"]
    line.agent.continue_()
    line.play()
    assert texts(line.agent) == ["hi", "", "s", "yes", "f", "and yes"]


def test_continue_retries_from_an_error() -> None:
    agent = Agent(stream_function=scripted([Response(["half"], error_message="lost"), "whole"]))
    assert agent.prompt("hi").end.reason == "error"  # type: ignore[union-attr]
    assert agent.state.error_message == "lost"
    assert agent.continue_().text == "whole"
    assert agent.state.error_message is None


def test_a_tool_that_takes_too_long_is_stopped_in_virtual_time() -> None:
    slow = tool(name="slow", timeout=30)(lambda: reactivex.timer(3600))
    line = Timeline([[call("slow")], "so be it"], tools=[slow])
    line.agent.prompt("go")
    line.play()
    assert line.ended_at == 30
    assert "30 s" in line.agent.messages[2].text


# --- steering ----------------------------------------------------------------------------------------------


def test_an_interrupting_message_cuts_tools_short_and_goes_next() -> None:
    line = Timeline(
        [[call("slow"), call("quick")], "sure"], tools=[waiting("slow", 100), waiting("quick", 1)]
    )
    line.agent.prompt("go")
    line.agent.steer("earlier")
    line.at(5, lambda: line.agent.steer("stop", interrupt=True))
    line.play()
    assert line.ended_at == 5
    roles = [message.role for message in line.agent.messages]
    assert roles == ["user", "assistant", "tool_result", "tool_result", "user", "user", "assistant"]
    assert [message.text for message in line.agent.messages[-3:]] == ["earlier", "stop", "sure"]
    assert line.agent.messages[2].is_error
    assert not line.agent.messages[3].is_error


def test_steering_after_the_answer_waits_until_the_results_are_answered() -> None:
    def told(point: SteeringPoint) -> list[str]:
        agent = Agent(
            stream_function=scripted([[call("add", a=1, b=2)], "three", "ok"]),
            tools=[add],
            steering_point=point,
        )
        agent.subscribe(lambda event: agent.steer("s") if event.type == "tool_execution_start" else None)
        agent.prompt("go")
        return texts(agent)

    assert told(SteeringPoint.AFTER_TURN) == ["go", "", "3", "s", "three"]
    assert told(SteeringPoint.AFTER_ANSWER) == ["go", "", "3", "three", "s", "ok"]


def test_steer_from_an_observable_until_disposed() -> None:
    agent = Agent(stream_function=scripted(["a", "b"]))
    source: reactivex.Subject[Any] = reactivex.Subject()
    subscription = agent.steer_from(source)
    source.on_next("one")
    source.on_next(UserMessage(content="two"))
    subscription.dispose()
    source.on_next("three")
    assert [message.text for message in agent.steering_queue] == ["one", "two"]


def test_an_item_that_is_no_message_is_reported_and_the_source_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reports: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reports.append)
    agent = Agent(stream_function=scripted([]))
    agent.follow_up_from(reactivex.concat(reactivex.of(7, "ok"), reactivex.throw(ValueError("source broke"))))
    assert [message.text for message in agent.follow_up_queue] == ["ok"]
    assert [str(report.exc_value)[:10] for report in reports] == ["prompt: 7 ", "source bro"]


def test_queues_are_sequences_with_observable_contents() -> None:
    agent = Agent(stream_function=scripted([]), follow_up_mode=QueueMode.ALL)
    sizes: list[int] = []
    agent.follow_up_queue.contents.pipe(ops.map(len)).subscribe(sizes.append)
    agent.follow_up("a")
    agent.follow_up("b")
    assert agent.has_queued_messages()
    assert agent.follow_up_queue[1].text == "b"
    agent.clear_all_queues()
    assert sizes == [0, 1, 2, 0]
    assert not agent.has_queued_messages()


# --- hooks -------------------------------------------------------------------------------------------------


def test_hooks_may_leave_out_trailing_parameters_and_answer_observables() -> None:
    provider = scripted(["a", "b"])
    agent = Agent(stream_function=provider, transform_context=lambda messages: reactivex.of(1, messages[-1:]))
    agent.prompt("one")
    agent.prompt("two")
    assert [message.text for message in provider.requests[1][1].messages] == ["two"]


@pytest.mark.parametrize(
    "name",
    [
        "transform_context",
        "convert_to_llm",
        "get_api_key",
        "prepare_next_turn",
        "prepare_next_turn_with_context",
        "should_stop_after_turn",
    ],
)
def test_a_hook_that_raises_ends_the_run_with_the_reason(name: str) -> None:
    def broken(*args: Any) -> Any:
        raise RuntimeError(f"{name} broke")

    agent = Agent(stream_function=scripted([[call("add", a=1, b=2)], "three"]), tools=[add], **{name: broken})
    watch = Watch(agent)
    run = agent.prompt("go")
    watch.at_rest()
    assert run.end is not None
    assert run.end.reason == "error"
    assert run.end.error_message == f"{name} broke"
    assert agent.state.error_message == f"{name} broke"


@pytest.mark.parametrize(
    ("name", "answer"),
    [("before_tool_call", True), ("after_tool_call", "text"), ("before_tool_call", AfterToolCallResult())],
)
def test_a_tool_hook_that_answers_something_else_says_so_in_the_result(name: str, answer: Any) -> None:
    agent = Agent(
        stream_function=scripted([[call("add", a=1, b=2)], "ok"]),
        tools=[add],
        **{name: lambda context: answer},
    )
    agent.prompt("go")
    assert agent.messages[2].is_error
    assert f"{name} returned" in agent.messages[2].text


def test_the_second_prepare_hook_wins_and_changes_the_rest_of_the_run() -> None:
    other = Model(id="other", api="scripted", provider="scripted")
    provider = scripted([[call("add", a=1, b=2)], "three"])
    agent = Agent(
        stream_function=provider,
        tools=[add],
        prepare_next_turn=lambda context: AgentLoopTurnUpdate(thinking_level=ThinkingLevel.LOW),
        prepare_next_turn_with_context=lambda context: AgentLoopTurnUpdate(
            model=other, thinking_level=ThinkingLevel.MAX
        ),
    )
    agent.prompt("go")
    model, _, options = provider.requests[1]
    assert (model.id, options.thinking_level) == ("other", ThinkingLevel.MAX)
    assert agent.model.id == "scripted", "the agent's own setting is the user's"


@pytest.mark.parametrize(
    "update",
    [
        AgentLoopTurnUpdate(model="openai:gpt-5-mini"),  # type: ignore[arg-type]
        AgentLoopTurnUpdate(thinking_level="huge"),  # type: ignore[arg-type]
        AgentLoopTurnUpdate(context={"messages": []}),  # type: ignore[arg-type]
        AgentLoopTurnUpdate(context=AgentContext("", None, (), None)),  # type: ignore[arg-type]
        AgentLoopTurnUpdate(context=AgentContext("", None, (), scripted([]).model)),  # type: ignore[arg-type]
        AgentLoopTurnUpdate(context=AgentContext("", (), None, scripted([]).model)),  # type: ignore[arg-type]
        "nonsense",
    ],
)
def test_a_turn_update_that_cannot_be_used_ends_the_run_and_nothing_else(update: Any) -> None:
    agent = Agent(
        stream_function=scripted([[call("add", a=1, b=2)], "three"]),
        tools=[add],
        prepare_next_turn=lambda context: update,
    )
    watch = Watch(agent)
    run = agent.prompt("go")
    watch.at_rest()
    assert run.end is not None
    assert run.end.reason in ("error", "completed")
    assert agent.active_run is None


def test_before_tool_call_may_change_the_arguments_in_place() -> None:
    def double(context: Any) -> None:
        context.args["a"] *= 2

    agent = Agent(
        stream_function=scripted([[call("add", a=1, b=2)], "ok"]), tools=[add], before_tool_call=double
    )
    agent.prompt("go")
    assert agent.messages[2].text == "4"


def test_a_blocked_call_may_end_the_run() -> None:
    agent = Agent(
        stream_function=scripted([[call("add", a=1, b=2)]]),
        tools=[add],
        before_tool_call=lambda context: BeforeToolCallResult(block=True, reason="no", terminate=True),
    )
    run = agent.prompt("go")
    assert run.end is not None
    assert run.end.reason == "stopped"


def test_a_coroutine_hook_that_waits_needs_a_loop_and_says_so() -> None:
    import asyncio

    async def nap(messages: Any) -> Any:
        await asyncio.sleep(1)
        return messages

    agent = Agent(stream_function=scripted(["a"]), transform_context=nap)
    run = agent.prompt("go")
    assert run.end is not None
    assert "event loop" in (run.end.error_message or "")


# --- data and state ----------------------------------------------------------------------------------------


def test_calls_whose_arguments_are_no_json_are_answered_with_the_reason() -> None:
    agent = Agent(
        stream_function=scripted([[Call("add", {}, chunks=('{"a": 1, ', "oops"))], "ok"]), tools=[add]
    )
    agent.prompt("go")
    assert agent.messages[1].tool_calls[0].invalid_arguments == '{"a": 1, oops'
    assert "not a JSON object" in agent.messages[2].text


def test_calls_that_share_an_id_get_a_result_each() -> None:
    agent = Agent(
        stream_function=scripted(
            [[Call("add", {"a": 1, "b": 1}, id="x"), Call("add", {"a": 2, "b": 2}, id="x")], "ok"]
        ),
        tools=[add],
    )
    agent.prompt("go")
    assert texts(agent) == ["go", "", "2", "4", "ok"]


def test_replaying_a_runs_events_gives_the_same_state() -> None:
    agent = Agent(stream_function=scripted([[call("add", a=1, b=2)], [say("th", "ree")]]), tools=[add])
    before = agent.state
    run = agent.prompt("go")
    state = before
    run.subscribe(lambda event: None)
    events: list[Any] = []
    run.subscribe(events.append)
    for event in events:
        state = reduce(state, event)
    assert state == agent.state


def test_a_fork_shares_nothing_that_changes() -> None:
    agent = Agent(stream_function=scripted(lambda context: f"{len(context.messages)}"))
    agent.prompt("a")
    twin = agent.fork()
    twin.prompt("b")
    agent.prompt("c")
    assert texts(agent) == ["a", "1", "c", "3"]
    assert texts(twin) == ["a", "1", "b", "3"]


def test_messages_may_be_assigned_and_reset() -> None:
    agent = Agent(stream_function=scripted(["one", "two"]))
    agent.messages = [UserMessage(content="before")]
    agent.prompt("hi")
    assert texts(agent) == ["before", "hi", "one"]
    agent.steer("s")
    agent.reset()
    assert texts(agent) == []
    assert not agent.has_queued_messages()
    agent.prompt("again")
    assert texts(agent) == ["again", "two"]


def test_the_loop_alone_is_a_cold_observable() -> None:
    context = AgentContext("", (), (add.tool,) if hasattr(add, "tool") else (add,), scripted([]).model)
    run = agent_loop(
        [UserMessage(content="go")], context, LoopConfig(scripted(lambda c: f"{len(c.messages)}"))
    )
    for _ in range(2):
        seen: list[Any] = []
        run.subscribe(seen.append)
        assert seen[-1].text == "1"


def test_a_synchronous_run_can_be_left_from_within() -> None:
    agent = Agent(stream_function=scripted([[call("add", a=1, b=2)], "never"]), tools=[add])
    seen: list[str] = []
    agent.ask("go").pipe(ops.take(3), ops.map(lambda event: event.type)).subscribe(seen.append)
    assert seen == ["agent_start", "turn_start", "message_start"]
    assert agent.active_run is None
    Watch(agent).at_rest()


def test_a_thousand_tools_in_one_batch() -> None:
    calls = [call("add", a=number, b=1) for number in range(1000)]
    agent = Agent(stream_function=scripted([calls, "done"]), tools=[add])
    agent.prompt("go")
    assert [message.text for message in agent.messages[2:-1]] == [str(number + 1) for number in range(1000)]


def test_two_thousand_turns_do_not_use_up_the_stack() -> None:
    left = iter(range(2000))
    agent = Agent(
        stream_function=scripted(
            lambda context: [call("add", a=1, b=1)] if next(left, None) is not None else "end"
        ),
        tools=[add],
    )
    assert agent.prompt("go").text == "end"
    assert len(agent.messages) == 4002


def test_progress_is_told_as_it_comes() -> None:
    @tool
    def count(context: ToolContext) -> str:
        """Counts."""
        context.update("one")
        context.update("two")
        return "three"

    agent = Agent(stream_function=scripted([[call("count")], "ok"]), tools=[count])
    seen: list[str] = []
    agent.subscribe(
        lambda event: (
            seen.append(event.partial_result.text) if event.type == "tool_execution_update" else None
        )
    )
    agent.prompt("go")
    assert seen == ["one", "two"]
    assert agent.messages[2].text == "three"


# --- providers and interrupts ------------------------------------------------------------------------------


def provider(*events: Any) -> Any:
    """A stream function that emits just these, made from a fresh builder where they are functions."""

    def stream(model: Model, context: Any, options: Any) -> Any:
        builder = MessageBuilder(model)
        return reactivex.from_iterable([event(builder) if callable(event) else event for event in events])

    stream.model = scripted([]).model  # type: ignore[attr-defined]
    return stream


START, TEXT, DONE = MessageBuilder.start, MessageBuilder.text_start, lambda builder: builder.done("stop")


@pytest.mark.parametrize(
    ("events", "reason", "words"),
    [
        ((), "error", "without a done or error"),
        ((START, TEXT), "error", "without a done or error"),
        ((TEXT, DONE), "completed", None),
        ((START, START, DONE), "completed", None),
        ((START, DONE, DONE), "completed", None),
        ((START, DONE, TEXT), "completed", None),
        ((START, "garbage"), "error", "'garbage', which is no AssistantMessageEvent"),
        ((START, DoneEvent(None)), "error", "no AssistantMessageEvent"),  # type: ignore[arg-type]
        ((START, DoneEvent(AssistantMessage(stop_reason=None))), "completed", None),
        ((START, ErrorEvent(AssistantMessage(stop_reason="stop"))), "error", None),
    ],
)
def test_a_provider_that_breaks_its_contract_breaks_nothing_else(
    events: Any, reason: str, words: str | None
) -> None:
    agent = Agent(stream_function=provider(*events))
    watch = Watch(agent)
    run = agent.prompt("go")
    watch.at_rest()
    assert run.end is not None
    assert run.end.reason == reason
    assert (words or "") in (agent.state.error_message or "")


@pytest.mark.parametrize(
    "answer", [lambda *_: None, lambda *_: 1 / 0, lambda *_: reactivex.throw(OSError("x"))]
)
def test_a_stream_function_that_fails_is_a_failed_message(answer: Any) -> None:
    answer.model = scripted([]).model
    agent = Agent(stream_function=answer)
    watch = Watch(agent)
    run = agent.prompt("go")
    watch.at_rest()
    assert run.end is not None
    assert run.end.reason == "error"


def test_ctrl_c_in_a_synchronous_run_leaves_the_agent_usable() -> None:
    @tool
    def interrupted() -> str:
        """Is interrupted."""
        raise KeyboardInterrupt

    agent = Agent(stream_function=scripted([[call("interrupted")], "again"]), tools=[interrupted])
    watch = Watch(agent)
    with pytest.raises(KeyboardInterrupt):
        agent.prompt("go")
    watch.at_rest()
    assert agent.active_run is None
    assert agent.continue_().text == "again"


def test_a_prompt_inside_another_pipelines_step_runs_at_once() -> None:
    agent = Agent(stream_function=scripted(lambda context: context.messages[-1].text.upper()))
    seen: list[str] = []
    reactivex.of("a", "b").pipe(ops.map(lambda question: agent.prompt(question).text)).subscribe(seen.append)
    reactivex.of("c").pipe(ops.map(lambda question: agent.prompt_sync(question).text)).subscribe(seen.append)
    assert seen == ["A", "B", "C"]


def test_a_delta_of_a_block_that_never_began_hangs_nothing() -> None:
    agent = Agent(stream_function=provider(START, lambda builder: builder.text_delta(99, "z")))
    watch = Watch(agent)
    run = agent.prompt("go")
    watch.at_rest()
    assert run.end is not None
    assert run.end.reason == "error"


def test_a_listener_that_raises_no_exception_hurts_nobody_either(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reports.append)
    agent = Agent(stream_function=scripted(["hello"]))

    def odd(event: Any) -> None:
        raise GeneratorExit

    agent.subscribe(odd)
    agent.events.subscribe(odd)
    assert agent.prompt("hi").text == "hello"
    assert [report.exc_type for report in reports] == [GeneratorExit] * 2


def test_an_observer_of_a_queue_that_raises_loses_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reports.append)
    agent = Agent(stream_function=scripted(["a", "b"]))
    agent.steering_queue.contents.pipe(ops.filter(bool)).subscribe(lambda contents: 1 / 0)
    agent.steer("s")
    agent.prompt("go")
    assert texts(agent) == ["go", "s", "a"]
    assert len(reports) == 1


def test_a_model_that_is_none_is_refused_when_assigned() -> None:
    agent = Agent(stream_function=scripted(["a"]))
    with pytest.raises(ConfigurationError, match="is no Model"):
        agent.model = "openai:gpt-5-mini"  # type: ignore[assignment]
    assert agent.prompt("go").text == "a"


def test_an_abort_at_the_start_of_an_answer_that_failed_at_once_adds_no_second_answer() -> None:
    agent = Agent(stream_function=scripted([Response(error_message="down", fails_before_start=True)]))
    watch = Watch(agent)
    agent.subscribe(
        lambda event: (
            agent.abort() if event.type == "message_start" and event.message.role == "assistant" else None
        )
    )
    agent.prompt("go")
    watch.at_rest()
    assert [(message.role, message.text) for message in agent.messages] == [("user", "go"), ("assistant", "")]
    assert agent.state.error_message == "down"


@pytest.mark.parametrize("ending", ["alone", "abort", "interrupt"])
@pytest.mark.parametrize("whose", ["tool", "provider"])
def test_a_disposal_that_raises_is_reported_and_the_run_ends(
    whose: str, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reports.append)

    def broken() -> None:
        raise ValueError("cleanup broke")

    slow = tool(name="slow")(
        lambda: reactivex.timer(5).pipe(
            ops.map(str), ops.finally_action(broken if whose == "tool" else lambda: None)
        )
    )
    line = Timeline([[call("slow")], Response(["fin"], delay=5), "again", "more"], tools=[slow])
    if whose == "provider":
        inner = line.provider
        line.agent.stream_function = lambda *request: inner(*request).pipe(ops.finally_action(broken))
    line.agent.prompt("go")
    if ending == "abort":
        line.at(2, line.agent.abort)
    elif ending == "interrupt":
        line.at(2, lambda: line.agent.steer("s", interrupt=True))
    line.scheduler.start()
    line.watch.at_rest()
    assert line.agent.active_run is None
    assert {str(report.exc_value) for report in reports} == {"cleanup broke"}
