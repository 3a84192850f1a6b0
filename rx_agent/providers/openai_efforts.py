"""How much the models of OpenAI can be told to think, by model id: https://platform.openai.com/docs/guides/reasoning.

The same words go to both of their APIs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rx_agent.models import Model, ThinkingLevel
from rx_agent.providers.thinking_levels import lowered_level

_WORDS = ("minimal", "low", "medium", "high", "xhigh")


@dataclass(frozen=True, slots=True)
class Efforts:
    """``levels`` and their words, and the word that means (nearly) no thinking; None: none is known."""

    levels: Mapping[ThinkingLevel, str]
    off: str | None = None


def _efforts(first: str, last: str, off: str | None = None) -> Efforts:
    words = _WORDS[_WORDS.index(first) : _WORDS.index(last) + 1]
    return Efforts({ThinkingLevel(word): word for word in words}, off)


EFFORTS: list[tuple[str, Efforts]] = [
    (r"gpt-5-pro", _efforts("high", "high", "high")),
    (r"gpt-5\.\d+-pro", _efforts("medium", "xhigh", "medium")),
    (r"gpt-5\.1-codex-max", _efforts("low", "xhigh", "low")),
    (r"gpt-5(\.1)?-codex", _efforts("low", "high", "low")),
    (r"gpt-5\.1", _efforts("low", "high", "none")),
    (r"gpt-5\.\d|gpt-[6-9]", _efforts("low", "xhigh", "none")),
    (r"gpt-5", _efforts("minimal", "high", "minimal")),
    (r"gpt-oss|(^|/)o\d", _efforts("low", "high", "low")),
]
"""The first whose pattern is found in the model's id counts; a reasoning model of another name takes ``low`` to
``high``. Put your own in front with ``EFFORTS.insert(0, (pattern, Efforts(...)))``.
"""
_COMMON = _efforts("low", "high")


def effort_for(model: Model, level: ThinkingLevel) -> str | None:
    """The word to send; None where nothing is to be said. A level that the model lacks is lowered, with a warning.

    >>> effort_for(Model(id="gpt-5-mini", api="openai_chat", provider="openai", reasoning=True), ThinkingLevel.OFF)
    'minimal'
    """
    if not model.reasoning:
        return None
    id = model.id.lower()
    efforts = next((found for pattern, found in EFFORTS if re.search(pattern, id)), _COMMON)
    if level is ThinkingLevel.OFF:
        return efforts.off
    return efforts.levels.get(lowered_level(model, level, efforts.levels))
