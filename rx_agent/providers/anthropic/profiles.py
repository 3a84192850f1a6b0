"""How the models of the Messages API think and how much they write, as a table by model id.

From https://docs.anthropic.com/en/docs/build-with-claude/effort, .../adaptive-thinking, .../extended-thinking
and .../about-claude/models/overview.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rx_agent.models import Model, ThinkingLevel

INTERLEAVED = "interleaved-thinking-2025-05-14"
"""The ``anthropic-beta`` by which a model with a thinking budget also thinks between tool calls."""

_LOW_TO_MAX: Mapping[ThinkingLevel, str] = {
    ThinkingLevel.LOW: "low",
    ThinkingLevel.MEDIUM: "medium",
    ThinkingLevel.HIGH: "high",
    ThinkingLevel.MAX: "max",
}
_WITH_XHIGH: Mapping[ThinkingLevel, str] = {**_LOW_TO_MAX, ThinkingLevel.XHIGH: "xhigh"}


@dataclass(frozen=True, slots=True)
class Profile:
    """What one family of models takes.

    ``efforts`` are its words for thinking levels, sent as ``output_config.effort`` with adaptive thinking;
    where there are none, it takes a budget of tokens. ``off`` is what ``thinking`` says when it shall not
    think (None: nothing, for it does not unless it is asked to, or cannot help it). ``summarized``: it keeps
    its thoughts to itself unless they are asked for. ``samples``: it takes a ``temperature``.
    ``interleaves``: it knows :data:`INTERLEAVED`. ``max_tokens`` is what is asked for where nobody says,
    ``limit`` what the API refuses to go beyond (tokens; 0: unknown).
    """

    efforts: Mapping[ThinkingLevel, str] = field(default_factory=dict[ThinkingLevel, str])
    off: Mapping[str, Any] | None = None
    summarized: bool = False
    samples: bool = True
    interleaves: bool = False
    max_tokens: int = 32_000
    limit: int = 0


_ADAPTIVE = Profile(efforts=_LOW_TO_MAX, max_tokens=64_000, limit=128_000)
_SUMMARIZED = Profile(efforts=_WITH_XHIGH, summarized=True, samples=False, max_tokens=64_000, limit=128_000)
_THINKS_BY_DEFAULT = Profile(
    efforts=_WITH_XHIGH,
    off={"type": "disabled"},
    summarized=True,
    samples=False,
    max_tokens=64_000,
    limit=128_000,
)
_THINKS_BETWEEN_TOOLS = Profile(
    efforts=_WITH_XHIGH,
    off={"type": "between_tools"},
    summarized=True,
    samples=False,
    max_tokens=64_000,
    limit=128_000,
)

PROFILES: list[tuple[str, Profile]] = [
    (r"claude-(fable|mythos)-\d|claude-opus-5[.-]5(?!\d)", _SUMMARIZED),
    (r"claude-mythos-preview", Profile(efforts=_LOW_TO_MAX, samples=False, max_tokens=64_000)),
    (r"claude-sonnet-5[.-]5(?!\d)", _THINKS_BETWEEN_TOOLS),
    (r"claude-(opus|sonnet|haiku)-5", _THINKS_BY_DEFAULT),
    (r"claude-opus-4[.-][78](?!\d)", _SUMMARIZED),
    (r"claude-(opus|sonnet)-4[.-]6(?!\d)", _ADAPTIVE),
    (r"claude-opus-4(?![.-]5(?!\d))", Profile(interleaves=True, limit=32_000)),
    (r"claude-(opus|sonnet|haiku)-4", Profile(interleaves=True, limit=64_000)),
    (r"claude-3[.-]7", Profile(limit=64_000)),
    (r"claude-3[.-]5", Profile(max_tokens=8_192, limit=8_192)),
    (r"claude-(3|2|instant)", Profile(max_tokens=4_096, limit=4_096)),
    # A model that is newer than this table is like the newest here.
    (r"claude", _SUMMARIZED),
]
"""The first whose pattern is found in the model's id counts; models of other makers get ``Profile()``. Put your
own in front with ``PROFILES.insert(0, (pattern, Profile(...)))``.
"""


def profile_of(model: Model) -> Profile:
    """The profile for the model's id.

    >>> profile_of(Model(id="claude-opus-4-6", api="anthropic", provider="anthropic")).efforts[ThinkingLevel.MAX]
    'max'
    """
    id = model.id.lower()
    return next((profile for pattern, profile in PROFILES if re.search(pattern, id)), _COMMON)


_COMMON = Profile()
