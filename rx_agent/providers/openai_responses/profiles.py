"""What the servers that speak the Responses API do differently, as a table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Profile:
    """How one server wants requests.

    ``images_in_results``: it takes images in the output of a function (else they follow in a message of the
    user's). ``caches``: it knows ``prompt_cache_key``. ``strict_tools``: it can hold a model to a tool's schema.
    ``least_tokens`` is the smallest ``max_output_tokens`` that it takes.
    """

    images_in_results: bool = False
    caches: bool = False
    strict_tools: bool = False
    least_tokens: int = 1


PROFILES: dict[str, Profile] = {
    "openai": Profile(images_in_results=True, caches=True, strict_tools=True, least_tokens=16),
}
"""By provider. Whoever is not listed gets ``Profile()``; add your own with ``PROFILES[name] = Profile(...)``."""


def profile_of(provider: str) -> Profile:
    """The provider's profile, or the common one."""
    return PROFILES.get(provider, _COMMON)


_COMMON = Profile()
