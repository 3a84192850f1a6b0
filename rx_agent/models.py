"""What a model is, what a request used, and what that costs: plain frozen data."""

from __future__ import annotations

import importlib
from enum import StrEnum
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rx_agent.surrogates import with_joined_pairs_inside


class Frozen(BaseModel):
    """Base of all data in this package: immutable, unknown fields refused, text equal before and after JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _with_joined_pairs(cls, data: Any) -> Any:
        if type(data) is not dict:
            return data
        fields = cast("dict[str, Any]", data)
        for name, value in fields.items():
            if (joined := with_joined_pairs_inside(value)) is not value:
                fields = {**fields, name: joined}
        return fields


class ThinkingLevel(StrEnum):
    """How much a reasoning model may think before it answers."""

    OFF = "off"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


THINKING_OFF = ThinkingLevel.OFF
THINKING_MINIMAL = ThinkingLevel.MINIMAL
THINKING_LOW = ThinkingLevel.LOW
THINKING_MEDIUM = ThinkingLevel.MEDIUM
THINKING_HIGH = ThinkingLevel.HIGH
THINKING_XHIGH = ThinkingLevel.XHIGH
THINKING_MAX = ThinkingLevel.MAX


class ModelCost(Frozen):
    """Prices in US dollars per million tokens.

    >>> ModelCost(input=3.0, output=15.0).output
    15.0
    """

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0


class Cost(Frozen):
    """What one request cost, in US dollars."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0

    @property
    def total(self) -> float:
        """All four parts together, in US dollars."""
        return self.input + self.output + self.cache_read + self.cache_write

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
        )


class Usage(Frozen):
    """Tokens of one request, or of several added up.

    ``input`` counts only tokens that were neither read from nor written to a cache, so the four counts never
    overlap. ``reasoning`` is the part of ``output`` that was thinking.

    >>> usage = Usage(input=1_000_000, output=500).priced(ModelCost(input=3.0, output=15.0))
    >>> usage.cost.total
    3.0075
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: Cost = Field(default_factory=Cost)

    @property
    def total_tokens(self) -> int:
        """All tokens that the request touched."""
        return self.input + self.output + self.cache_read + self.cache_write

    def priced(self, prices: ModelCost) -> Usage:
        """The same counts with ``cost`` worked out from ``prices``."""
        return self.model_copy(
            update={
                "cost": Cost(
                    input=self.input * prices.input / 1e6,
                    output=self.output * prices.output / 1e6,
                    cache_read=self.cache_read * prices.cache_read / 1e6,
                    cache_write=self.cache_write * prices.cache_write / 1e6,
                )
            }
        )

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            reasoning=self.reasoning + other.reasoning,
            cost=self.cost + other.cost,
        )


class Model(Frozen):
    """A model as the runtime addresses it.

    ``api`` names the wire protocol (``"openai_chat"``, ``"scripted"`` …), ``provider`` whoever serves it (and so
    which key is needed). ``context_window`` and ``max_tokens`` are in tokens, 0 where unknown.

    >>> Model(id="llama3.2", api="openai_chat", provider="ollama", base_url="http://localhost:11434/v1").id
    'llama3.2'
    """

    id: str
    name: str = ""
    api: str
    provider: str
    base_url: str = ""
    reasoning: bool = False
    input: tuple[Literal["text", "image"], ...] = ("text",)
    cost: ModelCost = Field(default_factory=ModelCost)
    context_window: int = 0
    max_tokens: int = 0
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    """Extra request headers, sent as they are (kept out of ``repr``: they may hold secrets)."""

    @classmethod
    def of(cls, name: str, **fields: Any) -> Model:
        """The model that ``name`` means: ``"provider:id"``, such as ``"anthropic:claude-sonnet-4-5"``,
        ``"openai:gpt-5-mini"`` (Responses), ``"openai-chat:gpt-5-mini"``, ``"google:gemini-2.5-flash"`` or
        ``"ollama:llama3.2"``. ``fields`` replace what is known of it (``base_url``, ``cost``, ``max_tokens`` …).

        With a ``base_url`` the id of a model there is name enough. Context window and prices are 0 where unknown;
        the extra ``prices`` knows those of the usual models. Raises ``ConfigurationError`` for an unknown
        provider, naming the nearest, and pydantic's ``ValidationError`` for a field that does not fit.

        >>> Model.of("groq:openai/gpt-oss-20b", max_tokens=4_096).api
        'openai_chat'
        """
        # The catalog stands above this module and is needed only here.
        resolve = importlib.import_module("rx_agent.providers.catalog").resolve_model
        model: Model = resolve(name, fields.pop("base_url", None))
        return cls.model_validate({**dict(model), **fields})

    def __repr_args__(self):  # type: ignore[no-untyped-def]
        for name, value in super().__repr_args__():
            if name != "headers":
                yield name, value
