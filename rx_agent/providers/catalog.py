"""Models by name: ``Model.of("groq:llama-3.3-70b-versatile")``, and where the keys come from.

The table names the servers that are known by name. Model names are not listed: they change by the week, and any
that the server knows will do.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points

from rx_agent.errors import ConfigurationError
from rx_agent.models import Model
from rx_agent.providers.known_models import known_model, nearest_models
from rx_agent.reporting import report

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
    r"|claude-(3[.-]7|(opus|sonnet|haiku|fable|mythos)-|mythos)|gemini-(2\.5|[3-9])|gemma-4|reason|think",
    re.IGNORECASE,
)


ENTRY_POINTS = "rx_agent.vendors"
"""The group of entry points by which an installed package adds vendors: each names a :class:`Vendor`, as
``acme = "acme_llm:VENDOR"`` under ``[project.entry-points."rx_agent.vendors"]``.
"""


def register_vendor(name: str, vendor: Vendor) -> None:
    """Makes ``"name:model"`` resolve to ``vendor``; also replaces one of the table.

    A package does the same for whoever installs it with an entry point, see :data:`ENTRY_POINTS`.

    >>> register_vendor("acme", Vendor("https://llm.acme.example/v1", "ACME_API_KEY", "acme-large"))
    >>> resolve_model("acme:acme-small").base_url
    'https://llm.acme.example/v1'
    """
    _VENDORS[name] = vendor


@cache
def _installed() -> Mapping[str, Vendor]:
    """The vendors of installed packages. One that cannot be loaded is reported, and hurts no other."""
    found: dict[str, Vendor] = {}
    for point in entry_points(group=ENTRY_POINTS):
        try:
            vendor = point.load()
            if not isinstance(vendor, Vendor):
                raise TypeError(f"{point.value} is {type(vendor).__name__}, not a Vendor")
        except Exception as error:
            report(error, f"entry point of {ENTRY_POINTS}", point.name)
            continue
        found[point.name] = vendor
    return found


def known_providers() -> tuple[str, ...]:
    """The names that may stand before the colon."""
    return tuple({**_VENDORS, **_installed()})


def vendor_of(provider: str) -> Vendor | None:
    """The table's entry for a provider, or that of an installed package, if there is one."""
    return _VENDORS.get(provider) or _installed().get(provider)


def resolve_model(name: str, base_url: str | None = None) -> Model:
    """The model that ``name`` means: ``"provider:id"``, or any id of the server at ``base_url``.

    The id may hold colons and slashes. A known provider's ``base_url`` may be replaced. Context window and
    prices are those of :mod:`~rx_agent.providers.known_models`, 0 where unknown. Raises
    ``ConfigurationError`` for an unknown provider, naming the nearest ones.

    >>> model = resolve_model("ollama:llama3.2:3b")
    >>> model.provider, model.id, model.base_url
    ('ollama', 'llama3.2:3b', 'http://localhost:11434/v1')
    >>> resolve_model("smollm2", base_url="http://localhost:8702/v1").provider
    'openai-compatible'
    """
    provider, colon, id = name.partition(":")
    vendor = vendor_of(provider) if colon else None
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
    provider = vendor.provider or provider
    model = Model(
        id=id,
        name=id,
        api=vendor.api,
        provider=provider,
        base_url=address,
        reasoning=bool(_REASONING.search(id)),
        # Nobody tells which models see; the server refuses an image that its model cannot take.
        input=("text", "image"),
    )
    # Whoever serves it from elsewhere has prices and limits of their own.
    known = known_model(provider, id) if address == vendor.base_url else None
    if known is None:
        return model
    return model.model_copy(update={"cost": known.cost, "context_window": known.context_window})


def _unknown(name: str, provider: str) -> ConfigurationError:
    names = [known for known in known_providers() if known != COMPATIBLE]
    if provider in names:
        return ConfigurationError(f"{name!r} names no model; write '{provider}:MODEL'")
    if ":" not in name:
        near = nearest_models(name) or [
            f"{maker}:{name}" for maker, ids in _MAKERS if re.match(ids, name, re.I)
        ]
        meant = f"; did you mean {' or '.join(map(repr, near))}?" if near else ";"
        return ConfigurationError(
            f"model {name!r} names no provider{meant} Write 'provider:{name}' with one of {', '.join(names)}, "
            "or give a base_url"
        )
    nearest = difflib.get_close_matches(provider, names, cutoff=0.5) or names
    return ConfigurationError(
        f"provider {provider!r} of {name!r} is unknown; did you mean {' or '.join(nearest[:3])}? "
        f"Known are {', '.join(names)}; another is made known with register_vendor(...) or reached by a base_url."
    )


_MAKERS = (
    ("anthropic", "claude"),
    ("openai", r"gpt-\d|o\d|chatgpt"),
    ("google", "gemini|gemma"),
    ("mistral", ".*stral"),
    ("deepseek", "deepseek"),
    ("xai", "grok"),
    ("ollama", "llama|qwen|phi"),
)
"""Who makes the models whose names begin so."""


def api_key_for(provider: str, env: Mapping[str, str] | None = None) -> str | None:
    """The provider's key from ``env`` (default: the process's environment); None for one that needs none.

    Raises ``ConfigurationError`` naming the variable where a key is needed and not set.

    >>> api_key_for("groq", {"GROQ_API_KEY": "secret"})
    'secret'
    """
    env = os.environ if env is None else env
    vendor = vendor_of(provider)
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
