"""A provider's stream as the run's message events."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from rx_agent.events import (
    AgentEvent,
    AssistantMessageEvent,
    BlockEvent,
    BlockUpdate,
    DoneEvent,
    ErrorEvent,
    MessageEndEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    StartEvent,
)
from rx_agent.messages import AssistantMessage
from rx_agent.models import Model
from rx_agent.reporting import as_exception, reason_of, report
from rx_agent.sequencing import guarded, now_ms

# What `MessageUpdateEvent(event)` comes to, at little more than half the cost: nearly all events are made here.
_new_update: Callable[[type[MessageUpdateEvent]], MessageUpdateEvent] = object.__new__
_set_event: Callable[[MessageUpdateEvent, BlockUpdate], None] = vars(MessageUpdateEvent)[
    "assistant_message_event"
].__set__

NO_END = "The provider's stream ended without a done or error event"


def as_message_events(
    request: Callable[[], Observable[AssistantMessageEvent]], model: Model
) -> Observable[AgentEvent]:
    """The stream that ``request()`` gives as ``message_start``, a ``message_update`` per block event and
    ``message_end``; then completion.

    An operator of its own because it stands on the path of every delta, and because it holds providers to their
    contract: a stream that cannot be had, signals ``on_error``, or ends without ``done`` or ``error``, becomes a
    failed message that keeps what came.
    """

    def subscribe(
        observer: abc.ObserverBase[AgentEvent], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        emit = observer.on_next
        last: StartEvent | BlockUpdate | None = None
        ended = False

        def on_next(event: AssistantMessageEvent) -> None:
            nonlocal last
            if ended:
                return
            if isinstance(event, BlockEvent):
                if last is None:
                    emit(MessageStartEvent(_empty(model, scheduler)))
                last = event
                update = _new_update(MessageUpdateEvent)
                _set_event(update, event)
                emit(update)
            elif isinstance(event, StartEvent):
                if last is None:
                    last = event
                    emit(MessageStartEvent(event.partial))
            else:
                finish(event)

        def finish(event: Any) -> None:
            message = getattr(event, "message", None)
            if not isinstance(event, DoneEvent | ErrorEvent) or not isinstance(message, AssistantMessage):
                fail(f"The provider emitted {event!r:.80}, which is no AssistantMessageEvent")
            elif isinstance(event, ErrorEvent) and message.stop_reason not in ("error", "aborted"):
                end(message.model_copy(update={"stop_reason": "error"}))
            elif message.stop_reason is None:
                reason = "tool_use" if message.tool_calls else "stop"
                end(message.model_copy(update={"stop_reason": reason}))
            else:
                end(message)

        def end(message: AssistantMessage) -> None:
            nonlocal ended
            ended = True
            if last is None:
                emit(MessageStartEvent(message))
            emit(MessageEndEvent(message))
            observer.on_completed()

        def fail(reason: str) -> None:
            if ended:
                return
            so_far = _empty(model, scheduler) if last is None else last.partial
            end(so_far.model_copy(update={"stop_reason": "error", "error_message": reason}))

        def on_error(error: Exception) -> None:
            fail(reason_of(error))

        try:
            source = _observable(request())
            subscription = source.subscribe(on_next, on_error, lambda: fail(NO_END), scheduler=scheduler)
        except BaseException as raised:
            error = as_exception(raised, "the stream function")
            if ended:  # it was whole; what raised is its cleanup
                report(error, "disposal of", "a provider's stream")
            on_error(error)
            return Disposable()
        return guarded(subscription, "a provider's stream")

    return Observable(subscribe)


def _observable(source: Any) -> Observable[AssistantMessageEvent]:
    if isinstance(source, Observable):
        return cast("Observable[AssistantMessageEvent]", source)
    if inspect.iscoroutine(source):
        source.close()
    raise TypeError(
        f"The stream function returned {type(source).__name__}; it must be a plain function that returns an "
        "Observable of AssistantMessageEvents"
    )


def _empty(model: Model, scheduler: abc.SchedulerBase | None) -> AssistantMessage:
    return AssistantMessage(
        api=model.api,
        provider=model.provider,
        model=model.id,
        stop_reason=None,
        timestamp=now_ms(scheduler),
    )
