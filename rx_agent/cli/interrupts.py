"""Ctrl-C: the first one asks, the second one insists."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from rx_agent.asyncio_edge import hop


class Interrupts:
    """While entered, a first Ctrl-C calls ``ask()`` on the loop; a second one calls ``insist()`` and raises
    ``KeyboardInterrupt``.

    ``ask`` says whether there was something to stop; where there was nothing, the first one raises already.
    ``calm`` makes the next Ctrl-C a first one again.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, ask: Callable[[], bool], insist: Callable[[], object]
    ) -> None:
        self._loop = loop
        self._ask = ask
        self._insist = insist
        self._asked = False
        self._before: Any = None
        self.happened = False

    def __enter__(self) -> Interrupts:
        self._before = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._before)

    def calm(self) -> None:
        """What was asked for has happened."""
        self._asked = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # Called between any two instructions of the main thread, so the loop has to do the work. Raising is for
        # insisting only: it also gets out of a write that blocks.
        if self._asked:
            self._insist()
            raise KeyboardInterrupt
        self._asked = self.happened = True
        hop(self._loop, self._answer)

    def _answer(self) -> None:
        if not self._ask():
            raise KeyboardInterrupt
