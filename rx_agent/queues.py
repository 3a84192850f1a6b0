"""Messages that wait: for the end of a turn (steering) or of the run (follow-up)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import overload

from reactivex import Observable, abc
from reactivex.abc import DisposableBase
from reactivex.disposable import Disposable

from rx_agent.delivery import CatchUp, Hub
from rx_agent.messages import AgentMessage


class QueueMode(StrEnum):
    """How much of a queue one turn takes: everything, or the oldest message."""

    ALL = "all"
    ONE_AT_A_TIME = "one-at-a-time"


QUEUE_ALL = QueueMode.ALL
QUEUE_ONE_AT_A_TIME = QueueMode.ONE_AT_A_TIME


class SteeringPoint(StrEnum):
    """When steering goes in: after every turn, or only once the assistant has answered the tool results."""

    AFTER_TURN = "after_turn"
    AFTER_ANSWER = "after_answer"


class MessageQueue(Sequence[AgentMessage]):
    """A queue to look at like any sequence; safe to fill from any thread.

    >>> from rx_agent.messages import UserMessage
    >>> queue = MessageQueue(QueueMode.ONE_AT_A_TIME)
    >>> queue.put(UserMessage(content="a")); queue.put(UserMessage(content="b"))
    >>> len(queue), queue.due(), [message.text for message in queue.take(queue.due())]
    (2, 1, ['a'])
    """

    def __init__(self, mode: QueueMode = QueueMode.ONE_AT_A_TIME) -> None:
        self.mode = mode
        self._lock = threading.RLock()
        self._items: deque[tuple[AgentMessage, bool]] = deque()
        self._contents: Hub[tuple[AgentMessage, ...]] = Hub()
        self._interrupted: list[Callable[[], None]] = []

    @property
    def contents(self) -> Observable[tuple[AgentMessage, ...]]:
        """What waits: the present contents, then again after each change."""

        def subscribe(
            observer: abc.ObserverBase[tuple[AgentMessage, ...]], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            catching_up = CatchUp(observer)
            live = self._contents.subscribe(catching_up, scheduler=scheduler)
            try:
                catching_up.tell([tuple(self)])
            except BaseException:
                live.dispose()
                raise
            return live

        return Observable(subscribe)

    # --- filling -------------------------------------------------------------------------------------------

    def put(self, message: AgentMessage, *, interrupt: bool = False, tell: bool = True) -> None:
        """Adds ``message`` at the end. ``interrupt``: whoever listens cuts short what it is doing, now or (without
        ``tell``) when :meth:`interrupt` is called.
        """
        with self._lock:
            self._items.append((message, interrupt))
        self._changed()
        if interrupt and tell:
            self.interrupt()

    def interrupt(self) -> None:
        """Tells whoever listens that an interrupting message waits; nobody, where it has been taken meanwhile."""
        if self.due_by_interrupt():
            for listener in list(self._interrupted):
                listener()

    def clear(self) -> None:
        """Drops everything."""
        with self._lock:
            self._items.clear()
        self._changed()

    def on_interrupt(self, listener: Callable[[], None]) -> DisposableBase:
        """Calls ``listener()`` after each ``put`` with ``interrupt``."""
        self._interrupted.append(listener)
        return Disposable(lambda: self._interrupted.remove(listener))

    # --- draining ------------------------------------------------------------------------------------------

    def due(self) -> int:
        """How many messages the next turn takes, by ``mode`` as it is now."""
        with self._lock:
            return len(self._items) if self.mode is QueueMode.ALL else min(1, len(self._items))

    def due_by_interrupt(self) -> int:
        """How many messages up to the last interrupting one; 0 where none interrupts."""
        with self._lock:
            return max((place for place, (_, interrupt) in enumerate(self._items, 1) if interrupt), default=0)

    def take(self, count: int) -> list[AgentMessage]:
        """Removes and returns the oldest ``count`` messages (fewer if fewer are left)."""
        with self._lock:
            taken = [self._items.popleft()[0] for _ in range(min(count, len(self._items)))]
        if taken:
            self._changed()
        return taken

    def _changed(self) -> None:
        if self._contents.observers:
            self._contents.next(tuple(self))

    # --- looking -------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[AgentMessage]:
        with self._lock:
            return iter([message for message, _ in self._items])

    @overload
    def __getitem__(self, index: int) -> AgentMessage: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[AgentMessage]: ...
    def __getitem__(self, index: int | slice) -> AgentMessage | Sequence[AgentMessage]:
        return list(self)[index]

    def __repr__(self) -> str:
        return f"MessageQueue({self.mode.value}, {list(self)!r})"
