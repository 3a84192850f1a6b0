"""What each wire API demands of a request, as its documentation says, apart from how requests are made here.

Each function takes a request's body as data and ``own``, the beginning of every signature that its model may be
shown, and raises ``AssertionError`` for what the API would refuse.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]


def strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from strings_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings_in(inner)


def valid_unicode(body: bytes) -> Json:
    """The body as data: UTF-8 without a lone surrogate, raw or escaped."""
    payload = json.loads(body.decode("utf-8"))
    for text in strings_in(payload):
        text.encode("utf-8")
    return payload


def _base64(data: str) -> None:
    assert base64.b64decode(data, validate=True)


# --- Messages ----------------------------------------------------------------------------------------------
# https://docs.anthropic.com/en/api/messages, .../tool-use/implement-tool-use, .../extended-thinking


def anthropic(payload: Json, own: str) -> None:
    assert payload["max_tokens"] >= 1
    assert sum(_marks(payload)) <= 4
    thinking = payload.get("thinking", {})
    if thinking.get("type") == "enabled":
        assert 1024 <= thinking["budget_tokens"] < payload["max_tokens"]
    messages = payload["messages"]
    roles = [message["role"] for message in messages]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2)
    ids: set[str] = set()
    waiting: list[str] = []
    for message in messages:
        content = message["content"]
        assert isinstance(content, list)
        assert content
        results = [block for block in content if block["type"] == "tool_result"]
        assert content[: len(results)] == results, "results stand first"
        assert [block["tool_use_id"] for block in results] == waiting, "each call answered once, right behind"
        waiting = []
        for block in content:
            match block["type"]:
                case "text":
                    assert block["text"].strip()
                case "image":
                    assert message["role"] == "user"
                    _anthropic_image(block)
                case "tool_result":
                    inner = block["content"]
                    assert inner
                    for part in inner if isinstance(inner, list) else ():
                        assert part["type"] == "image" or part["text"].strip()
                        if part["type"] == "image":
                            _anthropic_image(part)
                case "tool_use":
                    assert message["role"] == "assistant"
                    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", block["id"])
                    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", block["name"])
                    assert isinstance(block["input"], dict)
                    assert block["id"] not in ids
                    ids.add(block["id"])
                    waiting.append(block["id"])
                case "thinking":
                    assert block["signature"].startswith(own)
                    assert "cache_control" not in block
                case "redacted_thinking":
                    assert block["data"].startswith(own)
                    assert "cache_control" not in block
                case other:
                    raise AssertionError(other)
        if message["role"] == "assistant":
            assert content[-1]["type"] not in ("thinking", "redacted_thinking")
    assert waiting == [], "calls without results"
    if messages and messages[-1]["role"] == "assistant" and messages[-1]["content"][-1]["type"] == "text":
        text = messages[-1]["content"][-1]["text"]
        assert text == text.rstrip()
    if thinking.get("type") == "enabled" and len(messages) > 1:
        last = messages[-1]["content"][0]["type"]
        if last == "tool_result" and all(b["type"] == "tool_result" for b in messages[-1]["content"]):
            assert messages[-2]["content"][0]["type"] in ("thinking", "redacted_thinking")


def _anthropic_image(block: Json) -> None:
    assert block["source"]["media_type"] in ("image/jpeg", "image/png", "image/gif", "image/webp")
    _base64(block["source"]["data"])


def _marks(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        yield int("cache_control" in value)
        for inner in value.values():
            yield from _marks(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _marks(inner)


# --- Chat Completions --------------------------------------------------------------------------------------
# https://platform.openai.com/docs/api-reference/chat/create, https://docs.mistral.ai/api


def openai_chat(payload: Json, own: str, *, mistral: bool = False) -> None:
    waiting: list[str] = []
    ids: set[str] = set()
    before = ""
    for place, message in enumerate(payload["messages"]):
        role = message["role"]
        if role == "tool":
            assert waiting, "a result without its call"
            assert message["tool_call_id"] == waiting.pop(0)
            assert isinstance(message["content"], str)
            assert message["content"]
        else:
            assert waiting == [], "calls without results"
        match role:
            case "system" | "developer":
                assert place == 0
            case "user":
                _chat_content(message["content"])
                assert not (mistral and before == "tool")
            case "assistant":
                assert message["content"] or message.get("tool_calls")
                assert message["content"] is None or isinstance(message["content"], str)
                for detail in message.get("reasoning_details", ()):
                    assert str(detail.get("signature", own)).startswith(own)
                for call in message.get("tool_calls", ()):
                    assert re.fullmatch(r"[A-Za-z0-9]{9}" if mistral else r"(?s:.{1,40})", call["id"])
                    assert call["id"] not in ids
                    ids.add(call["id"])
                    waiting.append(call["id"])
                    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["function"]["name"])
                    assert isinstance(json.loads(call["function"]["arguments"]), dict)
                    for signature in call.get("extra_content", {}).get("google", {}).values():
                        assert signature.startswith(own)
            case _:
                assert role == "tool"
        before = role
    assert waiting == []


def _chat_content(content: Any) -> None:
    assert content
    for part in content if isinstance(content, list) else ():
        if part["type"] == "text":
            assert part["text"]
        else:
            kind, _, data = part["image_url"]["url"].partition(";base64,")
            assert kind.startswith("data:image/")
            _base64(data)


# --- Responses ---------------------------------------------------------------------------------------------
# https://platform.openai.com/docs/api-reference/responses/create, .../guides/reasoning


def openai_responses(payload: Json, own: str) -> None:
    assert payload["store"] is False
    calls: set[str] = set()
    item_ids: set[str] = set()
    waiting: list[str] = []
    items = payload["input"]
    for place, item in enumerate(items):
        kind = item.get("type", "message")
        if kind != "reasoning" and (id := item.get("id")):
            assert id not in item_ids
            item_ids.add(id)
        if kind == "function_call_output":
            assert waiting, "an output without its call"
            assert item["call_id"] == waiting.pop(0)
            assert item["output"]
            for part in item["output"] if isinstance(item["output"], list) else ():
                assert part["type"] == "input_image" or part["text"]
            continue
        assert waiting == [] or kind in ("function_call", "reasoning", "message"), "calls without outputs"
        match kind:
            case "message":
                texts = [part.get("text", "image") for part in item["content"]]
                assert texts
                assert all(texts)
                if item["role"] == "user":
                    assert waiting == [], "calls without outputs"
                    assert all(part["type"] in ("input_text", "input_image") for part in item["content"])
                else:
                    assert all(part["type"] == "output_text" for part in item["content"])
            case "reasoning":
                assert item["encrypted_content"].startswith(own)
                assert isinstance(item["summary"], list)
                following = items[place + 1] if place + 1 < len(items) else {}
                led_to = following.get("type", "message" if following.get("role") == "assistant" else "")
                assert led_to in ("message", "function_call", "reasoning"), "reasoning that leads to nothing"
                assert following.get("role") != "user"
            case "function_call":
                assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", item["call_id"])
                assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", item["name"])
                assert isinstance(json.loads(item["arguments"]), dict)
                assert item["call_id"] not in calls
                calls.add(item["call_id"])
                waiting.append(item["call_id"])
            case other:
                raise AssertionError(other)
    assert waiting == []


# --- Gemini ------------------------------------------------------------------------------------------------
# https://ai.google.dev/api/generate-content, .../gemini-api/docs/function-calling, .../thought-signatures


def google(payload: Json, own: str) -> None:
    waiting: list[tuple[str | None, str]] = []
    for place, content in enumerate(payload["contents"]):
        parts = content["parts"]
        assert content["role"] in ("user", "model")
        assert parts
        assert place > 0 or content["role"] == "user"
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        assert not results or len(results) == len(parts), "results stand alone"
        answered = [(result.get("id"), result["name"]) for result in results]
        assert answered == waiting, "each call answered once, right behind, in order"
        waiting = []
        for part in parts:
            signature = part.get("thoughtSignature")
            assert (
                signature is None
                or signature.startswith(own)
                or signature == "skip_thought_signature_validator"
            )
            if (text := part.get("text")) is not None:
                assert text or signature
            elif "inlineData" in part:
                assert content["role"] == "user"
                _base64(part["inlineData"]["data"])
            elif "functionCall" in part:
                call = part["functionCall"]
                assert content["role"] == "model"
                assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}", call["name"])
                assert isinstance(call["args"], dict)
                waiting.append((call.get("id"), call["name"]))
            elif "functionResponse" in part:
                assert content["role"] == "user"
                assert isinstance(part["functionResponse"]["response"], dict)
                for inner in part["functionResponse"].get("parts", ()):
                    _base64(inner["inlineData"]["data"])
            else:
                assert signature, f"an empty part: {part}"
    assert waiting == []


RULES: dict[str, Callable[..., None]] = {
    "anthropic": anthropic,
    "google": google,
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
}
