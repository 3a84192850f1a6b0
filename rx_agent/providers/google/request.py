"""A request of the Gemini API: https://ai.google.dev/api/generate-content#request-body."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, cast

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
from rx_agent.providers.call_ids import wire_call_id
from rx_agent.providers.google.kept_parts import restored_part
from rx_agent.providers.google.profiles import Profile, profile_of
from rx_agent.providers.thinking_levels import lowered_level, thinking_budget
from rx_agent.providers.transcript import transcript_for
from rx_agent.providers.wire_json import IdentityCache, WirePayload, wire_json

NO_OUTPUT = "(no output)"
SEE_IMAGES = "(see the images)"
BEFORE = "(This conversation begins with your answer.)"
NO_SIGNATURE = "skip_thought_signature_validator"
"""What Google documents for calls that no model of theirs has signed, see
https://ai.google.dev/gemini-api/docs/thought-signatures#faqs; of the two words this is the one for Vertex AI too."""

Kind: TypeAlias = Literal["user", "model", "results"]


class _Wire(NamedTuple):
    """The parts of a message on the wire, and the images that must follow in a content of the user."""

    kind: Kind
    parts: tuple[bytes, ...]
    images: tuple[bytes, ...] = ()


_MADE: IdentityCache[_Wire] = IdentityCache()


def google_payload(model: Model, context: Context, options: StreamOptions) -> WirePayload:
    """The request's body; each message is encoded at its first request and joined from then on.

    ``session_id`` and ``cache_retention`` have no counterpart: prompts are cached without being asked, and a cache
    of one's own is a resource that ``extra_body={"cachedContent": name}`` names. Objects of ``extra_body`` are
    merged into those of the request, so that ``{"generationConfig": {"topP": 0.9}}`` only adds to it. Raises
    ``ValueError`` for a tool name that the API takes not.

    >>> from rx_agent.models import Model
    >>> model = Model(id="gemini-2.5-flash", api="google", provider="google")
    >>> google_payload(model, Context("", [UserMessage(content="hi")]), StreamOptions()).to_dict()
    {'contents': [{'role': 'user', 'parts': [{'text': 'hi'}]}]}
    """
    profile = profile_of(model)
    fields: dict[str, Any] = {}
    if context.system_prompt:
        fields["systemInstruction"] = {"parts": [{"text": context.system_prompt}]}
    if context.tools:
        fields["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in context.tools]}]
        if options.tool_choice is not None:
            fields["toolConfig"] = {"functionCallingConfig": _tool_choice(options.tool_choice)}
    config: dict[str, Any] = {}
    if options.max_tokens is not None:
        config["maxOutputTokens"] = options.max_tokens
    if options.temperature is not None:
        config["temperature"] = options.temperature
    if thinking := _thinking(model, options, profile):
        config["thinkingConfig"] = thinking
    if config:
        fields["generationConfig"] = config
    return WirePayload(
        _merged(fields, options.extra_body), {"contents": _contents(model, context.messages, profile)}
    )


def _merged(fields: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(fields)
    for name, value in extra.items():
        known = merged.get(name)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            value = _merged(cast("Mapping[str, Any]", known), cast("Mapping[str, Any]", value))
        merged[name] = value
    return merged


def _thinking(model: Model, options: StreamOptions, profile: Profile) -> dict[str, Any] | None:
    """The ``thinkingConfig``. A model that cannot be without thinking is given the least of it, unseen."""
    level = options.thinking_level
    if not model.reasoning:
        return None
    seen = {} if level is ThinkingLevel.OFF else {"includeThoughts": True}
    if profile.budget is not None:
        least, most = profile.budget
        tokens = thinking_budget(level, options.thinking_budgets)
        if not tokens and profile.can_stop_thinking:
            return {"thinkingBudget": 0}
        # -1 leaves it to the model.
        return {"thinkingBudget": tokens if tokens == -1 else min(max(tokens, least), most), **seen}
    if level is ThinkingLevel.OFF:
        return {"thinkingLevel": profile.levels[0].value} if profile.levels else None
    used = lowered_level(model, level, profile.levels)
    return None if used is ThinkingLevel.OFF else {"thinkingLevel": used.value, **seen}


# --- tools -------------------------------------------------------------------------------------------------

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")


def _declaration(tool: ToolSpec) -> dict[str, Any]:
    # `parameters` refuses most of JSON schema ($ref, const, exclusiveMinimum …); `parametersJsonSchema` takes it.
    if not _NAME.fullmatch(tool.name):
        raise ValueError(
            f"Gemini takes no tool of the name {tool.name!r}: a letter or _ first, then letters, digits, _ . : or -, "
            "at most 128 in all."
        )
    return {
        "name": tool.name,
        "description": tool.description,
        "parametersJsonSchema": dict(tool.parameters),
    }


def _tool_choice(choice: str) -> dict[str, Any]:
    match choice:
        case "auto" | "none":
            return {"mode": choice.upper()}
        case "required":
            return {"mode": "ANY"}
        case name:
            return {"mode": "ANY", "allowedFunctionNames": [name]}


def _wire_name(name: str) -> str:
    """The name of a call in the transcript. A model may have called what no tool is named."""
    if _NAME.fullmatch(name):
        return name
    return re.sub(r"[^A-Za-z0-9_.:-]", "_", f"_{name}")[:128]


def _wire_id(id: str) -> str:
    return wire_call_id(id, r"[A-Za-z0-9_-]{1,64}", 24, "call_")


# --- contents ----------------------------------------------------------------------------------------------


def _contents(model: Model, messages: Iterable[Message], profile: Profile) -> list[bytes]:
    """The messages, those of one role in a row as one content; results stand in a content that holds nothing else."""
    runs: list[tuple[Kind, list[bytes]]] = []

    def append(kind: Kind, parts: Iterable[bytes]) -> None:
        if runs and runs[-1][0] == kind:
            runs[-1][1].extend(parts)
        else:
            runs.append((kind, list(parts)))

    images: list[bytes] = []
    for message in transcript_for(model, messages, merge_users=True):
        made = _MADE.get(message, profile, lambda message=message: _wire(message, profile))
        if images and made.kind != "results":
            append("user", [_IMAGES, *images])
            images.clear()
        if made.parts:
            if not runs and made.kind == "model":
                append("user", [wire_json({"text": BEFORE})])
            append(made.kind, made.parts)
        images.extend(made.images)
    if images:
        append("user", [_IMAGES, *images])
    return [
        b'{"role":"%s","parts":[%s]}' % (b"model" if kind == "model" else b"user", b",".join(parts))
        for kind, parts in runs
    ]


_IMAGES = wire_json({"text": "Images from the results of the functions:"})


def _wire(message: Message, profile: Profile) -> _Wire:
    match message:
        case UserMessage():
            return _Wire("user", tuple(wire_json(_part(block)) for block in message.content))
        case AssistantMessage():
            return _Wire("model", tuple(map(wire_json, _answer(message, profile))))
        case ToolResultMessage():
            return _result(message, profile)


def _part(block: UserContent) -> dict[str, Any]:
    if isinstance(block, ImageContent):
        return {"inlineData": {"mimeType": block.mime_type, "data": block.data}}
    return {"text": block.text}


def _answer(message: AssistantMessage, profile: Profile) -> list[dict[str, Any]]:
    # Of other models' answers there are neither thoughts nor signatures left.
    parts: list[dict[str, Any]] = []
    unsigned = profile.wants_signatures
    for block in message.content:
        match block:
            case TextContent():
                parts.append(_signed({"text": block.text}, block.signature))
            case ThinkingContent(thinking=""):
                parts.append(restored_part(block.signature or ""))
            case ThinkingContent():
                parts.append(_signed({"text": block.thinking, "thought": True}, block.signature))
            case ToolCall():
                # Of several calls in one answer only the first is signed.
                parts.append(
                    _signed(_call(block, profile), block.signature or (NO_SIGNATURE if unsigned else None))
                )
                unsigned = False
    return parts


def _signed(part: dict[str, Any], signature: str | None) -> dict[str, Any]:
    return {**part, "thoughtSignature": signature} if signature else part


def _call(call: ToolCall, profile: Profile) -> dict[str, Any]:
    id = {"id": _wire_id(call.id)} if profile.call_ids else {}
    return {"functionCall": {**id, "name": _wire_name(call.name), "args": call.arguments}}


def _result(message: ToolResultMessage, profile: Profile) -> _Wire:
    images = [_part(block) for block in message.content if isinstance(block, ImageContent)]
    texts = [block.text for block in message.content if isinstance(block, TextContent)]
    text = "\n".join(texts) or (SEE_IMAGES if images else NO_OUTPUT)
    response: dict[str, Any] = {
        **({"id": _wire_id(message.tool_call_id)} if profile.call_ids else {}),
        "name": _wire_name(message.tool_name),
        "response": {"error" if message.is_error else "output": text},
    }
    if images and profile.images_in_results:
        response["parts"] = images
        images = []
    return _Wire("results", (wire_json({"functionResponse": response}),), tuple(map(wire_json, images)))
