"""Models by name: ``resolve_model("groq:llama-3.3-70b-versatile")``, and where the keys come from.

The table names the OpenAI-compatible servers that are known by name. Model names are not listed: they
change by the week, and any that the server knows will do.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rx_agent.errors import ConfigurationError
from rx_agent.models import Model

COMPATIBLE = "openai-compatible"
"""The provider of a model that was given by a base URL alone."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """A server known by name.

    ``key_variable`` is the environment variable of its key; ``needs_key`` whether it answers without one.
    ``default_model`` is a sensible first choice, empty for servers that have whatever the user loaded.
    """

    base_url: str
    key_variable: str | None = None
    default_model: str = ""
    api: str = "openai_chat"
    needs_key: bool = True
    provider: str = ""
    """The name under which models and profiles go, where it is not the table's own."""


_OPENAI = Vendor(
    "https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-5-mini", api="openai_responses", provider="openai"
)

_VENDORS: dict[str, Vendor] = {
    "anthropic": Vendor(
        "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "claude-sonnet-4-5", api="anthropic"
    ),
    "openai": _OPENAI,
    "openai-chat": replace(_OPENAI, api="openai_chat"),
    "google": Vendor(
        "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY", "gemini-2.5-flash", api="google"
    ),
    "openrouter": Vendor("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "openai/gpt-5-mini"),
    "groq": Vendor("https://api.groq.com/openai/v1", "GROQ_API_KEY", "openai/gpt-oss-120b"),
    "mistral": Vendor("https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral-medium-latest"),
    "deepseek": Vendor("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-chat"),
    "xai": Vendor("https://api.x.ai/v1", "XAI_API_KEY", "grok-4"),
    "cerebras": Vendor("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", "gpt-oss-120b"),
    "together": Vendor("https://api.together.xyz/v1", "TOGETHER_API_KEY", "openai/gpt-oss-120b"),
    "fireworks": Vendor(
        "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY", "accounts/fireworks/models/gpt-oss-120b"
    ),
    "ollama": Vendor("http://localhost:11434/v1", needs_key=False),
    "lmstudio": Vendor("http://localhost:1234/v1", needs_key=False),
    "vllm": Vendor("http://localhost:8000/v1", needs_key=False),
    "llamacpp": Vendor("http://localhost:8080/v1", needs_key=False),
    COMPATIBLE: Vendor("", "RX_AGENT_API_KEY", needs_key=False),
}

_REASONING = re.compile(
    r"(^|/)(o[1345](-|$)|gpt-5|gpt-oss|deepseek-r|grok-(3-mini|4)|qwen-?3|glm-(4\.[5-9]|[5-9])|magistral|minimax-m)"
    r"|reason|think",
    re.IGNORECASE,
)


def register_vendor(name: str, vendor: Vendor) -> None:
    """Makes ``"name:model"`` resolve to ``vendor``; also replaces one of the table.

    >>> register_vendor("acme", Vendor("https://llm.acme.example/v1", "ACME_API_KEY", "acme-large"))
    >>> resolve_model("acme:acme-small").base_url
    'https://llm.acme.example/v1'
    """
    _VENDORS[name] = vendor


def known_providers() -> tuple[str, ...]:
    """The names that may stand before the colon."""
    return tuple(_VENDORS)


def vendor_of(provider: str) -> Vendor | None:
    """The table's entry for a provider, if it has one."""
    return _VENDORS.get(provider)


def resolve_model(name: str, base_url: str | None = None) -> Model:
    """The model that ``name`` means: ``"provider:id"``, or any id of the server at ``base_url``.

    The id may hold colons and slashes. A known provider's ``base_url`` may be replaced. Context window and
    prices are unknown (0): give them with ``model.model_copy(update={...})`` where they matter. Raises
    ``ConfigurationError`` for an unknown provider, naming the nearest ones.

    >>> model = resolve_model("ollama:llama3.2:3b")
    >>> model.provider, model.id, model.base_url
    ('ollama', 'llama3.2:3b', 'http://localhost:11434/v1')
    >>> resolve_model("smollm2", base_url="http://localhost:8702/v1").provider
    'openai-compatible'
    """
    provider, colon, id = name.partition(":")
    vendor = _VENDORS.get(provider) if colon else None
    if vendor is None and base_url:
        provider, id, vendor = COMPATIBLE, name, _VENDORS[COMPATIBLE]
    if vendor is None:
        raise _unknown(name, provider)
    id = id or vendor.default_model
    if not id:
        raise ConfigurationError(f"{name!r} names no model; write '{provider}:MODEL'")
    address = (base_url or vendor.base_url).rstrip("/")
    if not address:
        raise ConfigurationError(f"provider {provider!r} has no address of its own; give a base_url")
    return Model(
        id=id,
        name=id,
        api=vendor.api,
        provider=vendor.provider or provider,
        base_url=address,
        reasoning=bool(_REASONING.search(id)),
        # Nobody tells which models see; the server refuses an image that its model cannot take.
        input=("text", "image"),
    )


def _unknown(name: str, provider: str) -> ConfigurationError:
    names = [known for known in _VENDORS if known != COMPATIBLE]
    if ":" not in name and provider not in _VENDORS:
        return ConfigurationError(
            f"model {name!r} names no provider; write 'provider:{name}' with one of {', '.join(names)}, "
            "or give a base_url"
        )
    if provider in _VENDORS:
        return ConfigurationError(f"{name!r} names no model; write '{provider}:MODEL'")
    nearest = difflib.get_close_matches(provider, names, cutoff=0.5) or names
    return ConfigurationError(
        f"provider {provider!r} of {name!r} is unknown; did you mean {' or '.join(nearest[:3])}? "
        f"Known are {', '.join(names)}; another is made known with register_vendor(...) or reached by a base_url."
    )


def api_key_for(provider: str, env: Mapping[str, str] | None = None) -> str | None:
    """The provider's key from ``env`` (default: the process's environment); None for one that needs none.

    Raises ``ConfigurationError`` naming the variable where a key is needed and not set.

    >>> api_key_for("groq", {"GROQ_API_KEY": "secret"})
    'secret'
    """
    env = os.environ if env is None else env
    vendor = _VENDORS.get(provider)
    if vendor is None or vendor.key_variable is None:
        return None
    key = env.get(vendor.key_variable, "").strip()
    if not key and vendor.needs_key:
        raise ConfigurationError(
            f"no API key for {provider}: set the environment variable {vendor.key_variable}"
        )
    return key or None


def first_available(env: Mapping[str, str] | None = None) -> Model | None:
    """The default model of the table's first provider whose key is in ``env``, or None.

    >>> first_available({"MISTRAL_API_KEY": "secret"}).provider
    'mistral'
    """
    env = os.environ if env is None else env
    for name, vendor in _VENDORS.items():
        if vendor.default_model and vendor.key_variable and env.get(vendor.key_variable, "").strip():
            return resolve_model(f"{name}:{vendor.default_model}")
    return None
