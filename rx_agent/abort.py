"""The signal by which hooks and tools learn that their run is being aborted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from reactivex.abc import DisposableBase
from reactivex.disposable import Disposable

from rx_agent.reporting import report


class AbortSignal:
    """Set once, never cleared. Safe to read and wait on from any thread.

    A blocking tool polls ``signal.aborted`` or sleeps with ``signal.wait(seconds)``; a coroutine may
    ``await signal.until_aborted()``, though it is cancelled anyway.

    >>> signal = AbortSignal()
    >>> signal.aborted
    False
    >>> subscription = signal.subscribe(lambda: print("aborted"))
    >>> signal.set()
    aborted
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []

    @property
    def aborted(self) -> bool:
        """Whether the run has been aborted."""
        return self._event.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Blocks this thread until the abort or for ``seconds``; True if aborted. For worker threads only."""
        return self._event.wait(seconds)

    def subscribe(self, callback: Callable[[], object]) -> DisposableBase:
        """Calls ``callback()`` at the abort, at once if that has been. Disposing forgets the callback."""
        with self._lock:
            if not self._event.is_set():
                self._callbacks.append(callback)
                return Disposable(lambda: self._forget(callback))
        callback()
        return Disposable()

    def _forget(self, callback: Callable[[], object]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

    async def until_aborted(self) -> None:
        """Returns at the abort."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def settle() -> None:
            if not done.done():
                done.set_result(None)

        subscription = self.subscribe(lambda: loop.call_soon_threadsafe(settle))
        try:
            await done
        finally:
            subscription.dispose()

    def set(self) -> None:
        """Aborts. Callbacks run here, in order; one that raises is reported and hurts no other."""
        with self._lock:
            if self._event.is_set():
                return
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback()
            except Exception as error:
                report(error, "abort callback", callback)
