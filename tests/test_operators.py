"""The operators over event streams, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex
from reactivex import Observable
from reactivex import operators as ops
from reactivex.testing import ReactiveTest, TestScheduler

from rx_agent import Agent, RunFailedError, Usage, tool, tool_from_schema
from rx_agent import operators as agent_ops
from rx_agent.providers.scripted import Response, call, marbles, say, scripted, think


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def observed(
    source: Observable[Any], scheduler: TestScheduler, *, until: float = 1000
) -> list[tuple[float, Any]]:
    """What ``source``, subscribed at 200, says and when (whole seconds of virtual time after that)."""
    result = scheduler.start(lambda: source, created=100, subscribed=200, disposed=until)
    return [(int(message.time - 200), message.value) for message in result.messages]


def test_text_deltas_come_when_the_model_says_them() -> None:
    agent = Agent(stream_function=scripted([Response([think("hm"), say("hel", "lo")], delay=10, every=5)]))
    seen = observed(agent.ask("hi").pipe(agent_ops.text_deltas()), TestScheduler())
    assert [(time, item.value) for time, item in seen[:-1]] == [(20, "hel"), (25, "lo")]
    assert (seen[-1][0], seen[-1][1].kind) == (25, "C")


def test_thinking_has_deltas_of_its_own() -> None:
    agent = Agent(stream_function=scripted([[think("h", "m"), "yes"]]))
    seen: list[str] = []
    agent.ask("hi").pipe(agent_ops.thinking_deltas()).subscribe(seen.append)
    assert seen == ["h", "m"]


def test_a_response_may_be_drawn_as_marbles() -> None:
    agent = Agent(stream_function=scripted([marbles("--a-b---(c,|)", {"c": think("so")}, step=10)]))
    seen = observed(agent.ask("hi").pipe(agent_ops.text_deltas()), TestScheduler())
    assert [(time, item.value) for time, item in seen[:-1]] == [(20, "a"), (40, "b")]
    assert seen[-1][0] == 80
    assert agent.messages[-1].text == "ab"


def test_answers_leave_out_what_only_leads_to_tools() -> None:
    agent = Agent(
        stream_function=scripted([["let me see", call("add", a=1, b=2)], "three", "also three"]), tools=[add]
    )
    agent.follow_up("really?")
    seen: list[str] = []
    agent.ask("1 + 2?").pipe(agent_ops.answers()).subscribe(seen.append)
    assert seen == ["three", "also three"]


def test_messages_are_told_when_whole() -> None:
    agent = Agent(stream_function=scripted([[call("add", a=1, b=2)], "three"]), tools=[add])
    seen: list[str] = []
    agent.ask("1 + 2?").pipe(agent_ops.messages(), ops.map(lambda m: m.role)).subscribe(seen.append)
    assert seen == ["user", "assistant", "tool_result", "assistant"]


def test_tool_calls_are_paired_with_their_results_as_they_finish() -> None:
    def after(seconds: float, result: str) -> Any:
        return tool_from_schema(
            result,
            result,
            {"type": "object"},
            lambda args: reactivex.timer(seconds).pipe(ops.map(lambda _: result)),
        )

    agent = Agent(
        stream_function=scripted([[call("slow"), call("fast"), call("nope")], "done"]),
        tools=[after(30, "slow"), after(10, "fast")],
    )
    seen = observed(agent.ask("go").pipe(agent_ops.tool_calls()), TestScheduler())
    calls = [(time, item.value.tool_name, item.value.is_error) for time, item in seen[:-1]]
    assert calls == [(0, "nope", True), (10, "fast", False), (30, "slow", False)]


def test_usage_is_summed_over_the_answers() -> None:
    answers = [
        Response([call("add", a=1, b=2)], usage=Usage(input=10, output=1)),
        Response(["three"], usage=Usage(input=20, output=2)),
    ]
    agent = Agent(stream_function=scripted(answers), tools=[add])
    seen: list[Usage] = []
    agent.ask("go").pipe(agent_ops.usage_totals()).subscribe(seen.append)
    assert seen == [Usage(input=10, output=1), Usage(input=30, output=3)]


def test_turns_are_observables_of_their_own() -> None:
    agent = Agent(stream_function=scripted([[call("add", a=1, b=2)], "three"]), tools=[add])
    seen: list[list[str]] = []
    agent.ask("go").pipe(
        agent_ops.turns(),
        ops.flat_map(lambda turn: turn.pipe(ops.map(lambda event: event.type), ops.to_list())),
    ).subscribe(seen.append)
    assert len(seen) == 2
    assert all((turn[0], turn[-1]) == ("turn_start", "turn_end") for turn in seen)
    assert "tool_execution_end" in seen[0]
    assert "tool_execution_end" not in seen[1]


def test_a_failed_run_becomes_an_error_and_retry_asks_again() -> None:
    failing = Response(error_message="overloaded")
    agent = Agent(stream_function=scripted([failing, failing, "at last"]))
    seen: list[str] = []
    agent.ask("hi").pipe(agent_ops.raise_on_error(), ops.retry(3), agent_ops.answers()).subscribe(seen.append)
    assert seen == ["at last"]


def test_an_error_says_why_and_an_abort_says_so() -> None:
    agent = Agent(stream_function=scripted([Response(error_message="overloaded")]))
    errors: list[Exception] = []
    agent.ask("hi").pipe(agent_ops.raise_on_error()).subscribe(on_error=errors.append)
    assert isinstance(errors[0], RunFailedError)
    assert (str(errors[0]), errors[0].reason) == ("overloaded", "error")


def test_until_idle_makes_the_hot_stream_finite() -> None:
    agent = Agent(stream_function=scripted(["one", "two"]))
    seen: list[Any] = []
    agent.events.pipe(agent_ops.until_idle(), ops.map(lambda event: event.type), ops.to_list()).subscribe(
        seen.append
    )
    agent.prompt("a")
    agent.prompt("b")
    assert len(seen) == 1
    assert seen[0][-1] == "agent_end"


def test_a_new_question_cancels_the_running_answer() -> None:
    slow = Response([say("never", "heard")], delay=100, every=100)
    agent = Agent(stream_function=scripted([slow, Response(["quick"], delay=10)]))
    scheduler = TestScheduler()
    questions = scheduler.create_hot_observable(
        ReactiveTest.on_next(210, "first"), ReactiveTest.on_next(330, "second")
    )
    seen = observed(questions.pipe(ops.switch_map(agent.ask), agent_ops.answers()), scheduler)
    assert [(time, item.value) for time, item in seen] == [(140, "quick")]
    assert [message.stop_reason for message in agent.messages if message.role == "assistant"] == [
        "aborted",
        "stop",
    ]


def test_an_answer_that_asks_the_next_question_cancels_itself_cleanly() -> None:
    agent = Agent(stream_function=scripted([Response([say("a", "b", "c")], every=10), "end"]))
    scheduler = TestScheduler()
    questions: reactivex.Subject[str] = reactivex.Subject()
    asked: list[str] = []

    def ask_again(delta: str) -> None:
        if delta == "b" and not asked:
            asked.append(delta)
            questions.on_next("second")

    pipeline = questions.pipe(ops.switch_map(agent.ask), agent_ops.text_deltas(), ops.do_action(ask_again))
    scheduler.schedule_absolute(210, lambda *_: questions.on_next("first"))
    seen = observed(pipeline, scheduler)
    assert [item.value for _, item in seen] == ["a", "b", "end"]
    assert [message.text for message in agent.messages] == ["first", "ab", "second", "end"]


def test_forks_answer_side_by_side() -> None:
    agent = Agent(stream_function=scripted(lambda context: Response([context.messages[-1].text], delay=10)))
    pipeline = reactivex.from_iterable(["a", "b", "c"]).pipe(
        ops.flat_map(lambda question: agent.fork().ask(question)), agent_ops.answers()
    )
    seen = observed(pipeline, TestScheduler())
    assert sorted(item.value for _, item in seen[:-1]) == ["a", "b", "c"]
    assert {time for time, _ in seen} == {10}
    assert len(agent.messages) == 0


def test_a_second_subscription_while_one_runs_is_refused_with_the_way_out() -> None:
    agent = Agent(stream_function=scripted([Response(["slow"], delay=50)]))
    source = agent.ask("a")
    seen = observed(source.pipe(ops.merge(source), ops.map(lambda event: event.type)), TestScheduler())
    assert seen[-1][1].kind == "E"
    assert "fork()" in str(seen[-1][1].exception)


@pytest.mark.parametrize("after", [5, 15, 25])
def test_a_timeout_aborts_the_run(after: float) -> None:
    agent = Agent(stream_function=scripted([Response([say("a", "b", "c")], delay=10, every=10)]))
    fallback = reactivex.return_value("fallback")
    pipeline = agent.ask("hi").pipe(agent_ops.text_deltas(), ops.take_until_with_time(after))
    seen = observed(reactivex.concat(pipeline, fallback), TestScheduler())
    assert seen[-2][1].value == "fallback"
    assert agent.active_run is None
    assert agent.messages[-1].stop_reason == "aborted"
