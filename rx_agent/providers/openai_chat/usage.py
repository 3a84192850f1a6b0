"""Token counts of Chat Completions, which the compatible servers write in several ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from rx_agent.models import Usage


def chat_usage(raw: Mapping[str, Any]) -> Usage:
    """The counts of a ``usage`` object (https://platform.openai.com/docs/api-reference/chat/object), not priced.

    ``prompt_tokens`` includes what was read from or written to a cache; ``Usage.input`` does not.

    >>> chat_usage({
    ...     "prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 80}
    ... }).input
    20
    """
    prompt = _mapping(raw, "prompt_tokens_details")
    completion = _mapping(raw, "completion_tokens_details")
    cache_read = _first(
        (prompt, "cached_tokens"),
        (raw, "prompt_cache_hit_tokens"),  # DeepSeek
        (raw, "cached_tokens"),  # Moonshot
        (raw, "cache_read_input_tokens"),  # Databricks
    )
    cache_write = _first((prompt, "cache_write_tokens"), (raw, "cache_creation_input_tokens"))
    prompt_tokens, output = _count(raw, "prompt_tokens"), _count(raw, "completion_tokens")
    reasoning = _count(completion, "reasoning_tokens")
    if reasoning and _count(raw, "total_tokens") == prompt_tokens + output + reasoning:
        output += reasoning  # xAI counts thinking beside the completion, and bills it as output
    return Usage(
        input=max(0, prompt_tokens - cache_read - cache_write),
        output=output,
        cache_read=cache_read,
        cache_write=cache_write,
        reasoning=reasoning,
    )


MAX_COUNT = 2**53
"""No server means a count beyond this."""


def _mapping(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = raw.get(name)
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _count(raw: Mapping[str, Any], name: str) -> int:
    value = raw.get(name)
    return value if isinstance(value, int) and 0 <= value < MAX_COUNT else 0


def _first(*places: tuple[Mapping[str, Any], str]) -> int:
    return next((count for raw, name in places if (count := _count(raw, name))), 0)
