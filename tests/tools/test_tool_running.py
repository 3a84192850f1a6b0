"""Tools run in virtual time: to the tick, without a loop or a thread, and without a tick of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import reactivex
from reactivex import Observable
from reactivex import operators as ops
from reactivex.scheduler import CurrentThreadScheduler, ImmediateScheduler, NewThreadScheduler
from reactivex.testing import TestScheduler

from rx_agent.errors import NoEventLoopError
from rx_agent.messages import ToolResult
from rx_agent.tools import ToolContext, ToolEmission, tool, tool_from_schema
from tests.tools.tool_plays import in_virtual_time

AT_ONCE = ImmediateScheduler.singleton()


def items(*values: Any) -> Observable[Any]:
    return reactivex.from_iterable(values, scheduler=AT_ONCE)


def test_every_kind_of_body_gives_its_result_at_once() -> None:
    @tool
    def plain() -> str:
        return "plain"

    @tool
    async def coroutine() -> str:
        return "coroutine"

    @tool
    def generator() -> Iterator[str]:
        yield "one"
        yield "two"

    @tool
    async def async_generator() -> AsyncIterator[str]:
        yield "one"
        yield "two"

    @tool
    def observable() -> Observable[str]:
        return items("one", "two")

    assert in_virtual_time(plain) == [(0, "final", "plain"), (0, "end", None)]
    assert in_virtual_time(coroutine) == [(0, "final", "coroutine"), (0, "end", None)]
    streamed = [(0, "partial", "one"), (0, "partial", "two"), (0, "final", "two"), (0, "end", None)]
    for each in (generator, async_generator, observable):
        assert in_virtual_time(each) == streamed


def test_a_tool_result_ends_a_stream_and_is_not_announced() -> None:
    reached: list[str] = []

    @tool
    def generator() -> Iterator[Any]:
        try:
            yield "one"
            yield ToolResult(content="done")
            reached.append("beyond")
        finally:
            reached.append("generator closed")

    @tool
    async def async_generator() -> AsyncIterator[Any]:
        try:
            yield "one"
            yield ToolResult(content="done")
            reached.append("beyond")
        finally:
            reached.append("async generator closed")

    @tool
    def observable() -> Observable[Any]:
        return reactivex.concat(items("one"), items(ToolResult(content="done")), reactivex.never()).pipe(
            ops.finally_action(lambda: reached.append("observable disposed"))
        )

    for each in (generator, async_generator, observable):
        assert [entry[1:] for entry in in_virtual_time(each)] == [
            ("partial", "one"),
            ("final", "done"),
            ("end", None),
        ]
    assert reached == ["generator closed", "async generator closed", "observable disposed"]


def test_an_empty_stream_is_an_empty_result() -> None:
    @tool
    def empty() -> Observable[str]:
        return reactivex.empty(AT_ONCE)

    assert in_virtual_time(empty) == [(0, "final", ""), (0, "end", None)]


def test_observables_keep_their_ticks() -> None:
    @tool
    def count(n: int) -> Observable[int]:
        return reactivex.interval(10).pipe(ops.take(n))

    assert in_virtual_time(count, {"n": 2}) == [
        (10, "partial", "0"),
        (20, "partial", "1"),
        (20, "final", "1"),
        (20, "end", None),
    ]


def test_what_an_unannotated_function_returns_is_recognised() -> None:
    def observable():  # type: ignore[no-untyped-def]
        return items("a", "b")

    def awaitable():  # type: ignore[no-untyped-def]
        async def inner() -> Observable[str]:
            return items("a", "b")

        return inner()

    def generator():  # type: ignore[no-untyped-def]
        return (letter for letter in "ab")

    for body in (observable, awaitable, generator):
        assert [entry[1:] for entry in in_virtual_time(body)] == [
            ("partial", "a"),
            ("partial", "b"),
            ("final", "b"),
            ("end", None),
        ]


def test_a_body_that_raises_is_an_error_with_its_message() -> None:
    def plain() -> str:
        raise ValueError("no such file")

    async def coroutine() -> str:
        raise ValueError("no such file")

    def generator() -> Iterator[str]:
        yield "one"
        raise ValueError("no such file")

    async def async_generator() -> AsyncIterator[str]:
        yield "one"
        raise ValueError("no such file")

    def inline() -> Observable[str]:
        raise ValueError("no such file")

    def observable() -> Observable[str]:
        return items("one").pipe(ops.concat(reactivex.throw(ValueError("no such file"))))

    for body in (plain, coroutine, generator, async_generator, inline, observable):
        *before, (_, kind, error) = in_virtual_time(body)
        assert (kind, str(error), type(error)) == ("error", "no such file", ValueError)
        assert [entry[1] for entry in before] in ([], ["partial"])


def test_arguments_reach_the_function_by_position_and_by_name() -> None:
    @tool
    def join(a: str, context: ToolContext, /, b: str, *, c: str = "c") -> str:
        return f"{a}{b}{c} for {context.tool_call_id}"

    args = join.validated({"a": "1", "b": "2"})
    assert in_virtual_time(join, args)[0] == (0, "final", "12c for 1")


def test_the_context_brings_deps_and_call() -> None:
    @tool
    def whoami(context: ToolContext[dict[str, str]]) -> str:
        return f"{context.deps['user']} {context.tool_name} {context.tool_call_id}"

    context = ToolContext(tool_call_id="c7", tool_name="whoami", deps={"user": "ada"})
    assert in_virtual_time(whoami, context=context)[0] == (0, "final", "ada whoami c7")


def test_updates_come_at_once_and_before_the_result() -> None:
    @tool
    def steps(context: ToolContext) -> Observable[str]:
        context.update("zero")
        context.update(ToolResult(content="as a result", details={"n": 1}))
        return reactivex.timer(10).pipe(
            ops.do_action(lambda _: context.update("ten")), ops.map(lambda _: ToolResult(content="done"))
        )

    assert in_virtual_time(steps) == [
        (0, "partial", "zero"),
        (0, "partial", "as a result"),
        (10, "partial", "ten"),
        (10, "final", "done"),
        (10, "end", None),
    ]


def test_updates_after_the_end_are_ignored() -> None:
    scheduler = TestScheduler()
    kept: list[ToolContext] = []

    @tool
    def quick(context: ToolContext) -> str:
        kept.append(context)
        return "done"

    scheduler.schedule_absolute(300.0, lambda *_: kept[0].update("late"))
    assert in_virtual_time(quick, scheduler=scheduler) == [(0, "final", "done"), (0, "end", None)]


def test_an_update_that_cannot_be_a_result_is_the_bodys_error() -> None:
    @tool
    def wrong(context: ToolContext) -> str:
        context.update(b"bytes")
        return "done"

    ((_, kind, error),) = in_virtual_time(wrong)
    assert kind == "error"
    assert "cannot return bytes" in str(error)


def test_an_update_made_while_one_is_being_shown_comes_after_it() -> None:
    log: list[str] = []
    kept: list[ToolContext] = []

    def body(context: ToolContext) -> str:
        kept.append(context)
        context.update("first")
        return "done"

    def listen(emission: ToolEmission) -> None:
        log.append(f"{emission.result.text} begins")
        if emission.result.text == "first":
            kept[0].update("second")
        log.append(f"{emission.result.text} ends")

    tool(body).run({}, ToolContext()).subscribe(listen, scheduler=AT_ONCE)
    assert log == [f"{text} {what}" for text in ("first", "second", "done") for what in ("begins", "ends")]


def test_a_tool_is_cold_and_can_be_run_again() -> None:
    calls: list[int] = []

    @tool
    def flaky(context: ToolContext) -> str:
        calls.append(1)
        context.update(f"try {len(calls)}")
        if len(calls) < 3:
            raise OSError("not yet")
        return "done"

    seen: list[Any] = []
    running = flaky.run({}, ToolContext())
    assert calls == []
    running.pipe(ops.retry(3)).subscribe(
        lambda emission: seen.append(emission.result.text), scheduler=AT_ONCE
    )
    assert seen == ["try 1", "try 2", "try 3", "done"]


def test_a_coroutine_that_waits_is_refused_without_a_loop() -> None:
    @tool
    async def waits() -> str:
        await asyncio.sleep(1)
        return "done"

    ((_, kind, error),) = in_virtual_time(waits)
    assert kind == "error"
    assert isinstance(error, NoEventLoopError)
    assert "tool 'waits'" in str(error)


def test_a_blocking_body_stays_in_this_thread_without_a_loop() -> None:
    @tool
    def where() -> str:
        return threading.current_thread().name

    assert in_virtual_time(where)[0][2] == threading.current_thread().name
    seen: list[str] = []
    where.run({}, ToolContext()).subscribe(
        lambda emission: seen.append(emission.result.text), scheduler=CurrentThreadScheduler.singleton()
    )
    assert seen == [threading.current_thread().name]


def test_schema_tools_have_bodies_of_all_kinds() -> None:
    async def coroutine(args: dict[str, Any]) -> Any:
        return args["n"] + 1

    async def async_generator(args: dict[str, Any], context: ToolContext) -> AsyncIterator[int]:
        context.update("begun")
        yield args["n"] + 1

    def observable(args: dict[str, Any]) -> Observable[int]:
        return items(args["n"] + 1)

    def with_option(args: dict[str, Any], step: int = 1) -> int:
        return args["n"] + step

    schema = {"properties": {"n": {"type": "integer"}}, "required": ["n"]}
    for body in (coroutine, async_generator, observable, with_option, lambda args: args["n"] + 1):
        ready = tool_from_schema("next", "Counts on.", schema, body)
        assert ("final", "6") in [entry[1:] for entry in in_virtual_time(ready, ready.validated({"n": "5"}))]


def test_emissions_from_several_threads_come_one_at_a_time() -> None:
    """Without a loop there is no thread to hop to; what comes is lined up at least."""
    busy = threading.Lock()
    done = threading.Event()
    seen: list[str] = []

    @tool
    def crowd(context: ToolContext) -> Observable[Any]:
        threads = [
            threading.Thread(target=lambda: [context.update("x") for _ in range(100)]) for _ in range(4)
        ]

        def last() -> ToolResult:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return ToolResult(content="done")

        return reactivex.from_callable(last, NewThreadScheduler())

    def listen(emission: ToolEmission) -> None:
        assert busy.acquire(blocking=False)
        seen.append(emission.result.text)
        busy.release()

    crowd.run({}, ToolContext()).subscribe(listen, on_completed=done.set, scheduler=AT_ONCE)
    assert done.wait(5)
    assert seen == ["x"] * 400 + ["done"]
