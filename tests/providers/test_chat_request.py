"""What is sent to a Chat Completions server."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from rx_agent.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from rx_agent.models import Model, ThinkingLevel
from rx_agent.providers import thinking_levels
from rx_agent.providers.base import Context, StreamOptions
from rx_agent.providers.openai_chat.request import chat_payload
from rx_agent.providers.thinking_levels import ThinkingLevelWarning


@dataclass(frozen=True)
class Spec:
    name: str = "add"
    description: str = "Adds."
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


def model(provider: str = "openai", **fields: Any) -> Model:
    return Model(
        **{"id": "m", "api": "openai_chat", "provider": provider, "input": ("text", "image"), **fields}
    )


def body(
    *messages: Message, to: Model | None = None, tools: tuple[Spec, ...] = (), **options: Any
) -> dict[str, Any]:
    context = Context("", messages, tools)
    return json.loads(chat_payload(to or model(), context, StreamOptions(**options)).to_bytes())


def own(*content: Any, provider: str = "openai", id: str = "m") -> AssistantMessage:
    return AssistantMessage(
        content=content, api="openai_chat", provider=provider, model=id, stop_reason="tool_use"
    )


PNG = ImageContent(data="QUJD", mime_type="image/png")
IMAGE_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}


def test_a_plain_question():
    payload = chat_payload(model(), Context("Be brief.", [UserMessage(content="hi")]), StreamOptions())
    assert payload.to_dict() == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
    }


def test_a_call_and_its_result():
    sent = body(
        UserMessage(content="2+2?"),
        own(TextContent(text="Let me see."), ToolCall(id="c1", name="add", arguments={"a": 2, "b": "ü"})),
        ToolResultMessage(tool_call_id="c1", tool_name="add", content=["4", "four"]),
    )
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":2,"b":"ü"}'}}
    assert sent["messages"][1:] == [
        {"role": "assistant", "content": "Let me see.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "4\nfour"},
    ]


def test_images_go_as_data_urls():
    (message,) = body(UserMessage(content=["look", PNG]))["messages"]
    assert message["content"] == [{"type": "text", "text": "look"}, IMAGE_PART]


def test_images_of_results_follow_the_last_result_in_a_message_of_the_user():
    sent = body(
        own(ToolCall(id="1", name="f"), ToolCall(id="2", name="f")),
        ToolResultMessage(tool_call_id="1", tool_name="f", content=[PNG]),
        ToolResultMessage(tool_call_id="2", tool_name="f", content="text"),
        UserMessage(content="and?"),
    )["messages"]
    assert [message["role"] for message in sent] == ["assistant", "tool", "tool", "user", "user"]
    assert sent[1]["content"] == "(see the images below)"
    assert sent[3]["content"][1:] == [IMAGE_PART]


def test_a_model_without_eyes_is_told_that_there_was_an_image():
    blind = model(input=("text",))
    sent = body(UserMessage(content=[PNG]), to=blind)["messages"]
    assert sent == [{"role": "user", "content": "(an image was here; this model takes none)"}]
    result = ToolResultMessage(tool_call_id="1", tool_name="f", content=[PNG])
    sent = body(own(ToolCall(id="1", name="f")), result, to=blind)["messages"]
    assert sent[-1]["content"] == "(an image was here; this model takes none)"


def test_a_result_without_text_says_so():
    sent = body(own(ToolCall(id="1", name="f")), ToolResultMessage(tool_call_id="1", tool_name="f"))[
        "messages"
    ]
    assert sent[-1]["content"] == "(no output)"


def test_thinking_stays_at_home():
    assert body(own(ThinkingContent(thinking="hm"), TextContent(text="4")))["messages"] == [
        {"role": "assistant", "content": "4"}
    ]
    assert body(own(ThinkingContent(thinking="hm")))["messages"] == []


def test_what_another_model_thought_is_told_as_text():
    thought = own(ThinkingContent(thinking="hm"), TextContent(text="4"), id="other")
    assert body(thought)["messages"] == [{"role": "assistant", "content": "hm\n\n4"}]


def test_thinking_goes_back_to_those_who_want_it_and_only_to_the_model_that_thought():
    details = '[{"type":"reasoning.text","text":"hm","signature":"s"}]'
    said = (ThinkingContent(thinking="hm", signature=details), ToolCall(id="1", name="f"))
    (sent, _) = body(own(*said, provider="openrouter"), to=model("openrouter"))["messages"]
    assert sent["reasoning_details"] == json.loads(details)
    (sent, _) = body(own(*said, provider="openrouter", id="other"), to=model("openrouter"))["messages"]
    assert "reasoning_details" not in sent
    (sent, _) = body(own(*said, provider="deepseek"), to=model("deepseek"))["messages"]
    assert sent["reasoning_content"] == "hm"
    (sent,) = body(own(said[0], TextContent(text="x"), provider="deepseek"), to=model("deepseek"))["messages"]
    assert "reasoning_content" not in sent


def test_a_calls_signature_goes_back_as_it_came():
    call = ToolCall(id="1", name="f", signature='{"google":{"thought_signature":"s"}}')
    assert body(own(call))["messages"][0]["tool_calls"][0]["extra_content"] == {
        "google": {"thought_signature": "s"}
    }


def test_tools_and_the_choice_among_them():
    sent = body(tools=(Spec(),), tool_choice="add")
    parameters = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    function = {"name": "add", "description": "Adds.", "parameters": parameters, "strict": True}
    assert sent["tools"] == [{"type": "function", "function": function}]
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "add"}}
    assert body(tools=(Spec(),), tool_choice="required")["tool_choice"] == "required"
    assert body(tools=(Spec(),), tool_choice="required", to=model("mistral"))["tool_choice"] == "any"
    assert "tool_choice" not in body(tool_choice="auto")


def test_only_a_schema_that_strict_mode_can_express_is_strict_and_only_where_that_is_known():
    loose = Spec(parameters={"type": "object", "properties": {"a": {"type": "integer", "default": 1}}})
    for sent in (body(tools=(loose,)), body(tools=(loose,), to=model("groq"))):
        assert sent["tools"][0]["function"] == {
            "name": "add",
            "description": "Adds.",
            "parameters": loose.parameters,
        }
    assert "strict" not in body(tools=(Spec(),), to=model("groq"))["tools"][0]["function"]


def test_a_tool_by_a_name_that_no_server_takes_is_refused_by_name():
    with pytest.raises(ValueError, match=r"'files\.read'"):
        body(tools=(Spec(name="files.read"),))


def test_a_call_of_what_no_tool_is_named_still_goes_back():
    sent = body(own(ToolCall(id="1", name="files.read now")))["messages"]
    assert sent[0]["tool_calls"][0]["function"]["name"] == "files_read_now"


def test_a_reasoning_model_of_openai_has_a_developer():
    def role(to: Model) -> str:
        payload = chat_payload(to, Context("Be brief.", []), StreamOptions())
        return payload.to_dict()["messages"][0]["role"]

    assert role(model(reasoning=True)) == "developer"
    assert role(model()) == "system"
    assert role(model("groq", reasoning=True)) == "system"


def test_caching_where_it_is_asked_for():
    long = body(session_id="s" * 99, cache_retention="long")
    assert (long["prompt_cache_key"], long["prompt_cache_retention"]) == ("s" * 64, "24h")
    assert not body(session_id="s", cache_retention="none").keys() & {
        "prompt_cache_key",
        "prompt_cache_retention",
    }
    assert "prompt_cache_key" not in body(session_id="s", to=model("groq"))


def test_options():
    sent = body(max_tokens=5, temperature=0.5, session_id="s", extra_body={"seed": 7, "stream_options": None})
    assert (sent["max_completion_tokens"], sent["temperature"], sent["prompt_cache_key"]) == (5, 0.5, "s")
    assert (sent["seed"], sent["stream_options"]) == (7, None)
    assert body(max_tokens=5, to=model("ollama"))["max_tokens"] == 5


@pytest.mark.parametrize(
    ("provider", "id", "level", "expected"),
    [
        ("openai", "gpt-5", ThinkingLevel.MINIMAL, {"reasoning_effort": "minimal"}),
        ("openai", "gpt-5.2", ThinkingLevel.XHIGH, {"reasoning_effort": "xhigh"}),
        ("openai", "gpt-5.2", ThinkingLevel.OFF, {"reasoning_effort": "none"}),
        ("openai", "m", ThinkingLevel.OFF, {}),
        ("groq", "m", ThinkingLevel.MEDIUM, {"reasoning_effort": "medium"}),
        ("groq", "m", ThinkingLevel.OFF, {}),
        ("openrouter", "m", ThinkingLevel.LOW, {"reasoning": {"effort": "low"}}),
        ("openrouter", "m", ThinkingLevel.OFF, {"reasoning": {"effort": "none"}}),
    ],
)
def test_thinking_levels(provider: str, id: str, level: ThinkingLevel, expected: dict[str, Any]):
    sent = body(to=model(provider, id=id, reasoning=True), thinking_level=level)
    assert {name: value for name, value in sent.items() if name.startswith("reasoning")} == expected


@pytest.mark.parametrize(
    ("provider", "id", "level", "used"),
    [
        ("openai", "o3", ThinkingLevel.MAX, "high"),
        ("openai", "gpt-5", ThinkingLevel.XHIGH, "high"),
        ("groq", "m1", ThinkingLevel.MAX, "high"),
        ("groq", "m1", ThinkingLevel.MINIMAL, "low"),
    ],
)
def test_a_level_that_a_model_lacks_is_lowered_with_one_warning(
    provider: str, id: str, level: ThinkingLevel, used: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(thinking_levels, "_WARNED", set())
    to = model(provider, id=id, reasoning=True)
    with pytest.warns(ThinkingLevelWarning, match=f"{id!r} of {provider} has no thinking level") as warned:
        efforts = [body(to=to, thinking_level=level)["reasoning_effort"] for _ in range(2)]
    assert efforts == [used, used]
    assert len(warned) == 1


def test_a_model_that_does_not_think_is_not_asked_to():
    assert "reasoning_effort" not in body(thinking_level=ThinkingLevel.HIGH)


def test_mistral_gets_ids_of_nine_letters_and_no_user_behind_a_tool():
    sent = body(
        own(ToolCall(id="call_long_one", name="f")),
        ToolResultMessage(tool_call_id="call_long_one", tool_name="f", content="x"),
        UserMessage(content="go on"),
        to=model("mistral"),
    )["messages"]
    assert [message["role"] for message in sent] == ["assistant", "tool", "assistant", "user"]
    assert len(sent[0]["tool_calls"][0]["id"]) == 9
    assert sent[0]["tool_calls"][0]["id"] == sent[1]["tool_call_id"]


def test_an_id_that_is_too_long_is_shortened_alike_in_call_and_result():
    id = "toolu_" + "x" * 80
    sent = body(
        own(ToolCall(id=id, name="f")), ToolResultMessage(tool_call_id=id, tool_name="f", content="x")
    )
    assert len(sent["messages"][0]["tool_calls"][0]["id"]) <= 40
    assert sent["messages"][0]["tool_calls"][0]["id"] == sent["messages"][1]["tool_call_id"]


def test_lone_surrogates_never_leave():
    tool = Spec(description="a\ud83d")
    context = Context("s\ud83d", [UserMessage(content="u\ud83d")], [tool])
    sent = json.loads(chat_payload(model(), context, StreamOptions()).to_bytes())
    assert [message["content"] for message in sent["messages"]] == ["s\ufffd", "u\ufffd"]
    assert sent["tools"][0]["function"]["description"] == "a\ufffd"


def test_each_message_is_encoded_once_for_all_the_turns():
    text = "x" * 2_000_000
    messages = [UserMessage(content=text), AssistantMessage(content=text)]
    context = Context("", messages)

    def seconds() -> float:
        start = time.perf_counter()
        assert chat_payload(model(), context, StreamOptions()).arrays["messages"]
        return time.perf_counter() - start

    first = seconds()
    assert min(seconds() for _ in range(5)) < max(first / 3, 0.0005)
