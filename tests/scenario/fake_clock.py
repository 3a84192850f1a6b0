"""An asyncio event loop that never waits: where nothing is ready, its clock jumps to the next timer."""

from __future__ import annotations

import asyncio
import itertools
import selectors
from collections.abc import Callable
from contextvars import Context
from typing import Any

_HAIR = 2.0**-28
"""More than asyncio's clock resolution, so that it never fires two timers in one go."""


class NothingLeftError(RuntimeError):
    """Somebody waits, and nothing is left that could end it."""


class FakeClockLoop(asyncio.SelectorEventLoop):
    """``time()`` starts at 0 and moves only when nothing is ready. It is made for whole seconds.

    Timers for one second fire one by one in the order they were set, each after all that the one before has led
    to: every timer is put off by a hair more than the one set before it. (asyncio's heap leaves the order of equal
    times open, and fires them together.) A wait that nothing could end raises :class:`NothingLeftError` instead
    of hanging. Not for work in threads or on sockets.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._hairs = itertools.count()
        super().__init__(_NeverWaiting(self._jump))

    def time(self) -> float:
        return self._now

    def _jump(self, seconds: float) -> None:
        self._now += seconds

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return super().call_at(round(when) + next(self._hairs) * _HAIR, callback, *args, context=context)


class _NeverWaiting(selectors.SelectSelector):
    """Lets the clock jump where the loop would wait for a timer."""

    def __init__(self, jump: Callable[[float], None]) -> None:
        super().__init__()
        self._jump = jump

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise NothingLeftError("somebody waits, but nothing is ready and no timer is set")
            self._jump(max(0.0, timeout))
        return ready
