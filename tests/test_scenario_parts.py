"""The parts of the scenarios' interpreter that stand for themselves: the fake clock, the scripts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from reactivex.scheduler import VirtualTimeScheduler

from tests.scenario.fake_clock import FakeClockLoop, NothingLeftError
from tests.scenario.scripts import Script, awaited, observed


def on_fake_clock(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    with asyncio.Runner(loop_factory=FakeClockLoop) as runner:
        return runner.run(work())


# --- the fake clock ------------------------------------------------------------------------------------------


def test_clock_jumps_instead_of_waiting() -> None:
    async def work() -> float:
        await asyncio.sleep(100_000)
        return asyncio.get_running_loop().time()

    before = time.monotonic()
    assert on_fake_clock(work) == pytest.approx(100_000)
    assert time.monotonic() - before < 5


def test_clock_stands_while_something_is_ready() -> None:
    async def work() -> float:
        asyncio.get_running_loop().call_later(1, lambda: None)
        for _ in range(1000):
            await asyncio.sleep(0)
        return asyncio.get_running_loop().time()

    assert on_fake_clock(work) == 0


def test_timers_of_one_instant_fire_in_the_order_they_were_set() -> None:
    fired: list[int] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        for number in range(200):
            loop.call_at(7, fired.append, number)
        await asyncio.sleep(3)
        loop.call_later(4, fired.append, 200)
        await asyncio.sleep(4)

    on_fake_clock(work)
    assert fired == list(range(201))


def test_all_that_a_timer_leads_to_comes_before_the_next_timer_of_that_instant() -> None:
    steps: list[str] = []

    async def sleeper(name: str, *naps: int) -> None:
        for nap in naps:
            await asyncio.sleep(nap)
        steps.append(f"{name} woke")
        for _ in range(3):
            await asyncio.sleep(0)
        steps.append(f"{name} ended")

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(sleeper("a", 2, 3))
            group.create_task(sleeper("b", 1, 4))
            group.create_task(sleeper("c", 5))

    on_fake_clock(work)
    assert steps == ["c woke", "c ended", "b woke", "b ended", "a woke", "a ended"]


def test_wait_that_nothing_could_end_raises() -> None:
    async def work() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(NothingLeftError):
        on_fake_clock(work)


# --- scripts -------------------------------------------------------------------------------------------------


def counting(emit: Callable[[Any], None]) -> Script[str]:
    emit("start")
    yield 0
    emit("at once")
    yield 2
    emit("two later")
    yield 1
    return "end"


def failing(_: Callable[[Any], None]) -> Script[str]:
    yield 1
    raise ValueError("broke")


def test_observed_script_spends_just_its_waits() -> None:
    scheduler = VirtualTimeScheduler()
    seen: list[tuple[float, str]] = []
    source = observed(counting, 10.0)
    source.subscribe(
        lambda item: seen.append((scheduler.clock, item)),
        on_completed=lambda: seen.append((scheduler.clock, "completed")),
        scheduler=scheduler,
    )
    scheduler.start()
    assert seen == [(0, "start"), (0, "at once"), (20, "two later"), (30, "end"), (30, "completed")]


def test_observed_script_is_cold_and_signals_what_it_raises() -> None:
    scheduler = VirtualTimeScheduler()
    errors: list[Exception] = []
    source = observed(failing, 10.0)
    for _ in range(2):
        source.subscribe(on_error=errors.append, scheduler=scheduler)
    scheduler.start()
    assert [str(error) for error in errors] == ["broke", "broke"]


@pytest.mark.parametrize(
    ("stubborn", "expected"), [(False, ["start", "at once"]), (True, ["start", "at once"])]
)
def test_disposed_script_is_not_heard(stubborn: bool, expected: list[str]) -> None:
    scheduler = VirtualTimeScheduler()
    seen: list[str] = []
    done: list[str] = []

    def script(emit: Callable[[Any], None]) -> Script[str]:
        result = yield from counting(emit)
        done.append(result)
        return result

    subscription = observed(script, 1.0, stubborn=stubborn).subscribe(seen.append, scheduler=scheduler)
    scheduler.schedule_absolute(1.0, lambda *_: subscription.dispose())
    scheduler.start()
    assert seen == ["start", "at once"]
    assert done == (["end"] if stubborn else [])


@pytest.mark.parametrize("stubborn", [False, True])
def test_cancelled_script_stops_unless_stubborn(stubborn: bool) -> None:
    async def work() -> tuple[float, bool, list[str]]:
        seen: list[str] = []
        task = asyncio.create_task(awaited(counting(seen.append), 10.0, stubborn=stubborn))
        await asyncio.sleep(5)
        task.cancel()
        await asyncio.wait([task])
        return round(asyncio.get_running_loop().time()), task.cancelled(), seen

    expected = (30, False, ["start", "at once", "two later"]) if stubborn else (5, True, ["start", "at once"])
    assert on_fake_clock(work) == expected
