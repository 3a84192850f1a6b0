"""Coroutine tests that leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from typing import Any


def on_loop(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Runs a coroutine test in debug mode, and fails on anything it leaves behind or complains about."""

    def run() -> None:
        before = set(threading.enumerate())
        complaints: list[dict[str, Any]] = []

        async def main() -> None:
            loop = asyncio.get_running_loop()
            loop.slow_callback_duration = 10  # a busy machine is no finding
            loop.set_exception_handler(lambda _, context: complaints.append(context))
            await test()
            await asyncio.sleep(0)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert left == set(), f"tasks left: {left}"

        asyncio.run(main(), debug=True)
        gc.collect()
        assert complaints == [], complaints
        assert set(threading.enumerate()) - before == set()

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run
