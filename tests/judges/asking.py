"""Agents for the four wire APIs, and what the judges say when nothing is broken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from rx_agent import Agent, AssistantMessage, StreamOptions
from rx_agent.models import Model
from rx_agent.providers.base import Timeouts
from tests.on_loop import on_loop

ANSWER = "One two three four five six seven eight nine ten."
REPLY = {"type": "reply", "text": ANSWER, "times": None}
KEY = "sk-secret-of-the-judged"

# A server on this machine that has not answered in 5 s never will.
QUICK = Timeouts(connect=5, first_byte=5, idle=5)


@dataclass(frozen=True)
class Api:
    """A wire API at a judge's.

    ``lead`` events come before the first word of an answer, one event a word, and ``spare`` ones after that in
    which the answer says why it ended. Of the ``unheard`` first ones nothing is told: while there is no more, a
    request may still be repeated.
    """

    name: str
    provider: str
    llmock: str
    lead: int
    spare: int
    model: str
    unheard: int = 0

    def agent(self, url: str, *, model: str = "", **fields: Any) -> Agent:
        """An agent whose model is asked at ``url``."""
        options = {"api_key": KEY, "max_tokens": 100, "timeouts": QUICK, **fields.pop("options", {})}
        base_url = url + fields.pop("path", self.llmock)
        reasoning = fields.pop("reasoning", False)
        wanted = Model(
            id=model or self.model,
            api=self.name,
            provider=self.provider,
            base_url=base_url,
            reasoning=reasoning,
            input=("text", "image"),
        )
        return Agent(model=wanted, options=StreamOptions(**options), **fields)


APIS = (
    Api("openai_chat", "openai", "/v1", lead=1, spare=2, model="gpt-oss-120b"),
    Api("openai_responses", "openai", "/v1", lead=4, spare=0, model="gpt-5-mini", unheard=2),
    Api("anthropic", "anthropic", "/anthropic/v1", lead=3, spare=1, model="claude-sonnet-4-5"),
    Api("google", "google", "/gemini/v1beta", lead=0, spare=0, model="gemini-2.5-flash"),
)


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A PNG of one pixel."""


def api_id(value: object) -> str | None:
    """The name of a parameter in a test's id."""
    return value.name if isinstance(value, Api) else None


over_apis = pytest.mark.parametrize("api", APIS, ids=api_id)


def played(story: Callable[[], Awaitable[None]]) -> None:
    """Runs a story on a loop of its own; it may leave nothing behind."""
    on_loop(story)()


def last_answer(agent: Agent) -> AssistantMessage:
    """The last message, which is the model's."""
    message = agent.messages[-1]
    assert isinstance(message, AssistantMessage)
    return message
