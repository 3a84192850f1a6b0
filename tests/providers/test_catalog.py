"""Models by name, and what one is told where a name or a key is missing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from rx_agent.errors import ConfigurationError
from rx_agent.models import Model, ModelCost
from rx_agent.providers import catalog, known_models, registry
from rx_agent.providers.catalog import (
    Vendor,
    api_key_for,
    first_available,
    known_providers,
    register_vendor,
    resolve_model,
)
from rx_agent.providers.registry import register_api, stream_function_for
from rx_agent.providers.scripted import scripted


@pytest.fixture(autouse=True)
def _tables_as_they_were(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(catalog, "_VENDORS", dict(catalog._VENDORS))
    monkeypatch.setattr(registry, "_LAZY", dict(registry._LAZY))
    monkeypatch.setattr(registry, "_LOADED", dict(registry._LOADED))
    return


def test_provider_and_id():
    model = resolve_model("groq:llama-3.3-70b-versatile")
    assert (model.api, model.provider, model.id) == ("openai_chat", "groq", "llama-3.3-70b-versatile")
    assert model.base_url == "https://api.groq.com/openai/v1"


def test_ids_may_hold_colons_and_slashes():
    assert resolve_model("ollama:llama3.2:3b").id == "llama3.2:3b"
    assert resolve_model("openrouter:qwen/qwen3-coder:free").id == "qwen/qwen3-coder:free"


def test_openai_goes_by_both_of_its_names():
    assert resolve_model("openai-chat:gpt-x").provider == "openai"
    assert resolve_model("openai-chat:gpt-x").api == "openai_chat"
    assert resolve_model("openai:gpt-x").api == "openai_responses"


def test_a_provider_without_an_id_means_its_default():
    assert resolve_model("mistral:").id == "mistral-medium-latest"
    with pytest.raises(ConfigurationError, match="names no model"):
        resolve_model("ollama:")


def test_a_base_url_alone_is_enough():
    model = resolve_model("smollm2", base_url="http://localhost:8702/v1/")
    assert (model.provider, model.id, model.base_url) == (
        "openai-compatible",
        "smollm2",
        "http://localhost:8702/v1",
    )
    assert resolve_model("library/odd:1b", base_url="http://x/v1").id == "library/odd:1b"
    assert resolve_model("ollama:m", base_url="http://box:11434/v1").provider == "ollama"


def test_an_unknown_provider_is_told_its_nearest():
    with pytest.raises(ConfigurationError, match="did you mean mistral"):
        resolve_model("mistrall:large")
    with pytest.raises(ConfigurationError, match="'provider:foo'"):
        resolve_model("foo")
    with pytest.raises(ConfigurationError, match="base_url"):
        resolve_model("openai-compatible:m")


def test_a_name_without_its_provider_is_told_whose_it_is():
    for name, meant in (
        ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("claude-sonet-4-5", "anthropic:claude-sonnet-4-5"),
        ("gpt-5-mini", "openai:gpt-5-mini"),
        ("gemini-2.5-flash", "google:gemini-2.5-flash"),
    ):
        with pytest.raises(ConfigurationError, match=f"did you mean .*{meant}"):
            resolve_model(name)


def test_without_the_price_list_the_maker_is_guessed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(known_models, "_providers", dict)
    with pytest.raises(ConfigurationError, match="did you mean 'anthropic:claude-99'"):
        resolve_model("claude-99")
    assert resolve_model("anthropic:claude-sonnet-4-5").cost == ModelCost()


def test_a_model_of_a_name_knows_its_window_and_its_prices_unless_told_otherwise():
    model = Model.of("anthropic:claude-sonnet-4-5")
    assert (model.context_window, model.cost) == (
        200_000,
        ModelCost(input=3, output=15, cache_read=0.3, cache_write=3.75),
    )
    own = Model.of("anthropic:claude-sonnet-4-5", cost=ModelCost(input=1), max_tokens=9_000)
    assert (own.cost.input, own.max_tokens, own.context_window) == (1, 9_000, 200_000)
    assert Model.of("smollm2", base_url="http://localhost:1/v1").provider == "openai-compatible"
    with pytest.raises(ValidationError, match="max_tokens"):
        Model.of("groq:m", max_tokens="many")


def test_whoever_serves_a_model_from_elsewhere_has_prices_of_their_own():
    assert resolve_model("openai:gpt-5-mini", base_url="http://gateway/v1").cost == ModelCost()
    assert resolve_model("xai:grok-4").cost.output > 0  # goes by another name in the list
    assert resolve_model("ollama:llama3.2").cost == ModelCost()


def test_installed_packages_bring_vendors(monkeypatch: pytest.MonkeyPatch):
    vendor = Vendor("https://llm.acme.example/v1", "ACME_API_KEY")

    class Point:
        value = "acme:VENDOR"

        def __init__(self, name: str, found: object) -> None:
            self.name, self.found = name, found

        def load(self) -> object:
            if isinstance(self.found, Exception):
                raise self.found
            return self.found

    points = [Point("acme", vendor), Point("broken", ImportError("no acme2")), Point("odd", 7)]
    reported: list[Any] = []
    monkeypatch.setattr(catalog, "entry_points", lambda group: points if group == "rx_agent.vendors" else [])
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    catalog._installed.cache_clear()
    try:
        assert resolve_model("acme:small").base_url == vendor.base_url
        assert "acme" in known_providers()
        assert "odd" not in known_providers()
        with pytest.raises(ConfigurationError, match="ACME_API_KEY"):
            api_key_for("acme", {})
    finally:
        catalog._installed.cache_clear()
    assert [report.object for report in reported] == ["broken", "odd"]


@pytest.mark.parametrize("id", ["claude-sonnet-4-5", "claude-3-7-sonnet-latest", "claude-opus-4-6"])
def test_claudes_that_think(id: str):
    assert resolve_model(f"anthropic:{id}").reasoning
    assert not resolve_model("anthropic:claude-3-5-haiku-latest").reasoning
    assert not resolve_model("anthropic:claude-3-opus-20240229").reasoning


@pytest.mark.parametrize(
    "id", ["o3", "openai/gpt-5-mini", "deepseek-reasoner", "gpt-oss-120b", "kimi-k2-thinking"]
)
def test_models_known_to_reason(id: str):
    assert resolve_model(f"openrouter:{id}").reasoning


@pytest.mark.parametrize("id", ["gpt-4o", "llama3.2:3b", "mistral-large", "foo3"])
def test_models_not_known_to_reason(id: str):
    assert not resolve_model(f"openrouter:{id}").reasoning


def test_keys_come_from_the_environment():
    assert api_key_for("groq", {"GROQ_API_KEY": " k "}) == "k"
    assert api_key_for("ollama", {}) is None
    assert api_key_for("openai-compatible", {}) is None
    assert api_key_for("openai-compatible", {"RX_AGENT_API_KEY": "k"}) == "k"
    assert api_key_for("nobody", {}) is None
    with pytest.raises(ConfigurationError, match="XAI_API_KEY"):
        api_key_for("xai", {"XAI_API_KEY": ""})


def test_the_first_provider_with_a_key():
    assert first_available({}) is None
    model = first_available({"TOGETHER_API_KEY": "k", "DEEPSEEK_API_KEY": "k"})
    assert model is not None
    assert (model.provider, model.id) == ("deepseek", "deepseek-chat")


def test_every_vendor_resolves():
    for name in known_providers():
        if name != "openai-compatible":
            assert resolve_model(f"{name}:m").base_url.startswith("http")


def test_a_vendor_of_ones_own():
    register_vendor("acme", Vendor("https://llm.acme.example/v1", "ACME_API_KEY", "large"))
    assert resolve_model("acme:small").base_url == "https://llm.acme.example/v1"
    with pytest.raises(ConfigurationError, match="ACME_API_KEY"):
        api_key_for("acme", {})


def test_an_api_of_ones_own():
    provider = scripted([])
    register_api("mine", provider)
    assert stream_function_for(Model(id="m", api="mine", provider="me")) is provider
    register_api("lazy", "rx_agent.providers.openai_chat:stream")
    function = stream_function_for(Model(id="m", api="lazy", provider="me"))
    assert function.needs_event_loop  # type: ignore[attr-defined]


def test_an_unknown_api_is_told_its_nearest():
    with pytest.raises(ConfigurationError, match="did you mean openai_chat"):
        stream_function_for(Model(id="m", api="openai-chat", provider="openai"))
    with pytest.raises(ConfigurationError, match=r"package\.module:attribute"):
        register_api("x", "nowhere")
