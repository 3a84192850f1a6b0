"""One transcript, any model: whatever a conversation came to, each API's request keeps that API's rules."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rx_agent import convert_to_llm
from rx_agent.messages import (
    AgentMessage,
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from rx_agent.models import Model, ThinkingLevel
from rx_agent.providers.base import Context, StreamOptions
from rx_agent.providers.registry import stream_function_for
from tests.providers import wire_rules


class Note(CustomMessage):
    """A message of the user's own that says nothing to a model."""

    role: str = "note"
    text: str = ""


def _model(api: str, provider: str, id: str, **fields: Any) -> Model:
    return Model(
        id=id, api=api, provider=provider, base_url="http://x", **{"input": ("text", "image"), **fields}
    )


MODELS = (
    _model("anthropic", "anthropic", "claude-sonnet-4-5", reasoning=True),
    _model("anthropic", "anthropic", "claude-opus-4-6", reasoning=True),
    _model("anthropic", "kimi", "kimi-k2", input=("text",)),
    _model("google", "google", "gemini-2.5-flash", reasoning=True),
    _model("google", "google", "gemini-3-pro-preview", reasoning=True),
    _model("google", "google", "gemma-3", input=("text",)),
    _model("openai_responses", "openai", "gpt-5", reasoning=True),
    _model("openai_responses", "lmstudio", "glm", input=("text",)),
    _model("openai_chat", "openai", "gpt-4.1"),
    _model("openai_chat", "openrouter", "claude", reasoning=True),
    _model("openai_chat", "deepseek", "deepseek-reasoner", reasoning=True, input=("text",)),
    _model("openai_chat", "mistral", "mistral-large"),
)


def sign_of(model: Model) -> str:
    return f"{model.api}/{model.provider}/{model.id}!"


def signature_of(model: Model, kind: str, number: int) -> str:
    """A signature as the model's own decoder keeps it, that begins with the model's name where it is opaque."""
    sign = sign_of(model)
    match model.api, kind:
        case "openai_responses", "thinking":
            item = {"type": "reasoning", "id": f"rs_{number}", "encrypted_content": sign, "summary": []}
            return json.dumps({"item": item, **({"next": "web_search_call"} if number % 5 == 0 else {})})
        case "openai_responses", "text":
            return json.dumps({"id": f"msg_{number}", "phase": "commentary"})
        case "openai_responses", _:
            return json.dumps({"id": f"fc_{number}"})
        case "openai_chat", "thinking":
            return json.dumps([{"type": "reasoning.text", "text": "hm", "signature": sign}])
        case "openai_chat", _:
            return json.dumps({"google": {"thought_signature": sign}})
        case _:
            return sign


NUMBERS = iter(range(10**9))
TEXTS = st.one_of(
    st.sampled_from(["", " ", "\n\n", "hi", "a\ud83d", "\udc00", "ü" * 3, "ends in space \n"]),
    st.text(max_size=5),
)
IDS = st.one_of(
    st.sampled_from(
        ["", "1", "call_1", "toolu_1", "call_1|fc_2", "functions.read:0", "x" * 70, "ä", "a b", "\ud800"]
    ),
    st.text(max_size=12),
)
NAMES = st.one_of(st.sampled_from(["read", "files.read", "", "9lives", "x" * 130, "ü"]), st.text(max_size=6))
IMAGES = st.sampled_from(
    [ImageContent(data="QUJD", mime_type=kind) for kind in ("image/png", "image/webp", "image/bmp")]
)
ARGUMENTS = st.dictionaries(
    TEXTS, st.one_of(st.none(), st.integers(), st.floats(), TEXTS, st.lists(TEXTS, max_size=2)), max_size=2
)


@st.composite
def blocks(draw: st.DrawFn, model: Model) -> Any:
    kind = draw(st.sampled_from(["text", "thinking", "redacted", "call"]))
    signature = signature_of(model, kind, next(NUMBERS)) if draw(st.booleans()) else None
    match kind:
        case "text":
            return TextContent(text=draw(TEXTS), signature=signature)
        case "thinking":
            return ThinkingContent(thinking=draw(TEXTS), signature=signature)
        case "redacted":
            return ThinkingContent(
                thinking="", signature=signature_of(model, "thinking", next(NUMBERS)), redacted=True
            )
        case _:
            return ToolCall(id=draw(IDS), name=draw(NAMES), arguments=draw(ARGUMENTS), signature=signature)


@st.composite
def turns(draw: st.DrawFn) -> list[AgentMessage]:
    """An answer of some model, and the results of its calls as a careless life may leave them."""
    model = draw(st.sampled_from(MODELS))
    answer = AssistantMessage(
        content=draw(st.lists(blocks(model), max_size=4)),
        api=model.api,
        provider=model.provider,
        model=model.id,
        stop_reason=draw(st.sampled_from(["stop", "tool_use", "length", "error", "aborted"])),
    )
    results = [
        ToolResultMessage(
            tool_call_id=call.id,
            tool_name=call.name,
            content=draw(
                st.lists(st.one_of(TEXTS.map(lambda text: TextContent(text=text)), IMAGES), max_size=2)
            ),
            is_error=draw(st.booleans()),
        )
        for call in answer.tool_calls
        if draw(st.integers(0, 9))
    ]
    return [answer, *(draw(st.permutations(results)) if draw(st.booleans()) else results)]


SAID = st.lists(st.one_of(TEXTS.map(lambda text: TextContent(text=text)), IMAGES), max_size=3).map(
    lambda content: UserMessage(content=content)
)
OTHERS: st.SearchStrategy[AgentMessage] = st.one_of(
    st.builds(BashExecutionMessage, command=TEXTS, output=TEXTS),
    st.builds(CompactionSummaryMessage, summary=TEXTS),
    st.builds(BranchSummaryMessage, summary=TEXTS),
    st.builds(Note, text=TEXTS),
    st.builds(ToolResultMessage, tool_call_id=IDS, tool_name=NAMES, content=TEXTS),
)
TRANSCRIPTS = st.lists(
    st.one_of(SAID.map(lambda m: [m]), turns(), OTHERS.map(lambda m: [m])), max_size=6
).map(lambda parts: [message for part in parts for message in part])


def request_of(model: Model, messages: list[Message], options: StreamOptions) -> bytes:
    function: Any = stream_function_for(model)
    return function.request(model, Context("Be brief.\ud83d", messages), options).payload.to_bytes()


def rules_of(model: Model) -> Any:
    rules = wire_rules.RULES[model.api]
    return partial(rules, mistral=True) if model.provider == "mistral" else rules


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.api}-{model.id}")
@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(transcript=TRANSCRIPTS, level=st.sampled_from([ThinkingLevel.OFF, ThinkingLevel.HIGH]))
def test_the_request_keeps_the_rules_of_its_api(
    model: Model, transcript: list[AgentMessage], level: ThinkingLevel
) -> None:
    before = list(transcript)
    body = request_of(model, list(convert_to_llm(transcript)), StreamOptions(thinking_level=level))
    payload = wire_rules.valid_unicode(body)
    rules_of(model)(payload, sign_of(model))
    assert transcript == before


@pytest.mark.parametrize("to", MODELS, ids=lambda model: f"to-{model.api}-{model.id}")
@pytest.mark.parametrize("source", MODELS, ids=lambda model: f"from-{model.api}-{model.id}")
def test_a_conversation_goes_on_with_any_other_model(source: Model, to: Model) -> None:
    call = ToolCall(
        id="call_1|fc_1", name="look", arguments={"at": "it"}, signature=signature_of(source, "call", 1)
    )
    answer = AssistantMessage(
        content=[
            ThinkingContent(thinking="I shall look.", signature=signature_of(source, "thinking", 1)),
            TextContent(text="Let me see."),
            call,
        ],
        api=source.api,
        provider=source.provider,
        model=source.id,
        stop_reason="tool_use",
    )
    image = ImageContent(data="QUJD", mime_type="image/png")
    result = ToolResultMessage(
        tool_call_id=call.id, tool_name="look", content=[TextContent(text="It is red."), image]
    )
    messages: list[Message] = [UserMessage(content="What is it?"), answer, result]
    body = request_of(to, messages, StreamOptions(thinking_level=ThinkingLevel.HIGH))
    payload = wire_rules.valid_unicode(body)
    rules_of(to)(payload, sign_of(to))
    text = body.decode()
    assert "Let me see." in text
    assert "It is red." in text
    assert ("QUJD" in text) == ("image" in to.input)
    assert (sign_of(source) in text) <= (source == to), "a signature went to another model"
    if source != to:
        assert "I shall look." in text
