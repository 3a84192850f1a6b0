"""Where files are played: in virtual time, to the tick, and on asyncio with a fake clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Any

from reactivex import Observable
from reactivex.scheduler import VirtualTimeScheduler

from rx_agent import Run
from tests.scenario.fake_clock import FakeClockLoop, NothingLeftError
from tests.scenario.player import Outcome, Player
from tests.scenario.scripts import Script, awaited, observed
from tests.scenario.vocabulary import Json


class Mode(StrEnum):
    """The two ways to play a file."""

    VIRTUAL = "virtual-time"
    ASYNCIO = "asyncio"


MODES = tuple(Mode)


def play(scenario: Json, mode: Mode) -> Outcome:
    """What comes of ``scenario``."""
    if mode is Mode.VIRTUAL:
        return VirtualWorld().play(scenario)
    with asyncio.Runner(loop_factory=FakeClockLoop) as runner:
        try:
            return runner.run(AsyncioWorld().play(scenario))
        except NothingLeftError as error:
            return Outcome(problems=[f"asyncio: {error}"])


class VirtualWorld:
    """Virtual time; tools and hooks are observables.

    RxPY's virtual clock moves by one unit after 100 actions at one instant: a tick is many units long, and ticks
    are floored.
    """

    tick = 10_000.0

    def __init__(self) -> None:
        self.scheduler = VirtualTimeScheduler()

    def now(self) -> int:
        return int(self.scheduler.clock // self.tick)

    def later(self, ticks: float, action: Callable[[], None]) -> None:
        self.scheduler.schedule_relative(ticks * self.tick, lambda *_: action())

    def function(
        self, script: Callable[[Any, Any], Script[Any]], *, stubborn: bool = False
    ) -> Callable[[Any, Any], Any]:
        def function(subject: Any, context: Any) -> Observable[Any]:
            return observed(lambda _: script(subject, context), self.tick, stubborn=stubborn)

        return function

    def play(self, scenario: Json) -> Outcome:
        player = Player(scenario, self)
        # Before the first run, so that what the user does at a tick comes before what the agent does at it.
        for action in player.timed:
            self.scheduler.schedule_absolute(action["at"] * self.tick, partial(self._perform, player, action))
        waiting = iter(player.sequential)
        active: list[Run] = []

        def go_on() -> None:
            for action in waiting:
                run = player.perform(action)
                if run is not None and not run.done:
                    active[:] = [run]
                    run.subscribe(on_completed=go_on)
                    return

        go_on()
        self.scheduler.start()
        if any(not run.done for run in active):
            player.problem("a run never ended: nothing is left that could happen")
        return player.finish()

    @staticmethod
    def _perform(player: Player, action: Json, *_: Any) -> None:
        player.perform(action)


class AsyncioWorld:
    """A running event loop with a fake clock; tools and hooks are coroutines."""

    tick = 1000.0
    scheduler = None

    def __init__(self) -> None:
        self._busy_until = 0.0

    def now(self) -> int:
        return int(asyncio.get_running_loop().time() // self.tick)

    def later(self, ticks: float, action: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        self._at(loop.time() + ticks * self.tick, action)

    def _at(self, when: float, action: Callable[[], object]) -> None:
        self._busy_until = max(self._busy_until, when)
        asyncio.get_running_loop().call_at(when, action)

    def function(
        self, script: Callable[[Any, Any], Script[Any]], *, stubborn: bool = False
    ) -> Callable[[Any, Any], Any]:
        async def function(subject: Any, context: Any) -> Any:
            return await awaited(script(subject, context), self.tick, stubborn=stubborn)

        return function

    async def play(self, scenario: Json) -> Outcome:
        player = Player(scenario, self)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: player.problem(f"the event loop complains: {context}"))
        for action in player.timed:
            self._at(action["at"] * self.tick, partial(player.perform, action))
        for action in player.sequential:
            run = player.perform(action)
            if run is not None:
                await run
        await player.agent.wait_for_idle()
        while (left := self._busy_until - loop.time()) >= 0:
            await asyncio.sleep(left + self.tick / 2)
            await player.agent.wait_for_idle()
        if tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            player.problem(f"tasks are left: {tasks}")
        return player.finish()
