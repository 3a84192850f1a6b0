"""Token counts of the Gemini API, told anew with every chunk as totals so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rx_agent.models import Usage

MAX_COUNT = 2**53
"""No server means a count beyond this."""


def google_usage(raw: Mapping[str, Any]) -> Usage:
    """The counts of a ``usageMetadata`` (https://ai.google.dev/api/generate-content#UsageMetadata), not priced.

    ``promptTokenCount`` includes what was read from a cache; ``Usage.input`` does not. Thoughts are counted
    beside the candidates and billed as output. Writing to a cache is a request of its own here, and what the
    server's own tools gave the model (``toolUsePromptTokenCount``) is no part of the prompt.

    >>> usage = google_usage({
    ...     "promptTokenCount": 100, "cachedContentTokenCount": 80, "candidatesTokenCount": 5, "thoughtsTokenCount": 7
    ... })
    >>> usage.input, usage.cache_read, usage.output, usage.reasoning
    (20, 80, 12, 7)
    """
    cached, thoughts = _count(raw, "cachedContentTokenCount"), _count(raw, "thoughtsTokenCount")
    return Usage(
        input=max(0, _count(raw, "promptTokenCount") - cached),
        output=_count(raw, "candidatesTokenCount") + thoughts,
        cache_read=cached,
        reasoning=thoughts,
    )


def _count(raw: Mapping[str, Any], name: str) -> int:
    value = raw.get(name)
    return value if isinstance(value, int) and 0 <= value < MAX_COUNT else 0
