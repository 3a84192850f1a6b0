"""A request of the Messages API: https://docs.anthropic.com/en/api/messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic_core import from_json

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
from rx_agent.providers.anthropic.profiles import Profile, profile_of
from rx_agent.providers.base import CacheRetention, Context, StreamOptions, ToolSpec
from rx_agent.providers.call_ids import wire_call_id
from rx_agent.providers.thinking_levels import lowered_level, thinking_budget
from rx_agent.providers.transcript import made_by, transcript_for
from rx_agent.providers.wire_json import IdentityCache, WirePayload, wire_json

NO_OUTPUT = "(no output)"
BEFORE = "(This conversation begins with your answer.)"
IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
LEAST_BUDGET = 1_024
"""Tokens; the API takes no thinking budget below it."""
CACHED_MESSAGES = 2
"""How many messages of the user's side end a cached prefix; with tools and system prompt these are the four that
the API allows."""

Role: TypeAlias = Literal["user", "assistant"]


class _Wire(NamedTuple):
    """The content blocks of a message on the wire."""

    role: Role
    blocks: tuple[bytes, ...]


_MADE: IdentityCache[_Wire] = IdentityCache()


def anthropic_payload(model: Model, context: Context, options: StreamOptions) -> WirePayload:
    """The request's body; each message is encoded at its first request and joined from then on.

    ``cache_retention`` marks the tools, the system prompt and the last two messages of the user's side
    (https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching). ``session_id`` has no counterpart.
    A thinking budget that does not fit below ``max_tokens`` is cut down to what does; thinking is left out where
    the API refuses it: with a forced ``tool_choice``, and, for models with a budget, behind the results of calls
    that were made without thinking. Raises ``ValueError`` for a tool name that the API takes not.

    >>> model = Model(id="claude-sonnet-4-5", api="anthropic", provider="anthropic")
    >>> payload = anthropic_payload(model, Context("", [UserMessage(content="hi")]), StreamOptions())
    >>> payload.to_dict()["messages"][0]["content"]
    [{'type': 'text', 'text': 'hi', 'cache_control': {'type': 'ephemeral'}}]
    """
    profile = profile_of(model)
    mark = _cache_control(options.cache_retention)
    messages = transcript_for(model, context.messages)
    fields: dict[str, Any] = {"model": model.id, "stream": True}
    if context.system_prompt.strip():
        fields["system"] = [{"type": "text", "text": context.system_prompt, **mark}]
    forced = False
    if context.tools:
        tools = [_tool(tool) for tool in context.tools]
        tools[-1] |= mark
        fields["tools"] = tools
        if options.tool_choice is not None:
            fields["tool_choice"] = _tool_choice(options.tool_choice)
            forced = options.tool_choice not in ("auto", "none")
    # The API refuses both: https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking
    may_think = not forced and not (not profile.efforts and _calls_without_thought(messages, model))
    level = options.thinking_level if may_think else ThinkingLevel.OFF
    fields |= _limits(model, options, profile, level)
    if options.temperature is not None and profile.samples and not _thinks(fields):
        fields["temperature"] = options.temperature
    fields |= options.extra_body
    return WirePayload(fields, {"messages": _messages(model, messages, mark)})


def _cache_control(retention: CacheRetention) -> dict[str, Any]:
    match retention:
        case "none":
            return {}
        case "short":
            return {"cache_control": {"type": "ephemeral"}}
        case "long":
            return {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


# --- thinking and limits -----------------------------------------------------------------------------------


def _limits(model: Model, options: StreamOptions, profile: Profile, level: ThinkingLevel) -> dict[str, Any]:
    """``max_tokens``, which the API demands, and ``thinking``, which is taken from the same tokens."""
    limits = [limit for limit in (model.max_tokens, profile.limit) if limit]
    usual = min([profile.max_tokens, *limits])
    most = usual if options.max_tokens is None else options.max_tokens
    if not model.reasoning:
        return {"max_tokens": most}
    if level is ThinkingLevel.OFF:
        off = {"thinking": dict(profile.off)} if profile.off is not None else {}
        return {"max_tokens": most, **off}
    seen = {"display": "summarized"} if profile.summarized else {}
    if profile.efforts:
        effort = profile.efforts.get(lowered_level(model, level, profile.efforts))
        adaptive = {"thinking": {"type": "adaptive", **seen}, "output_config": {"effort": effort}}
        return {"max_tokens": most, **adaptive}
    budget = max(thinking_budget(level, options.thinking_budgets), LEAST_BUDGET)
    if options.max_tokens is None:
        most = min([usual + budget, *limits])
    budget = min(budget, most - 1)
    if budget < LEAST_BUDGET:
        return {"max_tokens": most}
    return {"max_tokens": most, "thinking": {"type": "enabled", "budget_tokens": budget, **seen}}


def _thinks(fields: Mapping[str, Any]) -> bool:
    return fields.get("thinking", {}).get("type") in ("enabled", "adaptive")


def _calls_without_thought(messages: list[Message], model: Model) -> bool:
    """Whether the last answer waits for the results of its calls and does not begin with signed thinking."""
    for message in reversed(messages):
        match message:
            case ToolResultMessage():
                pass
            case AssistantMessage(content=content):
                first = content[0] if content else None
                signed = isinstance(first, ThinkingContent) and first.signature is not None
                return bool(message.tool_calls) and not (signed and made_by(message, model))
            case _:
                return False
    return False


# --- tools -------------------------------------------------------------------------------------------------

_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")


def _tool(tool: ToolSpec) -> dict[str, Any]:
    if not _NAME.fullmatch(tool.name):
        raise ValueError(
            f"The Messages API takes no tool of the name {tool.name!r}: letters, digits, _ and -, at most 128 in all."
        )
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}


def _tool_choice(choice: str) -> dict[str, Any]:
    match choice:
        case "auto" | "none":
            return {"type": choice}
        case "required":
            return {"type": "any"}
        case name:
            return {"type": "tool", "name": name}


def _wire_id(id: str) -> str:
    return wire_call_id(id, r"[A-Za-z0-9_-]{1,64}", 24, "toolu_")


def _wire_name(name: str) -> str:
    """The name of a call in the transcript. A model may have called what no tool is named."""
    return name if _NAME.fullmatch(name) else re.sub(r"[^A-Za-z0-9_-]", "_", name)[:128] or "_"


# --- messages ----------------------------------------------------------------------------------------------


def _messages(model: Model, messages: Iterable[Message], mark: Mapping[str, Any]) -> list[bytes]:
    """The messages, those of one role in a row as one: results stand first, for they answer what came before."""
    runs: list[tuple[Role, list[bytes]]] = []
    for message in messages:
        made = _MADE.get(message, (model.api, model.provider, model.id), lambda m=message: _wire(m, model))
        if not made.blocks:
            continue
        if not runs and made.role == "assistant":
            runs.append(("user", [wire_json(_text(BEFORE))]))
        if runs and runs[-1][0] == made.role:
            runs[-1][1].extend(made.blocks)
        else:
            runs.append((made.role, list(made.blocks)))
    if runs and runs[-1][0] == "assistant":
        # An answer that the model shall go on with must not end in white space.
        runs[-1][1][-1] = _trimmed(runs[-1][1][-1])
    if mark:
        _mark(runs, b"," + wire_json(dict(mark))[1:])
    return [b'{"role":"%s","content":[%s]}' % (role.encode(), b",".join(blocks)) for role, blocks in runs]


def _mark(runs: list[tuple[Role, list[bytes]]], mark: bytes) -> None:
    users = [blocks for role, blocks in runs if role == "user"]
    for blocks in users[-CACHED_MESSAGES:]:
        blocks[-1] = blocks[-1][:-1] + mark


def _trimmed(block: bytes) -> bytes:
    data = from_json(block)
    return wire_json(_text(data["text"].rstrip())) if data["type"] == "text" else block


def _wire(message: Message, model: Model) -> _Wire:
    match message:
        case UserMessage():
            return _Wire("user", tuple(wire_json(part) for part in _parts(message.content)))
        case AssistantMessage():
            blocks = _answer(message, own=made_by(message, model))
            return _Wire("assistant", tuple(map(wire_json, blocks)))
        case ToolResultMessage():
            return _Wire("user", (wire_json(_result(message)),))


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _parts(blocks: Iterable[UserContent]) -> list[dict[str, Any]]:
    # The API refuses text blocks of nothing but white space.
    return [_part(block) for block in blocks if isinstance(block, ImageContent) or block.text.strip()]


def _part(block: UserContent) -> dict[str, Any]:
    if isinstance(block, TextContent):
        return _text(block.text)
    if block.mime_type not in IMAGE_TYPES:
        return _text(f"(an image of type {block.mime_type} was here; this model takes none of that type)")
    source = {"type": "base64", "media_type": block.mime_type, "data": block.data}
    return {"type": "image", "source": source}


def _answer(message: AssistantMessage, *, own: bool) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for block in message.content:
        match block:
            case TextContent(text=text) if text.strip():
                blocks.append(_text(text))
            case ThinkingContent(signature=str(signature), redacted=True) if own:
                blocks.append({"type": "redacted_thinking", "data": signature})
            case ThinkingContent(thinking=text, signature=str(signature)) if own and signature:
                blocks.append({"type": "thinking", "thinking": text, "signature": signature})
            case ThinkingContent(thinking=text) if text.strip():
                blocks.append(_text(text))  # unsigned, which the API takes for none of its own
            case ToolCall():
                id, name = _wire_id(block.id), _wire_name(block.name)
                blocks.append({"type": "tool_use", "id": id, "name": name, "input": block.arguments})
            case _:
                pass
    while blocks and blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        blocks.pop()  # an answer may not end in thinking
    return blocks


def _result(message: ToolResultMessage) -> dict[str, Any]:
    content = _parts(message.content) or [_text(NO_OUTPUT)]
    return {
        "type": "tool_result",
        "tool_use_id": _wire_id(message.tool_call_id),
        "content": content[0]["text"] if len(content) == 1 and "text" in content[0] else content,
        **({"is_error": True} if message.is_error else {}),
    }
