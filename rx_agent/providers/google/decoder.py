"""Decodes a streamed answer: https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent.

Every event is a whole ``GenerateContentResponse`` with the next parts of the answer: ``{"candidates": [{"content":
{"parts": [...]}, "finishReason"}], "promptFeedback", "usageMetadata", "responseId"}``. There is no end mark but the
``finishReason``, which old models send with every event, so that an answer is whole when the stream has ended well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import from_json

from rx_agent.events import AssistantMessageEvent
from rx_agent.models import Model, Usage
from rx_agent.providers.google.finish_reasons import UNSPECIFIED, block_failure, finish_failure
from rx_agent.providers.google.function_calls import FunctionCalls
from rx_agent.providers.google.kept_parts import kept_part
from rx_agent.providers.google.usage import google_usage
from rx_agent.providers.http_errors import Failure, error_data, parsed_error, stream_failure
from rx_agent.providers.sse import SseEvent
from rx_agent.providers.stream_decoder import MalformedEventError, StreamDecoder


class GoogleDecoder(StreamDecoder):
    """Decodes one answer, which is that of candidate 0.

    A part with a signature is a block of its own, for the model wants the signature back on that part and no
    other. Parts that are neither text nor a function call are kept, see
    :mod:`~rx_agent.providers.google.kept_parts`.

    >>> decoder = GoogleDecoder(Model(id="m", api="google", provider="google"))
    >>> chunk = b'{"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}]}'
    >>> [event.type for event in decoder.feed(SseEvent("message", chunk))]
    ['start', 'text_start', 'text_delta']
    >>> decoder.finish()[-1].message.stop_reason
    'stop'
    """

    def __init__(self, model: Model, *, timestamp: int = 0) -> None:
        super().__init__(model, timestamp=timestamp)
        self._text: int | None = None
        self._thinking: int | None = None
        self._calls = FunctionCalls(self.builder)
        self._finish: str | None = None
        self._finish_said = ""
        self._goes_on = False
        """Something came after a finish reason, so that it proves nothing."""
        self._usage: Mapping[str, Any] | None = None
        self._id: str | None = None

    def feed(self, event: SseEvent) -> list[AssistantMessageEvent]:
        """See :meth:`StreamDecoder.feed`."""
        if self.ended:
            return []
        data = event.data
        try:
            chunk: Any = from_json(data)
        except ValueError:
            text = data.decode("utf-8", "replace").strip()
            if text == "[DONE]":  # of a server that is compatible with two APIs
                return self.finish(why="nothing said that the answer is whole")
            if not text:
                return []
            try:
                chunk = json.loads(text)  # takes escapes of lone surrogates, which the fast parser refuses
            except (ValueError, RecursionError):
                raise MalformedEventError(data) from None
        if self._text is not None and (common := self._common(chunk)):
            return [common]
        events: list[AssistantMessageEvent] = []
        try:
            self._chunk(chunk, events)
        except (AttributeError, TypeError, KeyError, RecursionError):
            # JSON, but no answer. What it said up to there stands.
            events += self.fail(Failure(str(MalformedEventError(data)), "network"))
        return events

    def usage(self) -> Usage | None:
        """See :meth:`StreamDecoder.usage`."""
        return None if self._usage is None else google_usage(self._usage).priced(self.model.cost)

    def response_id(self) -> str | None:
        """See :meth:`StreamDecoder.response_id`."""
        return self._id

    def whole(self) -> list[AssistantMessageEvent] | None:
        """See :meth:`StreamDecoder.whole`: a ``finishReason`` makes an answer whole."""
        return None if self._finish is None else self._complete()

    def finish(self, stray: bytes = b"", *, why: str = "") -> list[AssistantMessageEvent]:
        """See :meth:`StreamDecoder.finish`. An error that came without ``data:``, as Google's servers write those
        that happen on the way, counts as one whatever finish reason there was.
        """
        if not self.ended and stray and (error := parsed_error(stray)).message:
            return self.fail(stream_failure(error, self.model.provider))
        return super().finish(stray, why=why)

    def break_off(self, failure: Failure) -> list[AssistantMessageEvent]:
        """See :meth:`StreamDecoder.break_off`. With an old model's finish reasons nobody knows what is missing."""
        return self.fail(failure) if self._goes_on else super().break_off(failure)

    def _common(self, chunk: Any) -> AssistantMessageEvent | None:
        """The event of a chunk that only goes on with the open text, as nearly all do; None for any other."""
        try:
            (candidate,) = chunk["candidates"]
            (part,) = candidate["content"]["parts"]
            said = part["text"]
            if (
                type(said) is not str
                or not said
                or len(part) > 1
                or "finishReason" in candidate
                or candidate.get("index")
                or self._finish is not None
                or "promptFeedback" in chunk
                or "error" in chunk
            ):
                return None
            self._see_usage(chunk.get("usageMetadata"))
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        assert self._text is not None
        return self.builder.text_delta(self._text, said)

    def _chunk(self, chunk: Any, events: list[AssistantMessageEvent]) -> None:
        if not self.started:
            events += self.begin()
        chunk = _only(chunk)
        if self._id is None:
            id = chunk.get("responseId")
            self._id = id if isinstance(id, str) and id else None
        self._see_usage(chunk.get("usageMetadata"))
        if error := chunk.get("error"):
            events += self.fail(stream_failure(error_data(error), self.model.provider))
            return
        for candidate in chunk.get("candidates") or ():
            if not candidate.get("index"):
                self._candidate(candidate, events)
        feedback = chunk.get("promptFeedback")
        if feedback and (reason := _text(feedback.get("blockReason"))) and reason not in UNSPECIFIED:
            said = _text(feedback.get("blockReasonMessage"))
            events += self.fail(block_failure(reason, said, self.model.provider))

    def _candidate(self, candidate: Mapping[str, Any], events: list[AssistantMessageEvent]) -> None:
        content: Any = candidate.get("content") or {}
        for part in content.get("parts") or ():
            if self._finish is not None:
                self._goes_on = True
            self._part(part, events)
        if (reason := candidate.get("finishReason")) and reason not in UNSPECIFIED:
            self._finish = str(reason)
            self._finish_said = _text(candidate.get("finishMessage"))

    def _part(self, part: Mapping[str, Any], events: list[AssistantMessageEvent]) -> None:
        signature = part.get("thoughtSignature") or None
        if signature is not None and not isinstance(signature, str):
            raise TypeError("a signature is a text")
        if (call := part.get("functionCall")) is not None:
            self._close_block(events)
            self._calls.feed(call, signature, self._id, events)
        elif said := part.get("text"):
            if not isinstance(said, str):
                raise TypeError("a text is a text")
            if part.get("thought"):
                self._think(said, signature, events)
            else:
                self._say(said, signature, events)
        elif any(value for name, value in part.items() if name != "thought"):
            self._close_block(events)
            started = self.builder.thinking_start(redacted=True)
            events += [started, self.builder.thinking_end(started.content_index, signature=kept_part(part))]

    def _say(self, text: str, signature: str | None, events: list[AssistantMessageEvent]) -> None:
        index = self._text
        if index is None or signature is not None:
            self._close_block(events)
            started = self.builder.text_start()
            events.append(started)
            index = self._text = started.content_index
        events.append(self.builder.text_delta(index, text))
        if signature is not None:
            self._close_block(events, signature)

    def _think(self, text: str, signature: str | None, events: list[AssistantMessageEvent]) -> None:
        index = self._thinking
        if index is None or signature is not None:
            self._close_block(events)
            started = self.builder.thinking_start()
            events.append(started)
            index = self._thinking = started.content_index
        events.append(self.builder.thinking_delta(index, text))
        if signature is not None:
            self._close_block(events, signature)

    def _close_block(self, events: list[AssistantMessageEvent], signature: str | None = None) -> None:
        if self._text is not None:
            events.append(self.builder.text_end(self._text, signature=signature))
            self._text = None
        if self._thinking is not None:
            events.append(self.builder.thinking_end(self._thinking, signature=signature))
            self._thinking = None

    def _complete(self) -> list[AssistantMessageEvent]:
        self.ended = True
        events = self.begin()
        self._close_block(events)
        self._calls.end(events)
        usage, id, finish = self.usage(), self._id, self._finish or ""
        if failure := finish_failure(finish, self._finish_said, self.model.provider):
            events.append(self.builder.error(failure.text, kind=failure.kind, usage=usage, response_id=id))
        elif finish == "MAX_TOKENS":
            events.append(self.builder.done("length", usage=usage, response_id=id))
        else:
            # The reason is "STOP" although tools are called.
            stop_reason = "tool_use" if len(self._calls) else "stop"
            events.append(self.builder.done(stop_reason, usage=usage, response_id=id))
        return events

    def _see_usage(self, usage: Any) -> None:
        # Some events only tell what kind of traffic they are.
        if isinstance(usage, dict) and (self._usage is None or "promptTokenCount" in usage):
            self._usage = cast("dict[str, Any]", usage)


def _only(chunk: Any) -> Any:
    """The one item of a list of one, as which Google's servers write errors; anything else as it is."""
    if isinstance(chunk, list) and len(items := cast("list[Any]", chunk)) == 1:
        return items[0]
    return cast("Any", chunk)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
