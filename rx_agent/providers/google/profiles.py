"""What the models behind the Gemini API do differently, as a table by model id.

Thinking: https://ai.google.dev/gemini-api/docs/thinking. Signatures:
https://ai.google.dev/gemini-api/docs/thought-signatures. Images in results:
https://ai.google.dev/gemini-api/docs/function-calling#multimodal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rx_agent.models import Model, ThinkingLevel


@dataclass(frozen=True, slots=True)
class Profile:
    """How one model wants requests.

    ``budget``: the least and the most tokens of thinking that it may be given, and ``can_stop_thinking``
    whether it also takes 0. ``levels``: the thinking levels that it has, lowest first, for models that take no
    number. A model with neither is sent nothing about thinking. ``call_ids``: calls and results carry ids.
    ``images_in_results``: a ``functionResponse`` may hold images; otherwise they follow in a content of the user.
    ``wants_signatures``: it refuses a function call of the current turn without a signature.
    """

    budget: tuple[int, int] | None = None
    can_stop_thinking: bool = False
    levels: tuple[ThinkingLevel, ...] = ()
    call_ids: bool = False
    images_in_results: bool = False
    wants_signatures: bool = False


def _third(*levels: ThinkingLevel) -> Profile:
    """A model of the third generation or a later one."""
    return Profile(levels=levels, call_ids=True, images_in_results=True, wants_signatures=True)


_LOW, _MEDIUM, _HIGH = ThinkingLevel.LOW, ThinkingLevel.MEDIUM, ThinkingLevel.HIGH

PROFILES: list[tuple[str, Profile]] = [
    (r"gemini-2\.5-.*(image|audio|tts)", Profile()),
    (r"gemini-2\.5-pro", Profile(budget=(128, 32_768))),
    (r"gemini-2\.5-flash-lite", Profile(budget=(512, 24_576), can_stop_thinking=True)),
    (r"gemini-(2\.5-flash|robotics-er-1\.5)", Profile(budget=(1, 24_576), can_stop_thinking=True)),
    (r"gemini-[12]([.-]|$)", Profile()),
    (r"gemini-.*(image|audio|tts)", _third()),
    (r"gemini-3-pro", _third(_LOW, _HIGH)),
    (r"gemini-.*pro", _third(_LOW, _MEDIUM, _HIGH)),
    # A model that is newer than this table is like the newest here.
    (r"gemini", _third(ThinkingLevel.MINIMAL, _LOW, _MEDIUM, _HIGH)),
    (r"gemma-4", Profile(levels=(ThinkingLevel.MINIMAL, _HIGH))),
]
"""The first whose pattern is found in the model's id counts; other models get ``Profile()``. Put your own in front
with ``PROFILES.insert(0, (pattern, Profile(...)))``.
"""


def profile_of(model: Model) -> Profile:
    """The profile for the model's id.

    >>> profile_of(Model(id="gemini-2.5-pro", api="google", provider="google")).budget
    (128, 32768)
    """
    id = model.id.lower()
    return next((profile for pattern, profile in PROFILES if re.search(pattern, id)), _COMMON)


_COMMON = Profile()
