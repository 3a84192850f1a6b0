"""Ends a run early: an abort, an interruption or a broken hook, from any thread, at any moment."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable, SerialDisposable
from reactivex.scheduler import CurrentThreadScheduler
from reactivex.subject import Subject

from rx_agent.abort import AbortSignal
from rx_agent.brackets import ABORTED, INTERRUPTED_BY_STEERING, Brackets, Cut, TurnScope
from rx_agent.events import AgentEndEvent, AgentEvent, MessageUpdateEvent
from rx_agent.queues import MessageQueue
from rx_agent.reporting import reason_of, report
from rx_agent.sequencing import guarded, sequence


class Supervised(Protocol):
    """What can be run and ended early."""

    open: Brackets
    scope: TurnScope
    interrupted: bool
    interrupts: Subject[None]

    @property
    def signal(self) -> AbortSignal: ...
    @property
    def steering(self) -> MessageQueue: ...
    def steps(self) -> Iterator[Observable[AgentEvent]]:
        """The run."""
        ...

    def close(self, cut: Cut) -> list[AgentEvent]:
        """The events that are missing."""
        ...


def supervise(
    run: Supervised,
    observer: abc.ObserverBase[AgentEvent],
    scheduler: abc.SchedulerBase,
    *,
    start_now: bool,
) -> abc.DisposableBase:
    """Subscribes ``run`` for ``observer``: folds each event before it is told, and ends the run early if need be.

    No operator fits: an abort or interruption that comes while an event is being delivered (a listener calls
    ``abort``) must take effect right after it, once every listener has seen it, and must then replace the rest
    of the stream by events computed from the fold. It may come from another thread; what two threads say at
    once is then told by the one that is at it.
    """
    subscription = SerialDisposable()
    open_ = run.open
    emit_next = observer.on_next
    over = False
    wanted: Cut | None = None
    lock = threading.RLock()
    acquire, release = lock.acquire, lock.release
    teller: int | None = None
    """The thread that is telling the observer something."""
    waiting: deque[AgentEvent | None] = deque()
    """What another thread has said meanwhile: folded, to be told next. None is the completion."""
    this_thread = threading.get_ident

    def on_next(event: AgentEvent) -> None:
        # Each delta comes through here: the lock is taken by hand, which is half the cost of `with`, and what
        # `see` and `tell` would do for a delta stands here too.
        nonlocal teller
        me = this_thread()
        acquire()
        try:
            if over:
                return
            if type(event) is MessageUpdateEvent:
                open_.open_message = event
            else:
                open_.see(event)
            outer = teller
            if outer is not None and outer != me:
                waiting.append(event)
                return
            teller = me
        finally:
            release()
        try:
            emit_next(event)
        except BaseException as error:
            left(error)
        if outer is None:
            acquire()
            if not waiting and wanted is None and teller == me:
                teller = None  # nearly always
                release()
                return
            release()
            while more_or_free():
                pass
        elif wanted is not None:
            cut_short(wanted)

    def tell(event: AgentEvent | None) -> None:
        try:
            if event is None:
                end()
                observer.on_completed()
            else:
                emit_next(event)
        except BaseException as error:
            left(error)

    def left(error: BaseException) -> None:
        """An observer that raises has left, and there is no caller above that could take the exception."""
        if not isinstance(error, Exception):
            free()  # such as Ctrl-C: whoever aborts the run then must find the observer free
            raise error
        report(error, "observer", emit_next)
        leave()

    def free() -> None:
        nonlocal teller
        teller = None

    def more_or_free() -> bool:
        """Tells what has been said or asked meanwhile; False, and the observer is free, where that is nothing."""
        with lock:
            if teller != this_thread():  # an interruption has freed it already
                return False
            has_said = bool(waiting) and not over
            said = waiting.popleft() if has_said else None
            cut = None if over else wanted
            if not has_said and cut is None:
                free()
                return False
        if has_said:
            tell(said)
        elif cut is not None:
            return cut_short(cut)
        return True

    def want(cut: Cut) -> None:
        nonlocal wanted, teller
        with lock:
            if teller is not None:
                if wanted is None or cut.kind == "aborted":
                    wanted = cut
                return
            teller = this_thread()
        more = cut_short(cut)
        while more:
            more = more_or_free()

    def cut_short(cut: Cut) -> bool:
        """Ends what ``cut`` says; whether the observer is still this thread's to tell."""
        nonlocal wanted
        wanted = None
        if over:
            return True
        if cut.kind != "interrupted":
            end()
            try:
                closing = run.close(cut)
            except Exception as error:
                # Whatever is wrong with the fold, a run that cannot end would keep its agent busy for ever.
                report(error, "closing of a run", run)
                closing = [AgentEndEvent(tuple(open_.new_messages), "error")]
            while waiting:
                tell(waiting.popleft())
            for event in closing:
                open_.see(event)
                tell(event)
            observer.on_completed()
        elif open_.turn_open:
            run.scope.cut = run.interrupted = True
            # The next turn's events come out of this very call, and each is an event of its own.
            free()
            run.interrupts.on_next(None)
            return False
        return True

    def end() -> None:
        nonlocal over
        with lock:
            over = run.scope.cut = True
        guarded(subscription, "a run").dispose()

    def leave() -> None:
        end()
        watching.dispose()

    def on_error(error: Exception) -> None:
        nonlocal wanted
        cut = Cut("error", reason_of(error))
        with lock:
            if teller not in (None, this_thread()):
                wanted = wanted or cut
                return
        cut_short(cut)

    def on_completed() -> None:
        nonlocal over
        with lock:
            if over:
                return
            if teller not in (None, this_thread()):
                waiting.append(None)
                return
            over = True
        observer.on_completed()

    def start(_: abc.SchedulerBase, __: object = None) -> None:
        if not over:
            subscription.disposable = sequence(run.steps, unless=lambda: over).subscribe(
                on_next, on_error, on_completed, scheduler=scheduler
            )

    watching = CompositeDisposable(
        run.signal.subscribe(lambda: want(ABORTED)),
        run.steering.on_interrupt(lambda: want(INTERRUPTED_BY_STEERING)),
        Disposable(end),
    )
    if start_now:
        start(scheduler)
        return watching
    # As every cold source does: begun once the subscription is in its owner's hands, so that a synchronous run
    # can be disposed of from within.
    watching.add(CurrentThreadScheduler.singleton().schedule(start))
    return watching
