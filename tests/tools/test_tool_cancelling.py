"""Stopping tools on a real event loop: everything is cancelled, nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Iterator

import pytest

from rx_agent.errors import ToolTimeoutError
from rx_agent.tools import ToolContext, tool
from tests.tools.tool_plays import played, run, until, watch

pytestmark = pytest.mark.usefixtures("nothing_left")


def test_disposal_cancels_a_coroutine_and_its_cleanup_runs() -> None:
    log: list[str] = []

    @tool
    async def waits(context: ToolContext) -> str:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            context.update("too late")
            log.append(f"cleaned up, told {context.signal.aborted}")
        return "done"

    @tool
    async def streams(context: ToolContext) -> AsyncIterator[str]:
        try:
            yield "one"
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            log.append(f"cleaned up, told {context.signal.aborted}")

    async def main() -> None:
        for each, seen in ((waits, []), (streams, [("partial", "one")])):
            watched = watch(each)
            await until(lambda watched=watched, seen=seen: watched.seen == seen)
            await asyncio.sleep(0.01)
            watched.dispose()
            assert watched.context is not None
            await watched.context.tasks.join()
            assert watched.seen == seen
        assert log == ["cleaned up, told True"] * 2

    run(main())


def test_disposal_drops_what_a_worker_brings_later() -> None:
    stopped: list[bool] = []

    @tool
    def works(context: ToolContext) -> str:
        stopped.append(context.signal.wait(5))
        context.update("too late")
        return "too late"

    async def main() -> None:
        watched = watch(works)
        await asyncio.sleep(0.01)
        watched.dispose()
        await until(lambda: stopped)
        await asyncio.sleep(0.02)
        assert watched.seen == []
        assert stopped == [True]

    run(main())


def test_disposal_stops_a_generator_at_its_next_item() -> None:
    log: list[str] = []

    @tool
    def draws() -> Iterator[int]:
        try:
            for number in range(10**9):
                yield number
                time.sleep(0.001)
        finally:
            log.append("closed")

    async def main() -> None:
        watched = watch(draws)
        await until(lambda: watched.seen)
        watched.dispose()
        count = len(watched.seen)
        await until(lambda: log)
        await asyncio.sleep(0.01)
        assert len(watched.seen) == count > 0

    run(main())


def test_a_coroutine_that_nobody_came_to_await_is_closed() -> None:
    """A worker returns it after the disposal; the interpreter would warn (and the tests fail)."""
    may_return = threading.Event()

    async def never_begun() -> str:
        return "never"

    def late():  # type: ignore[no-untyped-def]
        may_return.wait(5)
        return never_begun()

    def inline() -> Awaitable[str]:
        return never_begun()

    async def main() -> None:
        for body in (late, inline):
            watched = watch(body)
            watched.dispose()
            may_return.set()
            await asyncio.sleep(0.02)
            assert watched.seen == []

    run(main())
    gc.collect()


def test_a_timeout_cancels_a_coroutine_and_tells_a_worker() -> None:
    log: list[str] = []

    @tool(timeout=0.03)
    async def waits() -> str:
        try:
            await asyncio.sleep(60)
        finally:
            log.append("coroutine cancelled")
        return "done"

    @tool(timeout=0.03)
    def works(context: ToolContext) -> str:
        log.append(f"worker told {context.signal.wait(5)}")
        return "done"

    async def main() -> None:
        for each in (waits, works):
            begun = time.monotonic()
            ((kind, error),) = await played(each)
            assert kind == "error"
            assert isinstance(error, ToolTimeoutError)
            assert "0.03 s" in str(error)
            assert 0.02 < time.monotonic() - begun < 4
        await until(lambda: len(log) == 2)
        assert log == ["coroutine cancelled", "worker told True"]

    run(main())


def test_a_tool_in_time_leaves_no_timer() -> None:
    @tool(timeout=60)
    async def quick() -> str:
        return "done"

    async def main() -> None:
        assert await played(quick) == [("final", "done"), ("end", None)]
        pending = [handle for handle in asyncio.get_running_loop()._scheduled if not handle.cancelled()]  # type: ignore[attr-defined]
        assert [handle for handle in pending if handle.when() > asyncio.get_running_loop().time() + 30] == []

    run(main())
