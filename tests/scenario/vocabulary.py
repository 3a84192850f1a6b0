"""Messages, blocks and events: from the files' JSON, and to it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rx_agent import (
    AgentEndEvent,
    AgentEvent,
    AgentMessage,
    AssistantMessage,
    CustomMessage,
    ImageContent,
    MessageEndEvent,
    MessageStartEvent,
    MessageUpdateEvent,
    Model,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolExecutionEndEvent,
    ToolExecutionStartEvent,
    ToolExecutionUpdateEvent,
    ToolResult,
    ToolResultMessage,
    TurnEndEvent,
    UserMessage,
)
from rx_agent.messages import UserBlocks

Json = dict[str, Any]

MODEL = Model(id="m1", api="scripted", provider="scripted")
IMAGE_DATA = "aW1hZ2U="  # the files name an image's type only


class ScenarioMessage(CustomMessage):
    """A message of any role that is not the runtime's own (``note`` …)."""

    content: UserBlocks = ()


# --- from the files ------------------------------------------------------------------------------------------


def image(data: str | Json) -> ImageContent:
    """``"image/png"`` or ``{"image": "image/png"}``."""
    return ImageContent(data=IMAGE_DATA, mime_type=data if isinstance(data, str) else data["image"])


def block(data: Json) -> TextContent | ThinkingContent | ImageContent | ToolCall:
    """One block of a message."""
    match data:
        case {"text": text}:
            return TextContent(text=text)
        case {"thinking": thinking}:
            return ThinkingContent(thinking=thinking)
        case {"image": _}:
            return image(data)
        case {"tool_call": call}:
            return ToolCall(id=call["id"], name=call["name"], arguments=call.get("arguments", {}))
    raise ValueError(f"a block of unknown kind: {data}")


def content(data: Json | str, *keys: str) -> tuple[Any, ...]:
    """The blocks under the first of ``keys`` that is there: a list of blocks, or text for one text block."""
    value = data if isinstance(data, str) else next((data[key] for key in keys if key in data), ())
    if isinstance(value, str):
        return (TextContent(text=value),)
    return tuple(item if not isinstance(item, Mapping) else block(dict(item)) for item in value)


def message(data: Json, *, stop_reason: str | None = None) -> AgentMessage:
    """A message; without a role it is the user's. ``stop_reason`` is for an assistant's that names none."""
    role = data.get("role", "user")
    blocks = content(data, "content", "text")
    if role == "user":
        return UserMessage(content=blocks)
    if role == "assistant":
        return AssistantMessage.model_validate(
            {
                "content": blocks,
                "api": MODEL.api,
                "provider": MODEL.provider,
                "model": MODEL.id,
                "stop_reason": data.get("stop_reason") or stop_reason or implied_stop_reason(blocks),
                "error_message": data.get("error_message"),
            }
        )
    if role == "tool_result":
        return ToolResultMessage(
            tool_call_id=data["tool_call_id"],
            tool_name=data["tool_name"],
            content=blocks,
            is_error=data.get("is_error", False),
            details=data.get("details"),
        )
    return ScenarioMessage(role=role, content=blocks)


def implied_stop_reason(blocks: Iterable[object]) -> str:
    """Why an answer ended that does not say it."""
    return "tool_use" if any(isinstance(item, ToolCall) for item in blocks) else "stop"


def initial_messages(scenario: Json) -> list[AgentMessage]:
    """The transcript before the first action.

    The format leaves open which stop reason an earlier answer with a tool call has that names none (``stop`` or
    ``tool_use``), so there the file's own final transcript, which begins with the initial one, decides.
    """
    initial: Sequence[Json] = scenario.get("initial_messages", ())
    expected: Sequence[Json] = scenario.get("expect", {}).get("messages", ())
    messages: list[AgentMessage] = []
    for place, data in enumerate(initial):
        final = expected[place].get("stop_reason") if place < len(expected) else None
        messages.append(message(data, stop_reason=final if final in ("stop", "tool_use") else None))
    return messages


# --- to the files --------------------------------------------------------------------------------------------


def shown_blocks(blocks: Iterable[object]) -> list[Json]:
    """Blocks as the files write them."""
    shown: list[Json] = []
    for item in blocks:
        match item:
            case TextContent():
                shown.append({"text": item.text})
            case ThinkingContent():
                shown.append({"thinking": item.thinking})
            case ImageContent():
                shown.append({"image": item.mime_type})
            case ToolCall():
                shown.append(
                    {"tool_call": {"id": item.id, "name": item.name, "arguments": copied(item.arguments)}}
                )
            case _:
                shown.append({"unknown": repr(item)})
    return shown


def shown_message(item: AgentMessage) -> Json:
    """A whole message as the files write it."""
    match item:
        case UserMessage() | ScenarioMessage():
            return {"role": item.role, "content": shown_blocks(item.content)}
        case AssistantMessage():
            shown: Json = {
                "role": item.role,
                "content": shown_blocks(item.content),
                "stop_reason": item.stop_reason,
            }
            if item.error_message is not None:
                shown["error_message"] = item.error_message
            return shown
        case ToolResultMessage():
            return {
                "role": item.role,
                "tool_call_id": item.tool_call_id,
                "tool_name": item.tool_name,
                "content": shown_blocks(item.content),
                "is_error": item.is_error,
                **_details(item.details),
            }
    return {"role": item.role, "unknown": repr(item)}


def shown_result(result: ToolResult) -> Json:
    """A tool's result: its content; ``details`` and ``terminate`` only where they are set."""
    shown: Json = {"content": shown_blocks(result.content), **_details(result.details)}
    if result.terminate:
        shown["terminate"] = True
    return shown


def shown_event(event: AgentEvent) -> Json:
    """An event as the files write it, without its tick."""
    shown: Json = {"type": event.type}
    match event:
        case MessageStartEvent(message=AssistantMessage()):
            shown["role"] = "assistant"
        case MessageStartEvent() | MessageEndEvent():
            shown.update(shown_message(event.message))
        case MessageUpdateEvent():
            update = event.assistant_message_event
            shown.update(update=update.type, index=update.content_index)
            if (delta := getattr(update, "delta", None)) is not None:
                shown["delta"] = delta
        case ToolExecutionStartEvent():
            shown.update(tool_call_id=event.tool_call_id, tool_name=event.tool_name, args=copied(event.args))
        case ToolExecutionUpdateEvent():
            shown.update(
                tool_call_id=event.tool_call_id,
                tool_name=event.tool_name,
                partial_result=shown_result(event.partial_result),
            )
        case ToolExecutionEndEvent():
            shown.update(
                tool_call_id=event.tool_call_id,
                tool_name=event.tool_name,
                result=shown_result(event.result),
                is_error=event.is_error,
            )
        case TurnEndEvent():
            shown["stop_reason"] = event.message.stop_reason
            shown["tool_results"] = [result.tool_call_id for result in event.tool_results]
        case AgentEndEvent():
            shown["messages"] = [item.role for item in event.messages]
        case _:
            pass
    return shown


def copied(value: Any) -> Any:
    """Plain JSON data as it is now (whoever holds it may change it later)."""
    return json.loads(json.dumps(value))


def _details(details: Any) -> Json:
    return {} if details is None or details == {} else {"details": copied(details)}
