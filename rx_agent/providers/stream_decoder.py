"""What every decoder of a wire API has in common: events of the wire in, events of the message out, no
I/O.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from rx_agent.events import AssistantMessageEvent
from rx_agent.message_builder import MessageBuilder
from rx_agent.models import Model, Usage
from rx_agent.providers.http_errors import Failure, incomplete
from rx_agent.providers.sse import SseEvent


class MalformedEventError(ValueError):
    """An event of the stream is not what its API says; the message shows its beginning."""

    def __init__(self, data: bytes) -> None:
        shown = data[:200].decode("utf-8", "replace")
        super().__init__(f"the server sent something that is not an event of this API: {shown}")


class StreamDecoder(ABC):
    """Decodes one response. Subclasses say how an event is read and when the answer is whole.

    The pump calls :meth:`feed` for each event until :attr:`ended`, and :meth:`finish` where the stream ends
    before that, :meth:`fail` where it breaks. Exactly one ``done`` or ``error`` comes out, as the last event.
    """

    def __init__(self, model: Model, *, timestamp: int = 0) -> None:
        self.model = model
        self.builder = MessageBuilder(model, timestamp=timestamp)
        self.started = False
        self.ended = False

    @abstractmethod
    def feed(self, event: SseEvent) -> list[AssistantMessageEvent]:
        """The message's events that ``event`` gives rise to.

        Raises :class:`MalformedEventError` for one that cannot be read at all, before anything came of it (the
        pump tells one that was cut off by the end of the stream from one that was wrong).
        """

    @abstractmethod
    def whole(self) -> list[AssistantMessageEvent] | None:
        """The closing events, if what came so far is the whole answer although the API's end mark is missing."""

    def usage(self) -> Usage | None:
        """The priced usage so far, if the server told."""
        return None

    def response_id(self) -> str | None:
        """The server's id of the response, if it told."""
        return None

    def finish(self, stray: bytes = b"", *, why: str = "") -> list[AssistantMessageEvent]:
        """The closing events at the end of the stream. ``stray``: what came and was no event. ``why`` it ended."""
        if self.ended:
            return []
        return self.whole() or self.fail(incomplete(self.model.provider, stray, why=why))

    def break_off(self, failure: Failure) -> list[AssistantMessageEvent]:
        """The closing events where the connection broke: whole if the answer was, else ``failure``."""
        if self.ended:
            return []
        return self.whole() or self.fail(failure)

    def fail(self, failure: Failure) -> list[AssistantMessageEvent]:
        """The closing events of a failure; what came stays in the message."""
        if self.ended:
            return []
        self.ended = True
        events = self.begin()
        events.append(
            self.builder.error(
                failure.text, kind=failure.kind, usage=self.usage(), response_id=self.response_id()
            )
        )
        return events

    def abandon(self, failure: Failure) -> list[AssistantMessageEvent]:
        """The closing events of a decoder that broke in its closing: the blocks as they are, and ``failure``."""
        self.ended = True
        return [*self.begin(), self.builder.error(failure.text, kind=failure.kind)]

    def begin(self) -> list[AssistantMessageEvent]:
        """The ``start`` event, the first time."""
        if self.started:
            return []
        self.started = True
        return [self.builder.start()]
