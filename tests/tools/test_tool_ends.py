"""How a tool ends in virtual time: by its result, an error, its timeout, a disposal, an abort; once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import reactivex
from hypothesis import given, settings
from hypothesis import strategies as st
from reactivex import Observable, Subject
from reactivex import operators as ops
from reactivex.scheduler import ImmediateScheduler
from reactivex.testing import TestScheduler

from rx_agent.abort import AbortSignal
from rx_agent.errors import ToolDefinitionError, ToolTimeoutError
from rx_agent.messages import ToolResult
from rx_agent.tools import ToolContext, tool
from tests.tools.tool_plays import in_virtual_time

AT_ONCE = ImmediateScheduler.singleton()


def test_a_timeout_is_an_error_and_the_body_is_disposed() -> None:
    seen: list[str] = []

    @tool(timeout=50)
    def slow(context: ToolContext) -> Observable[str]:
        context.signal.subscribe(lambda: seen.append("told to stop"))

        def disposed() -> None:
            seen.append("disposed")
            context.update("too late")

        return reactivex.interval(20).pipe(ops.map(str), ops.finally_action(disposed))

    *before, (at, kind, error) = in_virtual_time(slow)
    assert before == [(20, "partial", "0"), (40, "partial", "1")]
    assert (at, kind) == (50, "error")
    assert isinstance(error, ToolTimeoutError)
    assert '"slow" was stopped: it took longer than 50 s' in str(error)
    assert seen == ["told to stop", "disposed"]


def test_a_result_right_on_time_is_in_time() -> None:
    @tool(timeout=50)
    def just() -> Observable[Any]:
        return reactivex.timer(50).pipe(ops.map(lambda _: ToolResult(content="made it")))

    assert in_virtual_time(just) == [(50, "final", "made it"), (50, "end", None)]


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), "5"])
def test_a_timeout_that_is_none_is_refused(timeout: Any) -> None:
    def body() -> None: ...

    with pytest.raises(ToolDefinitionError, match="not a positive number of seconds"):
        tool(timeout=timeout)(body)


def test_disposal_disposes_the_body_and_sets_its_signal() -> None:
    seen: list[str] = []
    run_signal = AbortSignal()

    @tool
    def endless(context: ToolContext) -> Observable[str]:
        context.signal.subscribe(lambda: seen.append("told to stop"))
        return reactivex.interval(10).pipe(ops.map(str), ops.finally_action(lambda: seen.append("disposed")))

    assert in_virtual_time(endless, context=ToolContext(signal=run_signal), disposed=25) == [
        (10, "partial", "0"),
        (20, "partial", "1"),
    ]
    assert seen == ["told to stop", "disposed"]
    assert not run_signal.aborted


def test_the_runs_abort_sets_the_calls_signal() -> None:
    run_signal = AbortSignal()
    told_at: list[float] = []
    scheduler = TestScheduler()

    @tool
    def endless(context: ToolContext) -> Observable[str]:
        context.signal.subscribe(lambda: told_at.append(scheduler.clock))
        return reactivex.never()

    scheduler.schedule_absolute(250.0, lambda *_: run_signal.set())
    in_virtual_time(endless, context=ToolContext(signal=run_signal), scheduler=scheduler)
    assert told_at == [250]


def test_an_abort_stops_a_generator_that_runs_inline() -> None:
    run_signal = AbortSignal()
    drawn: list[int] = []

    @tool
    def endless() -> Iterator[int]:
        for number in range(10**9):
            drawn.append(number)
            yield number

    endless.run({}, ToolContext(signal=run_signal)).subscribe(
        lambda emission: run_signal.set() if emission.result.text == "3" else None, scheduler=AT_ONCE
    )
    assert drawn == [0, 1, 2, 3]


STEPS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(["update", "item", "result", "raise", "complete"])),
    max_size=12,
)


def between_ticks(part: float) -> st.SearchStrategy[float | None]:
    """Never at the tick of something else, so that there is one right answer."""
    return st.none() | st.integers(0, 60).map(lambda tick: tick + part)


@settings(deadline=None)
@given(STEPS, between_ticks(0.25), between_ticks(0.5))
def test_whatever_a_body_does_there_is_one_end_and_nothing_after_it(
    steps: list[tuple[int, str]], timeout: float | None, disposed: float | None
) -> None:
    scheduler = TestScheduler()
    subject: Subject[Any] = Subject()
    disposals: list[float] = []

    @tool(timeout=timeout)
    def play(context: ToolContext) -> Observable[Any]:
        does = {
            "update": lambda: context.update("u"),
            "item": lambda: subject.on_next("i"),
            "result": lambda: subject.on_next(ToolResult(content="r")),
            "raise": lambda: subject.on_error(ValueError("e")),
            "complete": subject.on_completed,
        }
        at = scheduler.clock
        for wait, what in steps:
            at += wait
            scheduler.schedule_absolute(float(at), lambda *_, act=does[what]: act())
        return subject.pipe(ops.finally_action(lambda: disposals.append(scheduler.clock - 200)))

    seen = in_virtual_time(play, scheduler=scheduler, disposed=disposed or 1000)

    # The model: everything up to the first of result, error, timeout and disposal.
    limit = min(timeout or 1000, disposed or 1000)
    expected: list[tuple[float, str]] = []
    at, over, last = 0, False, ""
    for wait, what in steps:
        at += wait
        if at > limit or over:
            break
        match what:
            case "update":
                expected.append((at, "partial"))
            case "item":
                expected.append((at, "partial"))
                last = "i"
            case "raise":
                expected.append((at, "error"))
                over = True
            case _:
                expected += [(at, "final"), (at, "end")]
                last = "r" if what == "result" else last
                over = True
    if not over and limit == timeout:
        expected.append((timeout, "error"))
    assert [entry[:2] for entry in seen] == expected
    assert disposals == [expected[-1][0] if expected[-1:] and expected[-1][1] != "partial" else limit]
    assert [text for _, kind, text in seen if kind == "final"] in ([], [last])
