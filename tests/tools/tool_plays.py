"""How the tests of tools run one: in virtual time or on asyncio, with what came out as plain data."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from reactivex import abc
from reactivex.scheduler.eventloop import AsyncIOScheduler
from reactivex.testing import TestScheduler

from rx_agent.tools import Tool, ToolContext, ToolEmission, as_tool

START = 200  # the tick at which TestScheduler subscribes


def in_virtual_time(
    tool: Any,
    args: dict[str, Any] | None = None,
    context: ToolContext[Any] | None = None,
    *,
    scheduler: TestScheduler | None = None,
    disposed: float = 100_000,
) -> list[tuple[float, str, Any]]:
    """Each thing that came out: ticks since the start, "partial" / "final" / "error" / "end", and the text."""
    scheduler = scheduler or TestScheduler()
    ready: Tool = as_tool(tool)
    context = context or ToolContext(tool_call_id="1", tool_name=ready.name)
    seen = scheduler.start(lambda: ready.run(args or {}, context), disposed=disposed + START)
    return [(message.time - START, *told(message.value)) for message in seen.messages]


def told(notification: Any) -> tuple[str, Any]:
    match notification.kind:
        case "N":
            emission: ToolEmission = notification.value
            return ("final" if emission.final else "partial", emission.result.text)
        case "E":
            return ("error", notification.exception)
        case _:
            return ("end", None)


@dataclass
class Watched:
    """A subscription on the running loop and what it has brought so far."""

    seen: list[tuple[str, Any]] = field(default_factory=list)
    done: asyncio.Event = field(default_factory=asyncio.Event)
    subscription: abc.DisposableBase | None = None
    context: ToolContext[Any] | None = None

    def dispose(self) -> None:
        assert self.subscription is not None
        self.subscription.dispose()

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.seen]


def watch(tool: Any, args: dict[str, Any] | None = None, context: ToolContext[Any] | None = None) -> Watched:
    """Subscribes to the tool on the running loop."""
    ready = as_tool(tool)
    context = context or ToolContext(tool_call_id="1", tool_name=ready.name)
    watched = Watched(context=context)
    loop = asyncio.get_running_loop()

    def settled(kind: str, value: Any) -> None:
        assert asyncio.get_running_loop() is loop
        watched.seen.append((kind, value))
        watched.done.set()

    def on_next(emission: ToolEmission) -> None:
        assert asyncio.get_running_loop() is loop
        watched.seen.append(("final" if emission.final else "partial", emission.result.text))

    watched.subscription = ready.run(args or {}, context).subscribe(
        on_next,
        lambda error: settled("error", error),
        lambda: settled("end", None),
        scheduler=AsyncIOScheduler(loop),
    )
    return watched


async def until(happened: Callable[[], object]) -> None:
    """Returns once ``happened()``; for what another thread does."""
    while not happened():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def played(
    tool: Any, args: dict[str, Any] | None = None, context: ToolContext[Any] | None = None
) -> list[tuple[str, Any]]:
    """All that comes out of the tool on the running loop."""
    watched = watch(tool, args, context)
    await asyncio.wait_for(watched.done.wait(), 30)
    assert watched.context is not None
    await watched.context.tasks.join()
    return watched.seen


def run(main: Coroutine[Any, Any, None]) -> None:
    """With the loop's debug mode on, and no task left at the end."""

    async def checked() -> None:
        asyncio.get_running_loop().slow_callback_duration = 10.0  # a busy machine is no finding
        await main
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(checked(), debug=True)
