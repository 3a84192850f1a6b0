"""What a file's model, tools and hooks do, as generators: they yield ticks to wait and return what comes of it.

A script knows nothing of time. It is played as an observable (:func:`observed`), whose waits are timers on the
scheduler that it is subscribed with, or as a coroutine (:func:`awaited`), whose waits are ``asyncio.sleep``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SerialDisposable

from rx_agent import AssistantMessageEvent, ToolContext, ToolResult
from rx_agent.message_builder import MessageBuilder
from tests.scenario.vocabulary import Json, content

T = TypeVar("T")
Script: TypeAlias = Generator[float, None, T]

# --- two ways to play one ------------------------------------------------------------------------------------


def observed(
    script: Callable[[Callable[[Any], None]], Script[T]], tick: float, *, stubborn: bool = False
) -> Observable[Any]:
    """What ``script(emit)`` emits, then what it returns (unless None); cold. ``stubborn`` ignores disposal."""

    def subscribe(
        observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        assert scheduler is not None, "subscribed without a scheduler"
        timer = SerialDisposable()
        steps = script(observer.on_next)

        def go_on(*_: Any) -> None:
            try:
                wait = 0.0
                while wait <= 0:
                    wait = next(steps)
            except StopIteration as stop:
                if stop.value is not None:
                    observer.on_next(stop.value)
                observer.on_completed()
            except Exception as error:
                observer.on_error(error)
            else:
                timer.disposable = scheduler.schedule_relative(wait * tick, go_on)

        go_on()
        return Disposable() if stubborn else timer

    return Observable(subscribe)


async def awaited(script: Script[T], tick: float, *, stubborn: bool = False) -> T:
    """What ``script`` returns. ``stubborn`` ignores cancellation."""
    while True:
        try:
            wait = next(script)
        except StopIteration as stop:
            return stop.value
        if wait > 0:
            await (sleep_through(wait * tick) if stubborn else asyncio.sleep(wait * tick))


async def sleep_through(seconds: float) -> None:
    """Sleeps as long as told, whoever cancels."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while (left := until - loop.time()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            continue


# --- the model -----------------------------------------------------------------------------------------------


def response_script(
    response: Json, builder: MessageBuilder, emit: Callable[[AssistantMessageEvent], None]
) -> Script[None]:
    """One answer of the model."""
    yield response.get("delay", 0)
    failure: str | None = response.get("error_message")
    if response.get("fails_before_start"):
        emit(builder.error(failure or "The request failed"))
        return
    emit(builder.start())
    for item in response.get("content", ()):
        yield from _block_script(item, response.get("every", 0), builder, emit)
    if failure is not None:
        emit(builder.error(failure))
        return
    calls = any("tool_call" in item for item in response.get("content", ()))
    emit(builder.done(response.get("stop_reason") or ("tool_use" if calls else "stop")))


def _block_script(
    item: Json, every: float, builder: MessageBuilder, emit: Callable[[AssistantMessageEvent], None]
) -> Script[None]:
    """One block: its start, a delta per chunk, its end."""
    match item:
        case {"text": text}:
            start = builder.text_start()
            delta, end = builder.text_delta, builder.text_end
        case {"thinking": text}:
            start = builder.thinking_start()
            delta, end = builder.thinking_delta, builder.thinking_end
        case {"tool_call": call}:
            arguments: Json = call.get("arguments", {})
            text = json.dumps(arguments, separators=(",", ":"), ensure_ascii=False)
            start = builder.tool_call_start(call["id"], call["name"])
            delta = builder.tool_call_delta

            def end(index: int) -> AssistantMessageEvent:
                return builder.tool_call_end(index, arguments=arguments)
        case _:
            raise ValueError(f"a response block of unknown kind: {item}")
    emit(start)
    for chunk in item.get("chunks", [text]):
        yield every
        emit(delta(start.content_index, chunk))
    emit(end(start.content_index))


# --- tools ---------------------------------------------------------------------------------------------------


def tool_script(
    tool: Json, context: ToolContext[Any], later: Callable[[float, Callable[[], None]], None]
) -> Script[ToolResult]:
    """One execution of ``tool``. ``later(ticks, action)`` acts even when the execution is over."""
    for step in tool.get("steps", ()):
        yield step.get("after", 0)
        if "update" in step:
            context.update(_result(step, "update"))
            continue
        if (ticks := tool.get("late_update")) is not None:
            later(ticks, lambda: context.update("too late"))
        if "raise" in step:
            raise ToolBroke(step["raise"])
        return _result(step, "result", "content")
    return ToolResult()


class ToolBroke(Exception):
    """What a file's tool raises."""


def _result(step: Json, *keys: str) -> ToolResult:
    return ToolResult(
        content=content(step, *keys), details=step.get("details"), terminate=step.get("terminate")
    )
