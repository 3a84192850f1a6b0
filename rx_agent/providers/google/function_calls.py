"""Function calls of one message: whole ones, and those of Vertex AI whose arguments are streamed."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, cast

from rx_agent.events import AssistantMessageEvent
from rx_agent.message_builder import MessageBuilder, too_deep
from rx_agent.providers.google.streamed_arguments import StreamedArguments
from rx_agent.providers.wire_json import wire_json


class _OpenCall:
    __slots__ = ("arguments", "at", "server_id", "signature", "whole")

    def __init__(self, at: int, server_id: str) -> None:
        self.at = at
        self.server_id = server_id
        self.signature: str | None = None
        self.arguments = StreamedArguments()
        self.whole: dict[str, Any] | None = None
        """All arguments at once, should the server send them after all."""


class FunctionCalls:
    """The calls of one message, in order.

    A call is one part, ``{"name", "args", "id"}``, of which ``args`` and ``id`` may be missing. A streamed one begins
    with ``{"name", "willContinue": true}``; parts without a name go on with it, and the first without
    ``willContinue`` ends it. A call that never ends keeps arguments that are no JSON object, and so is not executed.
    """

    def __init__(self, builder: MessageBuilder) -> None:
        self._builder = builder
        self._open: _OpenCall | None = None
        self._ids: set[str] = set()

    def __len__(self) -> int:
        return len(self._ids)

    def feed(
        self,
        call: Mapping[str, Any],
        signature: str | None,
        response_id: str | None,
        events: list[AssistantMessageEvent],
    ) -> None:
        """Takes one ``functionCall`` and appends the events it gives rise to."""
        name, server_id = call.get("name") or "", call.get("id") or ""
        if not isinstance(name, str) or not isinstance(server_id, str):
            raise TypeError("name and id of a function call are texts")
        goes_on = bool(call.get("willContinue"))
        streamed = goes_on or "partialArgs" in call
        open_ = self._open
        if open_ is not None and name and not (server_id and server_id == open_.server_id):
            self.end(events)
            open_ = None
        if open_ is None:
            if not name and not call.get("args") and not streamed:
                return  # an end mark of nothing
            started = self._builder.tool_call_start(self._id(server_id, response_id), name)
            events.append(started)
            if not streamed:
                self._whole(started.content_index, call.get("args"), signature, events)
                return
            open_ = self._open = _OpenCall(started.content_index, server_id)
            self._delta(open_, open_.arguments.open(), events)
        open_.signature = open_.signature or signature
        for piece in call.get("partialArgs") or ():
            self._delta(open_, open_.arguments.add(piece), events)
        if isinstance(args := call.get("args"), dict) and args:
            open_.whole = cast("dict[str, Any]", args)
        if not goes_on:
            self._close(open_, events)

    def end(self, events: list[AssistantMessageEvent]) -> None:
        """Ends a call that the server left open, as one that is not to be executed."""
        if self._open is not None:
            events.append(self._builder.tool_call_end(self._open.at, signature=self._open.signature))
            self._open = None

    def _whole(self, at: int, args: Any, signature: str | None, events: list[AssistantMessageEvent]) -> None:
        if too_deep(args):
            # Not to be written down; the builder makes it a call with invalid arguments.
            events.append(self._builder.tool_call_end(at, arguments={"args": args}, signature=signature))
            return
        if args is not None:
            events.append(self._builder.tool_call_delta(at, wire_json(args).decode()))
        # Anything but an object goes by its text, which makes the call one with invalid arguments.
        given = cast("dict[str, Any]", args) if isinstance(args, dict) else None
        events.append(self._builder.tool_call_end(at, arguments=given, signature=signature))

    def _close(self, call: _OpenCall, events: list[AssistantMessageEvent]) -> None:
        self._delta(call, call.arguments.close(), events)
        given = call.whole
        if given is None and not call.arguments.broken:
            given = call.arguments.arguments
        events.append(self._builder.tool_call_end(call.at, arguments=given, signature=call.signature))
        self._open = None

    def _delta(self, call: _OpenCall, text: str, events: list[AssistantMessageEvent]) -> None:
        if text:
            events.append(self._builder.tool_call_delta(call.at, text))

    def _id(self, server_id: str, response_id: str | None) -> str:
        """The server's id, or one made of the response's: the same however often a stream is read, and unlike any
        other in the conversation. Only a server that numbers neither gets a random one.
        """
        id = server_id
        if not id or id in self._ids:
            id = f"call_{response_id}_{len(self._ids)}" if response_id else f"call_{uuid.uuid4().hex[:24]}"
        while id in self._ids:
            id += "_"
        self._ids.add(id)
        return id
