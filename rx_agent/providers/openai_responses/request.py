"""A request of the Responses API: https://platform.openai.com/docs/api-reference/responses/create."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

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
from rx_agent.providers.call_ids import accepted_name, wire_call_id, wire_name
from rx_agent.providers.openai_efforts import effort_for
from rx_agent.providers.openai_responses.profiles import Profile, profile_of
from rx_agent.providers.strict_schema import strict_schema
from rx_agent.providers.transcript import made_by, transcript_for
from rx_agent.providers.wire_json import IdentityCache, WirePayload, wire_json

NO_OUTPUT = "(no output)"
SEE_IMAGES = "(see the images below)"
IMAGES = "Images from the results of the tools:"


class _Wire(NamedTuple):
    """The items of a message on the wire, and the image parts that must follow in a user's message."""

    items: tuple[bytes, ...]
    images: tuple[dict[str, Any], ...] = ()


_MADE: IdentityCache[_Wire] = IdentityCache()


def responses_payload(model: Model, context: Context, options: StreamOptions) -> WirePayload:
    """The request's body; each message is encoded at its first request and joined from then on.

    ``session_id`` goes as ``prompt_cache_key``, which routes a conversation to the same cache;
    ``cache_retention`` ``"long"`` asks for a day of it, ``"none"`` for neither. Raises ``ValueError`` for a tool
    name that the API takes not.

    >>> model = Model(id="gpt-4.1", api="openai_responses", provider="openai")
    >>> payload = responses_payload(model, Context("Be brief.", [UserMessage(content="hi")]), StreamOptions())
    >>> payload.to_dict()["input"]
    [{'role': 'user', 'content': [{'type': 'input_text', 'text': 'hi'}]}]
    """
    profile = profile_of(model.provider)
    fields: dict[str, Any] = {"model": model.id, "stream": True, "store": False}
    if context.system_prompt:
        fields["instructions"] = context.system_prompt
    if options.max_tokens is not None:
        fields["max_output_tokens"] = max(options.max_tokens, profile.least_tokens)
    if options.temperature is not None:
        fields["temperature"] = options.temperature
    if context.tools:
        fields["tools"] = [_tool(tool, profile) for tool in context.tools]
        if options.tool_choice is not None:
            fields["tool_choice"] = _tool_choice(options.tool_choice)
    if model.reasoning:
        fields["include"] = ["reasoning.encrypted_content"]
        if (effort := effort_for(model, options.thinking_level)) is not None:
            seen = {} if options.thinking_level is ThinkingLevel.OFF else {"summary": "auto"}
            fields["reasoning"] = {"effort": effort, **seen}
    if profile.caches and options.cache_retention != "none":
        if options.session_id is not None:
            fields["prompt_cache_key"] = options.session_id[:64]
        if options.cache_retention == "long":
            fields["prompt_cache_retention"] = "24h"
    fields |= options.extra_body
    return WirePayload(fields, {"input": _input(model, context.messages, profile)})


def _tool(tool: ToolSpec, profile: Profile) -> dict[str, Any]:
    strict = strict_schema(tool.parameters) if profile.strict_tools else None
    return {
        "type": "function",
        "name": accepted_name(tool.name, "The Responses API"),
        "description": tool.description,
        "parameters": dict(tool.parameters) if strict is None else strict,
        "strict": strict is not None,
    }


def _tool_choice(choice: str) -> Any:
    return choice if choice in ("auto", "none", "required") else {"type": "function", "name": choice}


def _wire_id(id: str) -> str:
    return wire_call_id(id, r"[A-Za-z0-9_-]{1,64}", 24, "call_")


# --- input -------------------------------------------------------------------------------------------------


def _input(model: Model, messages: Iterable[Message], profile: Profile) -> list[bytes]:
    items: list[bytes] = []
    images: list[dict[str, Any]] = []

    def flush_images() -> None:
        # The results of one message stand together, so their images come behind the last of them.
        if images:
            items.append(wire_json({"role": "user", "content": [_text(IMAGES), *images]}))
            images.clear()

    variant = (model.api, model.provider, model.id)
    for message in transcript_for(model, messages):
        if not isinstance(message, ToolResultMessage):
            flush_images()
        made = _MADE.get(message, variant, lambda message=message: _wire(message, model, profile))
        items.extend(made.items)
        images.extend(made.images)
    flush_images()
    return items


def _wire(message: Message, model: Model, profile: Profile) -> _Wire:
    match message:
        case UserMessage():
            content = [_part(block) for block in message.content]
            return _Wire((wire_json({"role": "user", "content": content}),))
        case AssistantMessage():
            return _Wire(tuple(map(wire_json, _answer(message, own=made_by(message, model)))))
        case ToolResultMessage():
            return _result(message, profile)


def _text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def _part(block: UserContent) -> dict[str, Any]:
    if isinstance(block, ImageContent):
        url = f"data:{block.mime_type};base64,{block.data}"
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    return _text(block.text)


def _answer(message: AssistantMessage, *, own: bool) -> list[dict[str, Any]]:
    """The items of an answer. Ids tie an item to the reasoning before it, so they go only where all of it does."""
    reasoning = {
        place: _reasoning(block)
        for place, block in enumerate(message.content)
        if isinstance(block, ThinkingContent)
    }
    whole = own and all(item is not None for item in reasoning.values())
    items: list[dict[str, Any]] = []
    for place, block in enumerate(message.content):
        match block:
            case ThinkingContent():
                if own and (item := reasoning[place]) is not None:
                    items.append(item)
            case TextContent():
                items.append(_said(block, _kept(block.signature) if own else {}, whole=whole))
            case ToolCall():
                kept = _kept(block.signature) if whole else {}
                items.append(
                    {
                        "type": "function_call",
                        **({"id": kept["id"]} if "id" in kept else {}),
                        "call_id": _wire_id(block.id),
                        "name": wire_name(block.name),
                        "arguments": wire_json(block.arguments).decode(),
                    }
                )
    while items and items[-1].get("type") == "reasoning":
        items.pop()  # refused without the item that it led to
    return items


def _said(block: TextContent, kept: Mapping[str, Any], *, whole: bool) -> dict[str, Any]:
    phase = {"phase": kept["phase"]} if "phase" in kept else {}
    part: dict[str, Any] = {"type": "output_text", "text": block.text}
    if whole and "id" in kept:
        message = {"type": "message", "id": kept["id"], "status": "completed", **phase}
        return {**message, "role": "assistant", "content": [{**part, "annotations": []}]}
    return {"role": "assistant", "content": [part], **phase}


def _reasoning(block: ThinkingContent) -> dict[str, Any] | None:
    kept = _kept(block.signature)
    # Reasoning that led to a tool of the server's cannot go back without it.
    return None if "next" in kept else kept.get("item")


def _kept(signature: str | None) -> dict[str, Any]:
    """What the decoder put by: ``{"item"}`` or ``{"id", "phase"}``."""
    if not signature or not signature.startswith("{"):
        return {}
    try:
        value = json.loads(signature)
    except ValueError:
        return {}
    return cast("dict[str, Any]", value)


def _result(message: ToolResultMessage, profile: Profile) -> _Wire:
    images = tuple(_part(block) for block in message.content if isinstance(block, ImageContent))
    texts = [block.text for block in message.content if isinstance(block, TextContent)]
    output: Any = "\n".join(texts) or (SEE_IMAGES if images else NO_OUTPUT)
    if images and profile.images_in_results:
        output = [*([_text("\n".join(texts))] if any(texts) else []), *images]
        images = ()
    wire = {"type": "function_call_output", "call_id": _wire_id(message.tool_call_id), "output": output}
    return _Wire((wire_json(wire),), images)
