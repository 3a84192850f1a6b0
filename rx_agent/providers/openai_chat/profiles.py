"""What the servers that speak Chat Completions do differently, as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rx_agent.models import ThinkingLevel
from rx_agent.providers.call_ids import wire_call_id

ReasoningReplay: TypeAlias = Literal["none", "reasoning_content", "reasoning_details"]

_LOW_TO_HIGH: Mapping[ThinkingLevel, str] = {
    ThinkingLevel.LOW: "low",
    ThinkingLevel.MEDIUM: "medium",
    ThinkingLevel.HIGH: "high",
}
_NONE_TO_XHIGH: Mapping[ThinkingLevel, str] = {
    ThinkingLevel.OFF: "none",
    ThinkingLevel.MINIMAL: "minimal",
    **_LOW_TO_HIGH,
    ThinkingLevel.XHIGH: "xhigh",
}


def short_id(id: str) -> str:
    """``id``, or a digest of it where it is longer than the 40 characters that OpenAI takes."""
    return wire_call_id(id, r"(?s:.{1,40})", 24, "call_")


def nine_letters(id: str) -> str:
    """``id``, or a digest of it where it is not the nine letters and digits that Mistral takes."""
    return wire_call_id(id, r"[A-Za-z0-9]{9}", 9)


@dataclass(frozen=True, slots=True)
class Profile:
    """How one server wants requests.

    ``max_tokens_field`` and ``required_choice`` are names that differ; ``wire_id`` makes a tool call's id
    one the server takes, the same for call and result; ``efforts`` are its words for the thinking levels that it
    has, sent as ``reasoning_effort`` or (``effort_in_object``) as ``reasoning.effort``; None: those of OpenAI's
    models, by their ids. ``replay`` is the field in which it wants its own reasoning back; ``session_field``
    routes a conversation to the same cache, ``caches_longer``: it can be asked to keep that for a day.
    ``developer_role``: its reasoning models have a developer in place of the system. ``strict_tools``: it can
    hold a model to a tool's schema.
    """

    developer_role: bool = False
    strict_tools: bool = False
    max_tokens_field: str = "max_tokens"
    include_usage: bool = True
    required_choice: str = "required"
    efforts: Mapping[ThinkingLevel, str] | None = field(default_factory=lambda: _LOW_TO_HIGH)
    effort_in_object: bool = False
    replay: ReasoningReplay = "none"
    replay_with_calls_only: bool = False
    session_field: str | None = None
    caches_longer: bool = False
    wire_id: Callable[[str], str] = short_id
    assistant_after_tool: bool = False
    """A user message may not follow a tool result; an assistant message goes between."""


PROFILES: dict[str, Profile] = {
    "openai": Profile(
        max_tokens_field="max_completion_tokens",
        efforts=None,
        session_field="prompt_cache_key",
        caches_longer=True,
        developer_role=True,
        strict_tools=True,
    ),
    "openrouter": Profile(efforts=_NONE_TO_XHIGH, effort_in_object=True, replay="reasoning_details"),
    "groq": Profile(max_tokens_field="max_completion_tokens"),
    "cerebras": Profile(max_tokens_field="max_completion_tokens"),
    # DeepSeek refuses reasoning that comes back without a tool call and misses it where there was one.
    "deepseek": Profile(replay="reasoning_content", replay_with_calls_only=True),
    "mistral": Profile(
        include_usage=False, required_choice="any", wire_id=nine_letters, assistant_after_tool=True
    ),
}
"""By provider. Whoever is not listed gets ``Profile()``; add your own with ``PROFILES[name] =
Profile(...)``.
"""


def profile_of(provider: str) -> Profile:
    """The provider's profile, or the common one."""
    return PROFILES.get(provider, _COMMON)


_COMMON = Profile()
