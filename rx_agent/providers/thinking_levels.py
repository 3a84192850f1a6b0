"""Thinking levels as each API takes them: lowered to what a model has, as words or as token budgets."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping

from rx_agent.models import Model, ThinkingLevel

LEVELS = tuple(ThinkingLevel)
"""From ``OFF`` to ``MAX``."""

BUDGETS: Mapping[ThinkingLevel, int] = {
    ThinkingLevel.MINIMAL: 1_024,
    ThinkingLevel.LOW: 4_096,
    ThinkingLevel.MEDIUM: 10_240,
    ThinkingLevel.HIGH: 20_480,
    ThinkingLevel.XHIGH: 32_768,
    ThinkingLevel.MAX: 65_536,
}
"""Tokens of thinking for APIs that take a number, where ``thinking_budgets`` says no other."""


class ThinkingLevelWarning(UserWarning):
    """A model was asked to think on a level that it does not have."""


_WARNED: set[tuple[str, str, ThinkingLevel]] = set()


def lowered_level(model: Model, level: ThinkingLevel, has: Collection[ThinkingLevel]) -> ThinkingLevel:
    """``level``, or the next lower one of ``has``, or else the lowest of it; told in one
    :class:`ThinkingLevelWarning` for a model and level. ``OFF`` stays ``OFF``.

    >>> model = Model(id="small", api="openai_chat", provider="acme", reasoning=True)
    >>> lowered_level(model, ThinkingLevel.HIGH, (ThinkingLevel.LOW, ThinkingLevel.HIGH)).value
    'high'
    """
    if level is ThinkingLevel.OFF or level in has:
        return level
    lower = [known for known in LEVELS[: LEVELS.index(level)] if known in has]
    higher = [known for known in LEVELS if known in has]
    used = lower[-1] if lower else higher[0] if higher else ThinkingLevel.OFF
    key = (model.provider, model.id, level)
    if key not in _WARNED:
        _WARNED.add(key)
        what = "does not think" if used is ThinkingLevel.OFF else f"thinks on level {used.value!r} instead"
        warnings.warn(
            f"model {model.id!r} of {model.provider} has no thinking level {level.value!r} and {what}",
            ThinkingLevelWarning,
            stacklevel=2,
        )
    return used


def thinking_budget(level: ThinkingLevel, budgets: Mapping[ThinkingLevel, int]) -> int:
    """Tokens of thinking for ``level``: of ``budgets`` where it says, else of :data:`BUDGETS`; 0 for ``OFF``.

    >>> thinking_budget(ThinkingLevel.LOW, {}), thinking_budget(ThinkingLevel.LOW, {ThinkingLevel.LOW: 2_000})
    (4096, 2000)
    """
    return 0 if level is ThinkingLevel.OFF else budgets.get(level, BUDGETS[level])
