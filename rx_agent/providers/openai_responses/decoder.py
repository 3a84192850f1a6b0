"""Decodes a streamed response: https://platform.openai.com/docs/api-reference/responses-streaming.

``response.created``, then for each output item ``response.output_item.added``, deltas of its parts and
``response.output_item.done``, then ``response.completed``, ``.incomplete`` or ``.failed``, the end marks. ``error``
may come anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pydantic_core import from_json

from rx_agent.events import AssistantMessageEvent
from rx_agent.models import Model, Usage
from rx_agent.providers.http_errors import Failure, error_data, stream_failure
from rx_agent.providers.openai_responses.output_items import (
    CallItem,
    Item,
    MessageItem,
    PassedOver,
    ReasoningItem,
    listed,
    mapping,
)
from rx_agent.providers.openai_responses.usage import responses_usage
from rx_agent.providers.sse import SseEvent
from rx_agent.providers.stream_decoder import MalformedEventError, StreamDecoder

Events: TypeAlias = list[AssistantMessageEvent]

_DELTAS = frozenset(
    f"response.{name}.delta"
    for name in (
        "output_text",
        "refusal",
        "reasoning_summary_text",
        "reasoning_text",
        "function_call_arguments",
        "custom_tool_call_input",
    )
)
_WHOLE_ARGUMENTS = frozenset(
    {"response.function_call_arguments.done", "response.custom_tool_call_input.done"}
)


class ResponsesDecoder(StreamDecoder):
    """Decodes one answer.

    Items belong together by ``output_index``: some servers give an item another id in each of its events. Items
    of the server's own tools and kinds unknown here are passed over.

    >>> decoder = ResponsesDecoder(Model(id="m", api="openai_responses", provider="openai"))
    >>> def feed(data: str) -> list[str]:
    ...     return [event.type for event in decoder.feed(SseEvent("message", data.encode()))]
    >>> feed('{"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}}')
    ['start']
    >>> feed('{"type": "response.output_text.delta", "output_index": 0, "delta": "hi"}')
    ['text_start', 'text_delta']
    >>> feed('{"type": "response.completed", "response": {"status": "completed"}}')
    ['text_end', 'done']
    """

    def __init__(self, model: Model, *, timestamp: int = 0) -> None:
        super().__init__(model, timestamp=timestamp)
        self._items: dict[Any, Item] = {}
        self._refusal: list[str] = []
        self._kinds: dict[str, Callable[[Mapping[str, Any]], Item]] = {
            "message": lambda given: MessageItem(self.builder, given, self._refusal),
            "reasoning": lambda given: ReasoningItem(self.builder, given),
            "function_call": lambda given: CallItem(self.builder, given, self._call_ids),
            "custom_tool_call": lambda given: CallItem(self.builder, given, self._call_ids),
        }
        self._held: ReasoningItem | None = None
        """Reasoning that is through and waits to see what it led to."""
        self._call_ids: set[str] = set()
        self._id: str | None = None
        self._usage: Mapping[str, Any] | None = None
        self._tier: str | None = None

    def feed(self, event: SseEvent) -> Events:
        """See :meth:`StreamDecoder.feed`."""
        if self.ended:
            return []
        data = event.data
        try:
            said: Any = from_json(data)
        except ValueError:
            text = data.decode("utf-8", "replace").strip()
            if not text or text == "[DONE]":  # the end mark of another API, which some gateways add
                return self.finish() if text else []
            try:
                said = json.loads(text)  # takes the escapes of lone surrogates, which the fast parser refuses
            except (ValueError, RecursionError):
                raise MalformedEventError(data) from None
        events: Events = []
        try:
            kind = said.get("type")
            if kind in _DELTAS:
                delta = said["delta"]
                item = self._items.get(said.get("output_index"))
                fast = item.fast if item is not None and item.fast_kind == kind else None
                if fast is not None and type(delta) is str and delta:
                    return [fast[0](fast[1], delta)]  # the common event
            self._said(kind or event.name, said, events)
        except (AttributeError, TypeError, KeyError):
            # JSON, but no event of this API. What it said up to there stands.
            events += self.fail(Failure(str(MalformedEventError(data)), "network"))
        return events

    def usage(self) -> Usage | None:
        """See :meth:`StreamDecoder.usage`."""
        return None if self._usage is None else responses_usage(self._usage, self.model.cost, self._tier)

    def response_id(self) -> str | None:
        """See :meth:`StreamDecoder.response_id`."""
        return self._id

    def whole(self) -> Events | None:
        """See :meth:`StreamDecoder.whole`: nothing but the end mark says that no further item comes."""
        return None

    # --- events --------------------------------------------------------------------------------------------

    def _said(self, kind: str, said: Mapping[str, Any], events: Events) -> None:
        match kind:
            case "response.output_item.added":
                self._open(said.get("output_index"), mapping(said["item"]), events)
            case "response.output_item.done":
                self._close(said.get("output_index"), mapping(said["item"]), events)
            case "response.reasoning_summary_part.added":
                self._item(said, "reasoning", events).next_part()
            case "response.completed" | "response.done" | "response.incomplete":
                self._complete(kind, mapping(said["response"]), events)
            case "response.failed" | "response.cancelled":
                response = mapping(said.get("response"))
                self._see(response)
                self._error(
                    response.get("error") or {"message": f"the response is {response.get('status')}"}, events
                )
            case "error":
                self._error(said.get("error") or said, events)
            case _ if kind in _DELTAS:
                self._delta(kind, said, events)
            case _ if kind in _WHOLE_ARGUMENTS:
                item = self._items.get(said.get("output_index"))
                if isinstance(item, CallItem):
                    events += item.whole(said.get("arguments", said.get("input")))
            case _:
                # created, in_progress, parts and their ends, and whatever the server's own tools tell.
                self._see(mapping(said.get("response")))
                if not kind and said.get("error"):
                    self._error(said["error"], events)

    def _delta(self, kind: str, said: Mapping[str, Any], events: Events) -> None:
        delta = said["delta"]
        if not isinstance(delta, str):
            raise TypeError("a delta is text")
        of = "message" if kind in _OF_MESSAGE else "reasoning" if "reasoning" in kind else ""
        if delta:
            events += self._item(said, of, events).delta(kind, delta)

    def _item(self, said: Mapping[str, Any], kind: str, events: Events) -> Item:
        """The item that ``said`` belongs to; opened where the server left that out (a call has its name there)."""
        index = said.get("output_index")
        if index not in self._items:
            if not kind:
                raise KeyError("arguments without a call")
            self._open(index, {"type": kind}, events)
        return self._items[index]

    def _open(self, index: Any, given: Mapping[str, Any], events: Events) -> None:
        events += self.begin()
        if (before := self._items.pop(index, None)) is not None:
            events += before.end({})
        make = self._kinds.get(given.get("type", ""), PassedOver)
        self._let_go(events, PassedOver if make is PassedOver else None, str(given.get("type")))
        item = make(given)
        self._items[index] = item
        events += item.begin()

    def _close(self, index: Any, given: Mapping[str, Any], events: Events) -> None:
        if index not in self._items:
            self._open(index, given, events)
        item = self._items.pop(index)
        if isinstance(item, ReasoningItem):
            self._let_go(events)
            events += item.through(given)
            self._held = item
        else:
            events += item.end(given)
        self._items[index] = PassedOver({})  # what comes late is not a new item

    def _let_go(self, events: Events, passed_over: object = None, kind: str = "") -> None:
        if self._held is not None:
            events += self._held.end({"next": kind} if passed_over else {})
            self._held = None

    # --- the end -------------------------------------------------------------------------------------------

    def _see(self, response: Mapping[str, Any]) -> None:
        if isinstance(id := response.get("id"), str) and id:
            self._id = id
        if usage := mapping(response.get("usage")):
            self._usage = usage
        if isinstance(tier := response.get("service_tier"), str):
            self._tier = tier

    def _complete(self, kind: str, response: Mapping[str, Any], events: Events) -> None:
        self._see(response)
        events += self.begin()
        if not self._items:
            # A server that tells everything at once.
            for index, given in enumerate(listed(response.get("output"))):
                self._close(index, mapping(given), events)
        if response.get("status") == "failed":
            self._error(response.get("error") or {}, events)
            return
        self.ended = True
        self._let_go(events)
        for item in self._items.values():
            events += item.end({})
        self._items.clear()
        reason = str(mapping(response.get("incomplete_details")).get("reason") or "")
        usage, id = self.usage(), self._id
        if self._refusal or reason == "content_filter":
            words = "".join(self._refusal)
            text = (
                f"The model refused to answer: {words}"
                if words
                else "The provider's content filter stopped the answer."
            )
            events.append(self.builder.error(text, kind="refused", usage=usage, response_id=id))
        elif kind == "response.incomplete" or response.get("status") == "incomplete":
            events.append(self.builder.done("length", usage=usage, response_id=id))
        else:
            stop = "tool_use" if self._call_ids else "stop"
            events.append(self.builder.done(stop, usage=usage, response_id=id))

    def _error(self, error: Any, events: Events) -> None:
        events += self.begin()
        events += self.fail(stream_failure(error_data(error), self.model.provider))


_OF_MESSAGE = frozenset({"response.output_text.delta", "response.refusal.delta"})
