"""The output items of a response as they arrive, each growing its block of the message."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from rx_agent.events import AssistantMessageEvent
from rx_agent.message_builder import MessageBuilder
from rx_agent.providers.wire_json import wire_json

Events: TypeAlias = list[AssistantMessageEvent]


def mapping(value: Any) -> Mapping[str, Any]:
    """``value`` where it is an object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def listed(value: Any) -> Sequence[Any]:
    """``value`` where it is an array, else an empty one."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


class Item(ABC):
    """One output item.

    ``fast_kind`` is the type of the deltas that only append, ``fast`` how and to which block; None until the
    block is open.
    """

    fast_kind: str = ""
    fast: tuple[Callable[[int, str], AssistantMessageEvent], int] | None = None

    def begin(self) -> Events:
        """What the item's appearance gives rise to."""
        return []

    def next_part(self) -> None:
        """A further part of the item begins."""
        return

    @abstractmethod
    def delta(self, kind: str, text: str) -> Events:
        """``text`` (not empty) of a delta."""

    @abstractmethod
    def end(self, given: Mapping[str, Any]) -> Events:
        """The item is over; ``given`` is what the server says it came to, or empty."""


class PassedOver(Item):
    """An item that the message has no place for: tools of the server and their results."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        pass

    def delta(self, kind: str, text: str) -> Events:
        return []

    def end(self, given: Mapping[str, Any]) -> Events:
        return []


class MessageItem(Item):
    """An answer, or a refusal, which goes into ``refusal``."""

    fast_kind = "response.output_text.delta"

    def __init__(self, builder: MessageBuilder, given: Mapping[str, Any], refusal: list[str]) -> None:
        self._builder = builder
        self._given = given
        self._refusal = refusal
        self._refused = False

    def delta(self, kind: str, text: str) -> Events:
        if kind != self.fast_kind:
            self._refused = True
            self._refusal.append(text)
            return []
        return [*self._opened(), self._builder.text_delta(self._at, text)]

    def _opened(self) -> Events:
        # Begins with its first words: a message of refusal has none.
        if self.fast is not None:
            return []
        started = self._builder.text_start()
        self.fast = (self._builder.text_delta, started.content_index)
        return [started]

    @property
    def _at(self) -> int:
        assert self.fast is not None
        return self.fast[1]

    def end(self, given: Mapping[str, Any]) -> Events:
        events: Events = []
        for part in map(mapping, listed(given.get("content"))):
            if self.fast is None and (text := part.get("text")) and isinstance(text, str):
                events += self.delta(self.fast_kind, text)
            if not self._refused and (refusal := part.get("refusal")) and isinstance(refusal, str):
                self.delta("response.refusal.delta", refusal)
        if self.fast is not None:
            events.append(self._builder.text_end(self._at, signature=self._signature(given)))
        return events

    def _signature(self, given: Mapping[str, Any]) -> str | None:
        known = {**self._given, **given}
        kept = {name: known[name] for name in ("id", "phase") if isinstance(known.get(name), str)}
        return wire_json(kept).decode() if kept else None


class ReasoningItem(Item):
    """Thinking: the parts of its summary, or its raw text."""

    def __init__(self, builder: MessageBuilder, given: Mapping[str, Any]) -> None:
        self._builder = builder
        self._given: Mapping[str, Any] = given
        self._said = False
        self._part_is_next = False
        self._ended = False
        self._at = -1

    def begin(self) -> Events:
        started = self._builder.thinking_start()
        self._at = started.content_index
        return [started]

    def next_part(self) -> None:
        self._part_is_next = self._said
        if self._said:
            self.fast = None

    def delta(self, kind: str, text: str) -> Events:
        if self._ended:
            return []
        events: Events = []
        if self._part_is_next:
            events.append(self._builder.thinking_delta(self._at, "\n\n"))
            self._part_is_next = False
        self._said = True
        self.fast_kind = kind
        self.fast = (self._builder.thinking_delta, self._at)
        return [*events, self._builder.thinking_delta(self._at, text)]

    def through(self, given: Mapping[str, Any]) -> Events:
        """The server has ended the item; :meth:`end` follows once it is known what comes next."""
        self._given = {**self._given, **given}
        if self._said:
            return []
        events: Events = []
        for text in _texts(given):
            self.next_part()
            events += self.delta("", text)
        self.fast = None
        return events

    def end(self, given: Mapping[str, Any]) -> Events:
        """``given`` may hold ``next``, the kind of an item that is passed over and follows this one."""
        if self._ended:
            return []
        self._ended = True
        self.fast = None
        return [self._builder.thinking_end(self._at, signature=self._signature(given))]

    def _signature(self, given: Mapping[str, Any]) -> str | None:
        known = self._given
        if not known.get("encrypted_content") or not isinstance(known.get("id"), str):
            return None
        item = {name: known[name] for name in ("type", "id", "encrypted_content")}
        return wire_json({"item": {**item, "summary": listed(known.get("summary"))}, **given}).decode()


def _texts(given: Mapping[str, Any]) -> Iterator[str]:
    for name in ("summary", "content"):
        found = [mapping(part).get("text") for part in listed(given.get(name))]
        texts = [text for text in found if isinstance(text, str) and text]
        if texts:
            yield from texts
            return


class CallItem(Item):
    """A call of a function, or of a custom tool, whose input is free text."""

    def __init__(self, builder: MessageBuilder, given: Mapping[str, Any], taken: set[str]) -> None:
        self._builder = builder
        self._given = given
        self._taken = taken
        self._said = False
        self._ended = False
        custom = given.get("type") == "custom_tool_call"
        self.fast_kind = f"response.{'custom_tool_call_input' if custom else 'function_call_arguments'}.delta"

    def begin(self) -> Events:
        id = self._given.get("call_id") or self._given.get("id")
        if not isinstance(id, str) or not id or id in self._taken:
            id = f"call_{uuid.uuid4().hex[:24]}"
        name = self._given["name"]
        if not isinstance(name, str):
            raise TypeError("the name of a function is text")
        self._taken.add(id)
        started = self._builder.tool_call_start(id, name)
        self.fast = (self._builder.tool_call_delta, started.content_index)
        return [started]

    def delta(self, kind: str, text: str) -> Events:
        if self.fast is None:
            return []
        self._said = True
        return [self._builder.tool_call_delta(self.fast[1], text)]

    def whole(self, arguments: Any) -> Events:
        """All of the arguments; they count only where no deltas came."""
        # A delta in between comes through the fast path and leaves no mark here.
        if self.fast is None or self._said or self._builder.has_pieces(self.fast[1]):
            return []
        if isinstance(arguments, Mapping):
            arguments = wire_json(arguments).decode()
        return self.delta(self.fast_kind, arguments) if isinstance(arguments, str) and arguments else []

    def end(self, given: Mapping[str, Any]) -> Events:
        if self._ended or self.fast is None:
            return []
        self._ended = True
        events = self.whole(given.get("arguments", given.get("input")))
        id = {**self._given, **given}.get("id")
        signature = wire_json({"id": id}).decode() if isinstance(id, str) and id.startswith("fc") else None
        return [*events, self._builder.tool_call_end(self.fast[1], signature=signature)]
