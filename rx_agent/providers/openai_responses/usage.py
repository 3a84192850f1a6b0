"""Token counts of the Responses API: https://platform.openai.com/docs/api-reference/responses/object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from rx_agent.models import Cost, ModelCost, Usage

TIERS: Mapping[str, float] = {"flex": 0.5, "priority": 2.0}
"""What a service tier costs, times the usual prices (https://openai.com/api/pricing)."""


def responses_usage(raw: Mapping[str, Any], prices: ModelCost, tier: str | None = None) -> Usage:
    """The priced counts of a ``usage`` object; ``tier`` is the ``service_tier`` that the server says it was.

    ``input_tokens`` includes what was read from or written to the cache, ``output_tokens`` the reasoning.

    >>> raw = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 80}, "output_tokens": 5}
    >>> usage = responses_usage(raw, ModelCost())
    >>> usage.input, usage.cache_read, usage.output
    (20, 80, 5)
    """
    details, out = _mapping(raw, "input_tokens_details"), _mapping(raw, "output_tokens_details")
    total = _count(raw, "input_tokens")
    cache_read = min(_count(details, "cached_tokens"), total)
    cache_write = min(_count(details, "cache_write_tokens"), total - cache_read)
    usage = Usage(
        input=total - cache_read - cache_write,
        output=_count(raw, "output_tokens"),
        cache_read=cache_read,
        cache_write=cache_write,
        reasoning=_count(out, "reasoning_tokens"),
    ).priced(prices)
    factor = TIERS.get(tier or "", 1.0)
    if factor == 1.0:
        return usage
    cost = usage.cost
    scaled = Cost(
        input=cost.input * factor,
        output=cost.output * factor,
        cache_read=cost.cache_read * factor,
        cache_write=cost.cache_write * factor,
    )
    return usage.model_copy(update={"cost": scaled})


def _mapping(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = raw.get(name)
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _count(raw: Mapping[str, Any], name: str) -> int:
    value = raw.get(name)
    # No server means a count beyond 2**53.
    return value if isinstance(value, int) and 0 <= value < 2**53 else 0
