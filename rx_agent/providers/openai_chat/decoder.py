"""Decodes a streamed chat completion: https://platform.openai.com/docs/api-reference/chat-streaming.

A chunk is ``{"id", "choices": [{"index", "delta": {...}, "finish_reason"}], "usage"}``; the end mark is
``[DONE]``. Beyond OpenAI's own fields it reads what the compatible servers add: ``reasoning_content`` and
``reasoning``, ``reasoning_details`` (OpenRouter), content as a list of parts (Mistral), errors as a chunk.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import from_json

from rx_agent.events import AssistantMessageEvent
from rx_agent.messages import ErrorKind, StopReason
from rx_agent.models import Model, Usage
from rx_agent.providers.http_errors import Failure, error_data, incomplete, stream_failure
from rx_agent.providers.openai_chat.reasoning_details import ReasoningDetails
from rx_agent.providers.openai_chat.tool_calls import ToolCalls
from rx_agent.providers.openai_chat.usage import chat_usage
from rx_agent.providers.sse import SseEvent
from rx_agent.providers.stream_decoder import MalformedEventError, StreamDecoder

_LENGTH = frozenset({"length", "max_tokens", "model_length"})
_FAILURES: Mapping[str, tuple[ErrorKind, str]] = {
    "content_filter": ("refused", "The provider's content filter stopped the answer."),
    "insufficient_system_resource": ("overloaded", "The server ran out of resources and stopped the answer."),
    "error": ("unknown", "The server reported an error and stopped the answer."),
    "abort": ("network", "The server aborted the answer before it was complete."),
}


class ChatDecoder(StreamDecoder):
    """Decodes one answer.

    >>> decoder = ChatDecoder(Model(id="m", api="openai_chat", provider="openai"))
    >>> chunk = b'{"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]}'
    >>> [event.type for event in decoder.feed(SseEvent("message", chunk))]
    ['start', 'text_start', 'text_delta']
    >>> decoder.feed(SseEvent("message", b"[DONE]"))[-1].message.stop_reason
    'stop'
    """

    def __init__(self, model: Model, *, timestamp: int = 0) -> None:
        super().__init__(model, timestamp=timestamp)
        self._text: int | None = None
        self._thinking: int | None = None
        self._calls = ToolCalls(self.builder)
        self._details = ReasoningDetails()
        self._refusal: list[str] = []
        self._choice: Any = None
        self._finish: str | None = None
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
            if text == "[DONE]":
                return self._end_mark()
            if not text:
                return []
            try:
                chunk = json.loads(
                    text
                )  # takes the escapes of lone surrogates, which the fast parser refuses
            except (ValueError, RecursionError):
                raise MalformedEventError(data) from None
        if self._text is not None and event.name == "message" and (common := self._common(chunk)):
            return [common]
        events: list[AssistantMessageEvent] = []
        try:
            self._chunk(chunk, event.name, events)
        except (AttributeError, TypeError, KeyError):
            # JSON, but no chunk. What it said up to there stands.
            events += self.fail(Failure(str(MalformedEventError(data)), "network"))
        return events

    def usage(self) -> Usage | None:
        """See :meth:`StreamDecoder.usage`."""
        return None if self._usage is None else chat_usage(self._usage).priced(self.model.cost)

    def response_id(self) -> str | None:
        """See :meth:`StreamDecoder.response_id`."""
        return self._id

    def whole(self) -> list[AssistantMessageEvent] | None:
        """See :meth:`StreamDecoder.whole`: a ``finish_reason`` makes an answer whole."""
        return None if self._finish is None else self._complete()

    def _end_mark(self) -> list[AssistantMessageEvent]:
        if self._finish is None and not (self.builder.position or self._refusal):
            return self.fail(incomplete(self.model.provider, why="nothing came before the end mark"))
        return self._complete()

    def _common(self, chunk: Any) -> AssistantMessageEvent | None:
        """The event of a chunk that only goes on with the open text, as nearly all do; None for any other."""
        try:
            (choice,) = chunk["choices"]
            said = choice["delta"]["content"]
            if (
                type(said) is not str
                or not said
                or len(choice["delta"]) > 1
                or choice.get("finish_reason")
                or choice.get("index") != self._choice
                or chunk.get("usage")
                or "error" in chunk
                or "error" in choice
            ):
                return None
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        assert self._text is not None
        return self.builder.text_delta(self._text, said)

    def _chunk(self, chunk: dict[str, Any], name: str, events: list[AssistantMessageEvent]) -> None:
        if not self.started:
            events += self.begin()
        if self._id is None:
            id = chunk.get("id")
            self._id = id if isinstance(id, str) and id else None
        if usage := chunk.get("usage"):
            self._see_usage(usage)
        choices = chunk.get("choices")
        if chunk.get("error") or name == "error" or (choices is None and _is_error(chunk)):
            events += self._error(chunk)
            return
        if not choices:
            self._see_elsewhere(chunk)
            return
        for choice in choices:
            index = choice.get("index")
            if self._choice is None:
                self._choice = index
            if index != self._choice and index is not None:
                continue  # a further answer (n > 1); the message is the first
            if delta := choice.get("delta"):
                self._delta(delta, events)
            if reason := choice.get("finish_reason"):
                self._finish = str(reason)
                self._see_elsewhere(chunk)
                if usage := choice.get("usage"):  # Moonshot
                    self._see_usage(usage)
            if choice.get("error"):
                events += self._error(choice)
                return

    def _delta(self, delta: dict[str, Any], events: list[AssistantMessageEvent]) -> None:
        if len(delta) == 1 and isinstance(said := delta.get("content"), str) and said:
            self._say(said, events)  # the common delta, spared all the looking
            return
        details = delta.get("reasoning_details")
        said = self._details.feed(details) if details else ""
        reasoning = delta.get("reasoning_content") or delta.get("reasoning") or said
        if reasoning and isinstance(reasoning, str):
            self._think(reasoning, events)
        if content := delta.get("content"):
            if isinstance(content, str):
                self._say(content, events)
            else:
                self._parts(content, events)
        if calls := delta.get("tool_calls"):
            self._close_block(events)
            self._calls.feed(calls, events)
        elif (function := delta.get("function_call")) and isinstance(function, dict):
            self._close_block(events)
            self._calls.feed_function(cast("dict[str, Any]", function), events)
        if refusal := delta.get("refusal"):
            self._refusal.append(str(refusal))

    def _say(self, text: str, events: list[AssistantMessageEvent]) -> None:
        index = self._text
        if index is None:
            self._close_block(events)
            started = self.builder.text_start()
            events.append(started)
            index = self._text = started.content_index
        events.append(self.builder.text_delta(index, text))

    def _think(self, text: str, events: list[AssistantMessageEvent]) -> None:
        index = self._thinking
        if index is None:
            self._close_block(events)
            started = self.builder.thinking_start()
            events.append(started)
            index = self._thinking = started.content_index
        events.append(self.builder.thinking_delta(index, text))

    def _parts(self, parts: list[Any], events: list[AssistantMessageEvent]) -> None:
        for part in parts:
            match part:
                case str() if part:
                    self._say(part, events)
                case {"type": "text", "text": str(text)} if text:
                    self._say(text, events)
                case {"type": "thinking", "thinking": str(text)} if text:
                    self._think(text, events)
                case {"type": "thinking", "thinking": [*inner]}:
                    for piece in inner:
                        if isinstance(text := piece.get("text"), str) and text:
                            self._think(text, events)
                case _:
                    pass  # references, images of the server's own tools …

    def _close_block(self, events: list[AssistantMessageEvent]) -> None:
        if self._text is not None:
            events.append(self.builder.text_end(self._text))
            self._text = None
        if self._thinking is not None:
            events.append(self.builder.thinking_end(self._thinking, signature=self._details.take()))
            self._thinking = None

    def _complete(self) -> list[AssistantMessageEvent]:
        self.ended = True
        events = self.begin()
        self._close_block(events)
        if (signature := self._details.take()) is not None:
            started = self.builder.thinking_start(redacted=True)
            events += [started, self.builder.thinking_end(started.content_index, signature=signature)]
        self._calls.end(events)
        usage, id = self.usage(), self._id
        if failure := self._failure():
            text, kind = failure.text, failure.kind
            events.append(self.builder.error(text, kind=kind, usage=usage, response_id=id))
        else:
            events.append(self.builder.done(self._stop_reason(), usage=usage, response_id=id))
        return events

    def _failure(self) -> Failure | None:
        if self._refusal:
            return Failure(f"The model refused to answer: {''.join(self._refusal)}", "refused")
        kind, text = _FAILURES.get(self._finish or "", (None, ""))
        return None if kind is None else Failure(text, kind)

    def _stop_reason(self) -> StopReason:
        if self._finish in _LENGTH:
            return "length"
        # Some servers say "stop", or nothing, although tools are called.
        return "tool_use" if len(self._calls) else "stop"

    def _error(self, chunk: Mapping[str, Any]) -> list[AssistantMessageEvent]:
        return self.fail(stream_failure(error_data(chunk.get("error") or chunk), self.model.provider))

    def _see_usage(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self._usage = cast("dict[str, Any]", usage)

    def _see_elsewhere(self, chunk: Mapping[str, Any]) -> None:
        groq = chunk.get("x_groq")
        if isinstance(groq, dict) and (usage := cast("dict[str, Any]", groq).get("usage")):
            self._see_usage(usage)


def _is_error(chunk: Mapping[str, Any]) -> bool:
    """Whether a chunk without choices is an error that does not call itself one (vLLM, FastAPI)."""
    return chunk.get("object") == "error" or any(
        isinstance(chunk.get(name), str) for name in ("message", "detail")
    )
