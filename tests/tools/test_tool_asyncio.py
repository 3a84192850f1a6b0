"""Tools on a real event loop: nothing stalls it, everything is cancelled, nothing is left behind."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import random
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
import reactivex
from hypothesis import given, settings
from hypothesis import strategies as st
from reactivex import Observable
from reactivex import operators as ops
from reactivex.scheduler import NewThreadScheduler

from rx_agent.messages import ToolResult
from rx_agent.tools import ToolContext, tool, tool_from_schema
from tests.tools.tool_plays import played, run, until, watch

USER: contextvars.ContextVar[str] = contextvars.ContextVar("USER", default="nobody")


pytestmark = pytest.mark.usefixtures("nothing_left")


def test_every_kind_of_body_runs_on_the_loop() -> None:
    @tool
    def plain() -> str:
        return "two"

    @tool
    async def coroutine() -> str:
        await asyncio.sleep(0.001)
        return "two"

    @tool
    def generator() -> Iterator[str]:
        yield "one"
        yield "two"

    @tool
    async def async_generator() -> AsyncIterator[str]:
        yield "one"
        await asyncio.sleep(0.001)
        yield "two"

    @tool
    def observable() -> Observable[str]:
        return reactivex.of("one", "two")

    async def main() -> None:
        for each in (plain, coroutine):
            assert await played(each) == [("final", "two"), ("end", None)]
        for each in (generator, async_generator, observable):
            assert await played(each) == [
                ("partial", "one"),
                ("partial", "two"),
                ("final", "two"),
                ("end", None),
            ]

    run(main())


def test_what_a_worker_returns_is_recognised() -> None:
    async def later() -> str:
        await asyncio.sleep(0.001)
        return "b"

    @functools.wraps(later)
    def wrapped(*args: Any) -> Any:
        return later(*args)

    async def items() -> AsyncIterator[str]:
        yield "a"
        yield "b"

    def awaitable():  # type: ignore[no-untyped-def]
        return later()

    def observable():  # type: ignore[no-untyped-def]
        return reactivex.of("a", "b")

    def async_items():  # type: ignore[no-untyped-def]
        return items()

    def generator():  # type: ignore[no-untyped-def]
        return (letter for letter in "ab")

    def future() -> Awaitable[str]:
        return asyncio.ensure_future(later())  # needs the loop: an annotated function is called on it

    async def main() -> None:
        for body in (awaitable, wrapped, future):
            assert await played(body) == [("final", "b"), ("end", None)]
        for body in (observable, async_items, generator):
            assert (await played(body))[1:] == [("partial", "b"), ("final", "b"), ("end", None)]

    run(main())


def test_a_blocking_tool_does_not_stall_the_loop() -> None:
    @tool
    def sleeps() -> str:
        time.sleep(0.3)
        return threading.current_thread().name

    async def main() -> None:
        longest, before = 0.0, time.monotonic()
        watched = watch(sleeps)
        while not watched.done.is_set():
            await asyncio.sleep(0.005)
            now = time.monotonic()
            longest, before = max(longest, now - before), now
        assert watched.seen[0] == ("final", "rx_agent tool 'sleeps'")
        assert longest < 0.25

    run(main())


def test_context_variables_are_carried_over() -> None:
    def plain() -> str:
        return USER.get()

    async def coroutine() -> str:
        return USER.get()

    def generator() -> Iterator[str]:
        yield USER.get()

    def inline() -> Observable[str]:
        return reactivex.of(USER.get())

    async def main() -> None:
        USER.set("ada")
        for body in (plain, coroutine, generator, inline):
            assert ("final", "ada") in await played(body)

    run(main())


def test_updates_from_a_worker_come_in_order_before_its_result() -> None:
    @tool
    def counts(context: ToolContext) -> str:
        for number in range(200):
            context.update(number)
        return "done"

    async def main() -> None:
        assert await played(counts) == [
            *(("partial", str(number)) for number in range(200)),
            ("final", "done"),
            ("end", None),
        ]

    run(main())


def test_updates_come_at_once_and_not_with_the_result() -> None:
    may_end = threading.Event()

    @tool
    def waits(context: ToolContext) -> str:
        context.update("begun")
        may_end.wait(5)
        return "done"

    async def main() -> None:
        watched = watch(waits)
        await until(lambda: watched.seen)
        assert watched.seen == [("partial", "begun")]
        may_end.set()
        await watched.done.wait()

    run(main())


def test_updates_from_the_loop_and_from_its_workers_keep_their_order() -> None:
    @tool
    async def mixed(context: ToolContext) -> str:
        await asyncio.to_thread(lambda: context.update("from the worker"))
        context.update("from the loop")
        return "done"

    async def main() -> None:
        assert [text for _, text in await played(mixed)][:3] == ["from the worker", "from the loop", "done"]

    run(main())


def test_emissions_of_foreign_threads_hop_to_the_loop() -> None:
    @tool
    def foreign() -> Observable[int]:
        return reactivex.range(0, 50, scheduler=NewThreadScheduler())

    async def main() -> None:  # `watch` asserts that every emission is on the loop
        assert [text for _, text in await played(foreign)][:-1] == [*map(str, range(50)), "49"]

    run(main())


def test_a_result_of_an_async_generator_comes_after_its_cleanup() -> None:
    log: list[str] = []

    @tool
    async def streams() -> AsyncIterator[Any]:
        try:
            yield ToolResult(content="done")
        finally:
            await asyncio.sleep(0.01)
            log.append("cleaned up")

    async def main() -> None:
        assert await played(streams) == [("final", "done"), ("end", None)]
        assert log == ["cleaned up"]

    run(main())


def test_errors_in_workers_and_cleanups_are_told() -> None:
    def plain() -> str:
        raise LookupError("no such thing")

    def leaves() -> str:
        raise SystemExit("bye")

    async def cleanup() -> AsyncIterator[Any]:
        try:
            yield ToolResult(content="done")
        finally:
            raise LookupError("no such thing")

    async def main() -> None:
        for body in (plain, cleanup):
            ((kind, error),) = await played(body)
            assert (kind, type(error), str(error)) == ("error", LookupError, "no such thing")
        ((kind, error),) = await played(leaves)
        assert kind == "error"
        assert "SystemExit: bye" in str(error)

    run(main())


def test_a_thousand_tools_at_once() -> None:
    @tool
    async def waits(n: int) -> int:
        await asyncio.sleep(random.random() / 100)
        return n

    async def main() -> None:
        context = ToolContext(tool_name="waits")
        all_of_them = [waits.run({"n": n}, context) for n in range(1000)]
        total = reactivex.merge(*all_of_them).pipe(ops.map(lambda each: int(each.result.text)), ops.sum())
        begun = time.monotonic()
        assert await total == sum(range(1000))
        assert time.monotonic() - begun < 10
        await context.tasks.join()

    asyncio.run(main())


def test_schema_tools_run_in_workers_too() -> None:
    def body(args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        context.update(threading.current_thread().name)
        return args

    ready = tool_from_schema("echo", "", {"properties": {"n": {"type": "integer"}}}, body)

    async def main() -> None:
        assert await played(ready, ready.validated({"n": "1"})) == [
            ("partial", "rx_agent tool 'echo'"),
            ("final", '{"n": 1}'),
            ("end", None),
        ]

    run(main())


MOVES = st.lists(st.sampled_from(["update", "worker update", "item", "sleep"]), max_size=10)
ENDS = st.sampled_from(["result", "fall off", "raise"])


@settings(max_examples=60, deadline=None)
@given(MOVES, ENDS)
def test_updates_and_items_keep_their_order_from_wherever_they_come(moves: list[str], end: str) -> None:
    async def streams(context: ToolContext) -> AsyncIterator[Any]:
        for number, move in enumerate(moves):
            announce: Callable[[], None] = lambda number=number: context.update(f"u{number}")  # noqa: E731
            match move:
                case "update":
                    announce()
                case "worker update":
                    await asyncio.to_thread(announce)
                case "item":
                    yield f"i{number}"
                case _:
                    await asyncio.sleep(0)
        if end == "result":
            yield ToolResult(content="r")
        if end == "raise":
            raise ValueError("e")

    texts = [f"{'i' if move == 'item' else 'u'}{n}" for n, move in enumerate(moves) if move != "sleep"]
    last = ([f"i{n}" for n, move in enumerate(moves) if move == "item"] or [""])[-1]

    async def main() -> None:
        seen = await played(streams)
        assert [text for kind, text in seen if kind == "partial"] == texts
        *_, before, (kind, value) = [("", ""), *seen]
        if end == "raise":
            assert (kind, str(value)) == ("error", "e")
        else:
            assert [before, kind] == [("final", "r" if end == "result" else last), "end"]

    asyncio.run(main())
