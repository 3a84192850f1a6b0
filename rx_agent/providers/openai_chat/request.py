"""A request of the Chat Completions API: https://platform.openai.com/docs/api-reference/chat/create."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rx_agent.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from rx_agent.models import Model, ThinkingLevel
from rx_agent.providers.base import Context, StreamOptions, ToolSpec
from rx_agent.providers.call_ids import accepted_name, wire_name
from rx_agent.providers.openai_chat.profiles import Profile, profile_of
from rx_agent.providers.openai_efforts import effort_for
from rx_agent.providers.strict_schema import strict_schema
from rx_agent.providers.thinking_levels import lowered_level
from rx_agent.providers.transcript import made_by, transcript_for
from rx_agent.providers.wire_json import IdentityCache, WirePayload, wire_json

NO_OUTPUT = "(no output)"
SEE_IMAGES = "(see the images below)"
AFTER_TOOLS = "I have seen the results of the tools."


class _Wire(NamedTuple):
    """A message on the wire, if anything is left of it, and the image parts that must follow in a user's message."""

    message: bytes | None
    images: tuple[dict[str, Any], ...] = ()


_MADE: IdentityCache[_Wire] = IdentityCache()


def chat_payload(model: Model, context: Context, options: StreamOptions) -> WirePayload:
    """The request's body; each message is encoded at its first request and joined from then on.

    ``session_id`` and ``cache_retention`` go to OpenAI's own server as ``prompt_cache_key`` and
    ``prompt_cache_retention``. Raises ``ValueError`` for a tool name that the API takes not.

    >>> model = Model(id="m", api="openai_chat", provider="acme")
    >>> chat_payload(model, Context("", [UserMessage(content="hi")]), StreamOptions()).to_dict()["messages"]
    [{'role': 'user', 'content': 'hi'}]
    """
    profile = profile_of(model.provider)
    fields: dict[str, Any] = {"model": model.id, "stream": True}
    if profile.include_usage:
        fields["stream_options"] = {"include_usage": True}
    if options.max_tokens is not None:
        fields[profile.max_tokens_field] = options.max_tokens
    if options.temperature is not None:
        fields["temperature"] = options.temperature
    if context.tools:
        fields["tools"] = [_tool(tool, profile) for tool in context.tools]
        if options.tool_choice is not None:
            fields["tool_choice"] = _tool_choice(options.tool_choice, profile)
    if (effort := _effort(model, options.thinking_level, profile)) is not None:
        fields |= (
            {"reasoning": {"effort": effort}} if profile.effort_in_object else {"reasoning_effort": effort}
        )
    if options.cache_retention != "none":
        if options.session_id is not None and profile.session_field is not None:
            fields[profile.session_field] = options.session_id[:64]
        if options.cache_retention == "long" and profile.caches_longer:
            fields["prompt_cache_retention"] = "24h"
    fields |= options.extra_body
    return WirePayload(fields, {"messages": _messages(model, context, profile)})


def _effort(model: Model, level: ThinkingLevel, profile: Profile) -> str | None:
    if profile.efforts is None:
        return effort_for(model, level)
    return profile.efforts.get(lowered_level(model, level, profile.efforts)) if model.reasoning else None


def _tool(tool: ToolSpec, profile: Profile) -> dict[str, Any]:
    strict = strict_schema(tool.parameters) if profile.strict_tools else None
    function = {
        "name": accepted_name(tool.name, "Chat Completions"),
        "description": tool.description,
        "parameters": dict(tool.parameters) if strict is None else strict,
        **({} if strict is None else {"strict": True}),
    }
    return {"type": "function", "function": function}


def _tool_choice(choice: str, profile: Profile) -> Any:
    match choice:
        case "auto" | "none":
            return choice
        case "required":
            return profile.required_choice
        case name:
            return {"type": "function", "function": {"name": name}}


def _messages(model: Model, context: Context, profile: Profile) -> list[bytes]:
    encode = _encoder(model, profile)
    wire: list[bytes] = []
    images: list[dict[str, Any]] = []
    if context.system_prompt:
        role = "developer" if profile.developer_role and model.reasoning else "system"
        wire.append(wire_json({"role": role, "content": context.system_prompt}))
    after_tool = False

    def user_follows() -> None:
        if after_tool and profile.assistant_after_tool:
            wire.append(wire_json({"role": "assistant", "content": AFTER_TOOLS}))

    def flush_images() -> None:
        # The results of one message must stand together, so their images come behind the last of them.
        if images:
            user_follows()
            text = {"type": "text", "text": "Images from the results of the tools:"}
            wire.append(wire_json({"role": "user", "content": [text, *images]}))
            images.clear()

    for message in transcript_for(model, context.messages):
        if after_tool and not isinstance(message, ToolResultMessage):
            if images:
                flush_images()
            elif isinstance(message, UserMessage):
                user_follows()
            after_tool = False
        made = encode(message)
        if made.message is not None:
            wire.append(made.message)
        images.extend(made.images)
        after_tool = isinstance(message, ToolResultMessage)
    flush_images()
    return wire


def _encoder(model: Model, profile: Profile) -> Callable[[Message], _Wire]:
    variant = (model.api, model.provider, model.id)

    def make(message: Message) -> _Wire:
        match message:
            case UserMessage():
                return _Wire(wire_json({"role": "user", "content": _content(message.content)}))
            case AssistantMessage():
                return _Wire(_assistant(message, profile, made_by(message, model)))
            case ToolResultMessage():
                return _result(message, profile)

    return lambda message: _MADE.get(message, variant, lambda: make(message))


def _content(blocks: Iterable[UserContent]) -> str | list[dict[str, Any]]:
    parts = [_part(block) for block in blocks]
    # A plain string is understood by every server, parts by most.
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _part(block: UserContent) -> dict[str, Any]:
    if isinstance(block, ImageContent):
        return _image(block)
    return {"type": "text", "text": block.text}


def _image(block: ImageContent) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{block.mime_type};base64,{block.data}"}}


def _assistant(message: AssistantMessage, profile: Profile, own: bool) -> bytes | None:
    calls = [_call(call, profile, own) for call in message.tool_calls]
    wire: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if calls:
        wire["tool_calls"] = calls
    elif not message.text:
        return None  # nothing but thinking, which this API has no place for
    if own and (calls or not profile.replay_with_calls_only):
        thinking = [block for block in message.content if isinstance(block, ThinkingContent)]
        if profile.replay == "reasoning_content" and thinking:
            wire["reasoning_content"] = "".join(block.thinking for block in thinking)
        elif profile.replay == "reasoning_details":
            details = [detail for block in thinking for detail in _details(block)]
            if details:
                wire["reasoning_details"] = details
    return wire_json(wire)


def _details(block: ThinkingContent) -> list[Any]:
    value = json.loads(block.signature) if block.signature and block.signature.startswith("[") else None
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def _call(call: ToolCall, profile: Profile, own: bool) -> dict[str, Any]:
    function = {"name": wire_name(call.name), "arguments": wire_json(call.arguments).decode()}
    wire: dict[str, Any] = {"id": profile.wire_id(call.id), "type": "function", "function": function}
    if own and call.signature and call.signature.startswith("{"):
        wire["extra_content"] = json.loads(call.signature)
    return wire


def _result(message: ToolResultMessage, profile: Profile) -> _Wire:
    images = tuple(_image(block) for block in message.content if isinstance(block, ImageContent))
    texts = [block.text for block in message.content if isinstance(block, TextContent)]
    text = "\n".join(texts) or (SEE_IMAGES if images else NO_OUTPUT)
    wire = {"role": "tool", "tool_call_id": profile.wire_id(message.tool_call_id), "content": text}
    return _Wire(wire_json(wire), images)
