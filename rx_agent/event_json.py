"""Agent events as JSON lines and back: for ``--json``, for logs, for other languages.

``{"type": "tool_execution_start", "tool_call_id": "call_1", "tool_name": "add", "args": {"a": 2}}``: the fields are
the event's own. A ``message_update`` nests its provider event as ``assistant_message_event``; the message so far,
``message``, comes with it only where ``partials`` are asked for, since n deltas would make n growing copies.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pydantic_core
from pydantic import BaseModel

from rx_agent.events import (
    AgentEndEvent,
    AgentEvent,
    AgentStartEvent,
    BlockUpdate,
    MessageEndEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    TextDeltaEvent,
    TextEndEvent,
    TextStartEvent,
    ThinkingDeltaEvent,
    ThinkingEndEvent,
    ThinkingStartEvent,
    ToolCallDeltaEvent,
    ToolCallEndEvent,
    ToolCallStartEvent,
    ToolExecutionEndEvent,
    ToolExecutionStartEvent,
    ToolExecutionUpdateEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from rx_agent.messages import (
    AgentMessage,
    AssistantMessage,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    message_from_dict,
)

# --- writing -----------------------------------------------------------------------------------------------


def event_to_json(event: AgentEvent, *, partials: bool = True) -> str:
    """One line of ASCII JSON. Without ``partials`` the size of a run's lines is linear in its text.

    Values in arguments and ``details`` that JSON lacks are written as pydantic writes them, NaN and infinity as
    null, and what has no JSON form at all as its ``repr``: a log line never fails.

    >>> event_to_json(AgentStartEvent())
    '{"type": "agent_start"}'
    """
    return _line(_event_data(event, partials))


def _event_data(event: AgentEvent, partials: bool) -> dict[str, Any]:
    match event:
        case AgentStartEvent() | TurnStartEvent():
            fields: dict[str, Any] = {}
        case AgentEndEvent():
            fields = {"messages": [_dump(message) for message in event.messages], "reason": event.reason}
        case TurnEndEvent():
            results = [_dump(result) for result in event.tool_results]
            fields = {"message": _dump(event.message), "tool_results": results}
        case MessageStartEvent() | MessageEndEvent():
            fields = {"message": _dump(event.message)}
        case MessageUpdateEvent():
            fields = {"assistant_message_event": _update_data(event.assistant_message_event)}
            if partials:
                fields["message"] = _dump(event.message)
        case ToolExecutionStartEvent():
            fields = {**_call_fields(event), "args": event.args}
        case ToolExecutionUpdateEvent():
            partial = _dump(event.partial_result)
            fields = {**_call_fields(event), "args": event.args, "partial_result": partial}
        case ToolExecutionEndEvent():
            fields = {**_call_fields(event), "result": _dump(event.result), "is_error": event.is_error}
    return {"type": event.type, **fields}


def _call_fields(
    event: ToolExecutionStartEvent | ToolExecutionUpdateEvent | ToolExecutionEndEvent,
) -> dict[str, Any]:
    return {"tool_call_id": event.tool_call_id, "tool_name": event.tool_name}


def _update_data(update: BlockUpdate) -> dict[str, Any]:
    data: dict[str, Any] = {"type": update.type, "content_index": update.content_index}
    match update:
        case TextDeltaEvent() | ThinkingDeltaEvent() | ToolCallDeltaEvent():
            data["delta"] = update.delta
        case TextEndEvent() | ThinkingEndEvent():
            data["content"] = update.content
        case ToolCallEndEvent():
            data["tool_call"] = _dump(update.tool_call)
        case TextStartEvent() | ThinkingStartEvent() | ToolCallStartEvent():
            pass
    return data


def _dump(value: BaseModel) -> dict[str, Any]:
    try:
        data = value.model_dump(exclude_none=True)
    except (ValueError, RecursionError):  # pydantic gives up at ``details`` that contain themselves
        data = {name: _plain(item, _DEEPEST) for name, item in value if item is not None}
    if isinstance(value, AssistantMessage) and value.stop_reason is None:
        data["stop_reason"] = None  # "still streaming"; left out, it would be read as the default, "stop"
    return data


def _line(data: dict[str, Any]) -> str:
    try:
        return json.dumps(data, ensure_ascii=True, allow_nan=False, default=_jsonable)
    except (TypeError, ValueError, RecursionError):  # NaN, keys that are no strings, cycles: the thorough way
        return json.dumps(_plain(data, _DEEPEST), ensure_ascii=True, allow_nan=False)


def _jsonable(value: Any) -> Any:
    try:
        return pydantic_core.to_jsonable_python(value, bytes_mode="base64", fallback=repr)
    except (ValueError, RecursionError):
        return repr(value)


_DEEPEST = 200


def _plain(value: Any, levels: int) -> Any:
    """``value`` made of what JSON knows, ``repr`` for what is nested absurdly deep (or in itself)."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case _ if levels == 0:
            return f"<{type(value).__name__}>"
        case BaseModel():
            return {name: _plain(item, levels - 1) for name, item in value if item is not None}
        case Mapping():
            items = cast("Mapping[Any, Any]", value).items()
            return {
                key if isinstance(key, str) else str(key): _plain(item, levels - 1) for key, item in items
            }
        case list() | tuple() | set() | frozenset():
            return [_plain(item, levels - 1) for item in cast("Iterable[Any]", value)]
        case _:
            return _plain(_jsonable(value), levels - 1)


# --- reading -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _StoredPartial:
    """The partial message of an event that was read: always the one that was written with it."""

    message: AssistantMessage | None

    def message_at(self, position: int) -> AssistantMessage:
        if self.message is None:
            raise ValueError(
                "this message_update was written with partials=False, so it does not know its message"
            )
        return self.message


def event_from_json(text: str) -> AgentEvent:
    """The inverse of :func:`event_to_json`.

    The ``message`` of a ``message_update`` that was written without partials raises ``ValueError`` when read.
    Raises ``ValueError`` for text that is no event, naming what is wrong.

    >>> event_from_json('{"type": "turn_start"}')
    TurnStartEvent()
    """
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError(f"an event is a JSON object, not {type(data).__name__}")
    fields = cast("dict[str, Any]", data)
    read = _READERS.get(str(fields.get("type")))
    if read is None:
        raise ValueError(f"type: {fields.get('type')!r} is no agent event; known are {', '.join(_READERS)}")
    return _checked(read, fields)


def _checked(read: Callable[[dict[str, Any]], Any], fields: dict[str, Any]) -> Any:
    try:
        return read(fields)
    except KeyError as error:
        raise ValueError(f"{fields['type']}: the field {error} is missing") from error
    except (TypeError, AttributeError) as error:
        raise ValueError(f"{fields['type']}: a field is of the wrong kind ({error})") from error


def _assistant(data: dict[str, Any]) -> AssistantMessage:
    return AssistantMessage.model_validate(data)


def _result(data: dict[str, Any]) -> ToolResult:
    return ToolResult.model_validate(data)


def _read_update(data: dict[str, Any]) -> MessageUpdateEvent:
    partial = data.get("message")
    source = _StoredPartial(_assistant(partial) if partial is not None else None)
    fields: dict[str, Any] = data["assistant_message_event"]
    make = _UPDATES.get(str(fields.get("type")))
    if make is None:
        raise ValueError(f"type: {fields.get('type')!r} is no block event; known are {', '.join(_UPDATES)}")
    extra: dict[str, Any] = {name: fields[name] for name in ("delta", "content") if name in fields}
    if "tool_call" in fields:
        extra["tool_call"] = ToolCall.model_validate(fields["tool_call"])
    return MessageUpdateEvent(make(fields["content_index"], source, 0, **extra))


_UPDATES: dict[str, Callable[..., BlockUpdate]] = {
    kind.type: kind
    for kind in (
        TextStartEvent,
        TextDeltaEvent,
        TextEndEvent,
        ThinkingStartEvent,
        ThinkingDeltaEvent,
        ThinkingEndEvent,
        ToolCallStartEvent,
        ToolCallDeltaEvent,
        ToolCallEndEvent,
    )
}


def _read_agent_end(data: dict[str, Any]) -> AgentEndEvent:
    messages: tuple[AgentMessage, ...] = tuple(message_from_dict(item) for item in data["messages"])
    return AgentEndEvent(messages, data.get("reason", "completed"))


def _read_turn_end(data: dict[str, Any]) -> TurnEndEvent:
    results = tuple(ToolResultMessage.model_validate(item) for item in data.get("tool_results", ()))
    return TurnEndEvent(_assistant(data["message"]), results)


_READERS: dict[str, Callable[[dict[str, Any]], AgentEvent]] = {
    "agent_start": lambda data: AgentStartEvent(),
    "agent_end": _read_agent_end,
    "turn_start": lambda data: TurnStartEvent(),
    "turn_end": _read_turn_end,
    "message_start": lambda data: MessageStartEvent(message_from_dict(data["message"])),
    "message_update": _read_update,
    "message_end": lambda data: MessageEndEvent(message_from_dict(data["message"])),
    "tool_execution_start": lambda data: ToolExecutionStartEvent(
        data["tool_call_id"], data["tool_name"], data["args"]
    ),
    "tool_execution_update": lambda data: ToolExecutionUpdateEvent(
        data["tool_call_id"], data["tool_name"], data["args"], _result(data["partial_result"])
    ),
    "tool_execution_end": lambda data: ToolExecutionEndEvent(
        data["tool_call_id"], data["tool_name"], _result(data["result"]), bool(data.get("is_error", False))
    ),
}
