"""What is known of models by name: context window and prices, from ``genai-prices`` where it is installed.

``pip install 'rx-agent[prices]'`` brings it. It is an extra because it brings an HTTP client of its own, and it is
imported when the first model is looked up.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from rx_agent.models import ModelCost

_NAMES = {"xai": "x-ai"}
"""Providers that go by another name there."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """``context_window`` in tokens (0: unknown), ``cost`` in US dollars per million tokens, as of today."""

    context_window: int
    cost: ModelCost


@cache
def _providers() -> dict[str, Any]:
    try:
        snapshot = importlib.import_module("genai_prices.data_snapshot")
    except ImportError:  # the extra is not installed: nothing is known
        return {}
    return {provider.id: provider for provider in snapshot.get_snapshot().providers}


def known_model(provider: str, id: str) -> KnownModel | None:
    """What is known of a provider's model; None for one that is not known, and without the extra ``prices``.

    Where a price depends on the length of the prompt it is that of short ones.

    >>> known_model("anthropic", "claude-sonnet-4-5").cost.output
    15.0
    """
    there = _providers().get(_NAMES.get(provider, provider))
    found = there.find_model(id.lower(), all_providers=list(_providers().values())) if there else None
    if found is None:
        return None
    prices = found.get_prices(datetime.now(UTC))
    cost = ModelCost(
        input=_per_million(prices.input_mtok),
        output=_per_million(prices.output_mtok),
        cache_read=_per_million(prices.cache_read_mtok),
        cache_write=_per_million(prices.cache_write_mtok),
    )
    return KnownModel(found.context_window or 0, cost)


def _per_million(price: Any) -> float:
    return float(getattr(price, "base", price) or 0)


def nearest_models(name: str, provider: str | None = None, most: int = 3) -> list[str]:
    """Names like ``name``, as ``"provider:id"``, of one provider or of those that make their own models.

    >>> nearest_models("claude-sonet-4-5")[0]
    'anthropic:claude-sonnet-4-5'
    """
    known: dict[str, str] = {}
    for id, maker in _ids([provider] if provider else _MAKERS):
        known.setdefault(id, maker)  # some are served by others than their maker, too
    return [f"{known[id]}:{id}" for id in difflib.get_close_matches(name.lower(), known, most, 0.6)]


_MAKERS = ("anthropic", "openai", "google", "mistral", "deepseek", "xai")


def _ids(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        there = _providers().get(_NAMES.get(name, name))
        for model in there.models if there else ():
            yield model.id, name
