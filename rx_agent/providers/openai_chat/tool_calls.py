"""Puts tool calls together from their pieces, whichever way the server marks which piece belongs to which call."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from rx_agent.events import AssistantMessageEvent
from rx_agent.message_builder import MessageBuilder
from rx_agent.providers.wire_json import wire_json
from rx_agent.surrogates import repaired_text

_NOTHING: Mapping[str, Any] = {}


class _Call:
    __slots__ = ("content_index", "id", "name", "pieces", "signature")

    def __init__(self) -> None:
        self.content_index: int | None = None
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []
        self.signature: str | None = None

    def is_whole(self) -> bool:
        """Whether the arguments so far are a whole JSON object."""
        if not self.pieces or not self.pieces[-1].rstrip().endswith("}"):
            return False
        try:
            return isinstance(from_json(repaired_text("".join(self.pieces))), dict)
        except ValueError:
            return False


class ToolCalls:
    """The calls of one message.

    OpenAI numbers the calls (``index``) and gives id and name with the first piece. Others leave the index
    out, use one index for several calls, repeat id or name with every piece, send them late or not at all,
    or send the arguments as an object.
    """

    def __init__(self, builder: MessageBuilder) -> None:
        self._builder = builder
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._ids: set[str] = set()

    def __len__(self) -> int:
        return len(self._calls)

    def feed(self, entries: list[Any], events: list[AssistantMessageEvent]) -> None:
        """Takes the ``tool_calls`` of one delta and appends the events they give rise to."""
        for position, entry in enumerate(entries):
            if not entry:
                continue
            self._piece(entry, entry.get("function") or _NOTHING, position, events)

    def feed_function(self, function: Mapping[str, Any], events: list[AssistantMessageEvent]) -> None:
        """Takes a ``function_call``, the form that came before ``tool_calls``; there is only one."""
        self._piece({"index": 0}, function, 0, events)

    def end(self, events: list[AssistantMessageEvent]) -> None:
        """Ends all calls, in order."""
        for call in self._calls:
            self._start(call, events)
            if call.content_index is not None:
                events.append(self._builder.tool_call_end(call.content_index, signature=call.signature))

    def _piece(
        self,
        entry: Mapping[str, Any],
        function: Mapping[str, Any],
        position: int,
        events: list[AssistantMessageEvent],
    ) -> None:
        id, name = _text(entry.get("id")), _text(function.get("name"))
        arguments = function.get("arguments")
        if isinstance(arguments, dict | list):
            arguments = wire_json(arguments).decode()
        piece = _text(arguments)
        call = self._call_for(entry.get("index"), id, name, piece, position)
        if id and not call.id and call.content_index is None:
            call.id = self._unique(id)
        call.name = call.name or name
        if extra := entry.get("extra_content"):
            # Google's compatible API keeps thought signatures here and wants the object back as it was.
            call.signature = wire_json(extra).decode()
        if piece:
            call.pieces.append(piece)
        if call.content_index is None:
            if call.name:
                self._start(call, events)
        elif piece:
            events.append(self._builder.tool_call_delta(call.content_index, piece))

    def _start(self, call: _Call, events: list[AssistantMessageEvent]) -> None:
        if call.content_index is not None:
            return
        call.id = call.id or self._unique(f"call_{uuid.uuid4().hex[:24]}")
        started = self._builder.tool_call_start(call.id, call.name)
        call.content_index = started.content_index
        events.append(started)
        if call.pieces:
            events.append(self._builder.tool_call_delta(call.content_index, "".join(call.pieces)))

    def _call_for(self, index: Any, id: str, name: str, piece: str, position: int) -> _Call:
        last = self._calls[-1] if self._calls else None
        if isinstance(index, int):
            known = self._by_index.get(index)
            if known is None or (name and known.name and self._is_another(known, id, piece)):
                known = self._by_index[index] = self._new()
            return known
        if id:
            return next((call for call in reversed(self._calls) if call.id == id), None) or self._new()
        if last is None or (name and (position > 0 or name != last.name or last.is_whole())):
            return self._new()
        return last

    def _is_another(self, known: _Call, id: str, piece: str) -> bool:
        """Whether a named piece under the index of ``known`` begins a call of its own."""
        if id and known.id:
            return id != known.id
        return bool(piece) and known.is_whole()

    def _new(self) -> _Call:
        call = _Call()
        self._calls.append(call)
        return call

    def _unique(self, id: str) -> str:
        if id in self._ids:
            id = f"call_{uuid.uuid4().hex[:24]}"
        self._ids.add(id)
        return id


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
