"""Token counts of the Messages API: told in ``message_start`` and again, as totals, in ``message_delta``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from rx_agent.models import ModelCost, Usage

_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_ABOUT_INPUT = (*_INPUT, "cache_creation")
MAX_COUNT = 2**53
"""No server means a count beyond this."""


def merged_usage(before: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """``before`` brought up to date: the counts of ``later`` replace those of before, for they are totals.

    Some servers fill in the input only at first and say 0 in the end; no request has no input at all, so such
    zeros do not count.

    >>> merged_usage({"input_tokens": 9, "output_tokens": 1}, {"input_tokens": None, "output_tokens": 5})
    {'input_tokens': 9, 'output_tokens': 5}
    """
    without_input = not any(_count(later, name) for name in _INPUT)
    told = {
        name: value
        for name, value in later.items()
        if value is not None and not (without_input and name in _ABOUT_INPUT and name in before)
    }
    return {**before, **told}


def anthropic_usage(raw: Mapping[str, Any], prices: ModelCost) -> Usage:
    """The priced counts of a ``usage`` object (https://docs.anthropic.com/en/api/messages#response-usage).

    ``input_tokens`` excludes what was read from or written to the cache. The totals already hold every round of
    a server tool, so ``iterations`` is not added. Writes to the one-hour cache cost twice the input price, the
    others what the model's ``cache_write`` says
    (https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching#pricing).

    >>> anthropic_usage({"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 80}, ModelCost()).input
    3
    """
    by_age = _mapping(raw, "cache_creation")
    short, long = _count(by_age, "ephemeral_5m_input_tokens"), _count(by_age, "ephemeral_1h_input_tokens")
    cache_write = _count(raw, "cache_creation_input_tokens") if _WRITTEN in raw else short + long
    usage = Usage(
        input=_count(raw, "input_tokens"),
        output=_count(raw, "output_tokens"),
        cache_read=_count(raw, "cache_read_input_tokens"),
        cache_write=cache_write,
        reasoning=_count(_mapping(raw, "output_tokens_details"), "thinking_tokens"),
    ).priced(prices)
    long = min(long, cache_write)
    if not long:
        return usage
    written = ((cache_write - long) * prices.cache_write + long * 2 * prices.input) / 1e6
    return usage.model_copy(update={"cost": usage.cost.model_copy(update={"cache_write": written})})


_WRITTEN = "cache_creation_input_tokens"


def _mapping(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = raw.get(name)
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _count(raw: Mapping[str, Any], name: str) -> int:
    value = raw.get(name)
    return value if isinstance(value, int) and 0 <= value < MAX_COUNT else 0
