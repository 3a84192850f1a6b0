"""What is sent to the Gemini API."""

from __future__ import annotations

import json
import time
import warnings
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
from rx_agent.providers.base import Context, StreamOptions
from rx_agent.providers.google import stream
from rx_agent.providers.google.profiles import PROFILES, Profile, profile_of
from rx_agent.providers.google.request import NO_SIGNATURE, google_payload
from rx_agent.providers.registry import stream_function_for
from rx_agent.providers.thinking_levels import ThinkingLevelWarning

OLD, NEW, PRO = "gemini-2.5-flash", "gemini-3-flash-preview", "gemini-3-pro-preview"


@dataclass(frozen=True)
class Spec:
    name: str = "add"
    description: str = "Adds."
    parameters: dict[str, Any] = field(
        default_factory=lambda: {
            "$defs": {"N": {"type": "number", "exclusiveMinimum": 0}},
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/N"}},
        }
    )


def model(id: str = OLD, **fields: Any) -> Model:
    return Model(
        **{
            "id": id,
            "api": "google",
            "provider": "google",
            "reasoning": True,
            "input": ("text", "image"),
            **fields,
        }
    )


def body(
    *messages: Message, to: str | Model = OLD, tools: tuple[Spec, ...] = (), system: str = "", **options: Any
) -> dict[str, Any]:
    target = model(to) if isinstance(to, str) else to
    context = Context(system, messages, tools)
    return json.loads(google_payload(target, context, StreamOptions(**options)).to_bytes())


def contents(*messages: Message, to: str | Model = OLD) -> list[dict[str, Any]]:
    return body(*messages, to=to)["contents"]


def own(*content: Any, id: str = OLD, provider: str = "google") -> AssistantMessage:
    return AssistantMessage(
        content=content, api="google", provider=provider, model=id, stop_reason="tool_use"
    )


def result(id: str, *content: Any, name: str = "add", **fields: Any) -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=id, tool_name=name, content=content, **fields)


HI = UserMessage(content="hi")
PNG = ImageContent(data="QUJD", mime_type="image/png")
IMAGE = {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}


# --- the frame ---------------------------------------------------------------------------------------------


def test_a_plain_question():
    sent = body(HI, to=model(reasoning=False), system="Be brief.", max_tokens=5, temperature=0.0)
    assert sent == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "generationConfig": {"maxOutputTokens": 5, "temperature": 0.0},
    }


def test_tools_go_with_their_whole_schema():
    sent = body(HI, tools=(Spec(),))
    assert sent["tools"] == [
        {
            "functionDeclarations": [
                {"name": "add", "description": "Adds.", "parametersJsonSchema": Spec().parameters}
            ]
        }
    ]
    assert "toolConfig" not in sent


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        ("add", {"mode": "ANY", "allowedFunctionNames": ["add"]}),
    ],
)
def test_the_choice_of_tools(choice: str, config: dict[str, Any]):
    sent = body(HI, tools=(Spec(),), tool_choice=choice)
    assert sent["toolConfig"] == {"functionCallingConfig": config}
    assert "toolConfig" not in body(HI, tool_choice=choice)


def test_a_tool_name_that_the_api_refuses_is_told_before_it_is_sent():
    with pytest.raises(ValueError, match="'3d'"):
        body(HI, tools=(Spec(name="3d"),))


def test_extra_fields_join_those_of_the_request():
    extra = {"generationConfig": {"topP": 0.5}, "cachedContent": "cachedContents/1"}
    sent = body(HI, to=model(reasoning=False), max_tokens=5, extra_body=extra, session_id="s")
    assert sent["generationConfig"] == {"maxOutputTokens": 5, "topP": 0.5}
    assert sent["cachedContent"] == "cachedContents/1"
    assert body(HI, extra_body={"contents": []})["contents"] == []


# --- the conversation --------------------------------------------------------------------------------------


def test_roles_alternate():
    sent = contents(HI, UserMessage(content=["there", PNG]), own("a"), own("b"), UserMessage(content="c"))
    assert sent == [
        {"role": "user", "parts": [{"text": "hi"}, {"text": "there"}, IMAGE]},
        {"role": "model", "parts": [{"text": "a"}, {"text": "b"}]},
        {"role": "user", "parts": [{"text": "c"}]},
    ]


def test_the_user_speaks_first():
    sent = contents(own("Welcome!"), HI)
    assert [item["role"] for item in sent] == ["user", "model", "user"]
    assert sent[0]["parts"][0]["text"]


def test_results_of_one_answer_stand_together_in_the_order_of_the_calls():
    sent = contents(
        HI,
        own(ToolCall(id="1", name="add", arguments={"a": 2}), ToolCall(id="2", name="sub")),
        result("2", "no", name="sub", is_error=True),
        result("1", "4", "four"),
        UserMessage(content="and?"),
    )
    assert sent[1:] == [
        {
            "role": "model",
            "parts": [
                {"functionCall": {"name": "add", "args": {"a": 2}}},
                {"functionCall": {"name": "sub", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "add", "response": {"output": "4\nfour"}}},
                {"functionResponse": {"name": "sub", "response": {"error": "no"}}},
            ],
        },
        {"role": "user", "parts": [{"text": "and?"}]},
    ]


def test_a_call_without_a_result_gets_one():
    sent = contents(HI, own(ToolCall(id="1", name="add")), UserMessage(content="stop"))
    assert "interrupted" in sent[2]["parts"][0]["functionResponse"]["response"]["error"]


def test_newer_models_match_results_by_id():
    id = "call|with:odd letters"
    sent = contents(HI, own(ToolCall(id=id, name="add"), id=NEW), result(id, "4"), to=NEW)
    wire = sent[1]["parts"][0]["functionCall"]["id"]
    assert wire.isascii()
    assert wire.replace("_", "").isalnum()
    assert sent[2]["parts"][0]["functionResponse"]["id"] == wire


def test_a_result_without_text_says_so():
    assert contents(HI, own(ToolCall(id="1", name="add")), result("1"))[-1]["parts"][0]["functionResponse"][
        "response"
    ] == {"output": "(no output)"}


def test_images_of_results_are_part_of_them_for_newer_models():
    sent = contents(HI, own(ToolCall(id="1", name="add"), id=NEW), result("1", PNG), to=NEW)
    (part,) = sent[-1]["parts"]
    assert part["functionResponse"]["parts"] == [IMAGE]
    assert part["functionResponse"]["response"] == {"output": "(see the images)"}


def test_images_of_results_follow_the_last_result_for_older_models():
    calls = own(ToolCall(id="1", name="add"), ToolCall(id="2", name="add"))
    sent = contents(HI, calls, result("1", "x", PNG), result("2", "y"), UserMessage(content="and?"))
    assert [item["role"] for item in sent] == ["user", "model", "user", "user"]
    assert all("functionResponse" in part for part in sent[2]["parts"])
    assert sent[3]["parts"][1:] == [IMAGE, {"text": "and?"}]
    assert contents(HI, calls, result("1", PNG), result("2", "y"))[-1]["parts"][1:] == [IMAGE]


def test_a_model_without_eyes_is_told_that_there_was_an_image():
    sent = contents(UserMessage(content=[PNG]), to=model(input=("text",)))
    assert sent[0]["parts"] == [{"text": "(an image was here; this model takes none)"}]


def test_a_name_that_no_tool_can_have_is_sent_as_one_that_it_could():
    sent = contents(HI, own(ToolCall(id="1", name="do it!")), result("1", "no such tool", name="do it!"))
    assert sent[1]["parts"][0]["functionCall"]["name"] == "_do_it_"
    assert sent[2]["parts"][0]["functionResponse"]["name"] == "_do_it_"


def test_lone_surrogates_never_leave():
    sent = body(UserMessage(content="u\ud83d"), system="s\ud83d", tools=(Spec(description="a\ud83d"),))
    assert sent["contents"][0]["parts"][0]["text"] == "u\ufffd"
    assert sent["systemInstruction"]["parts"][0]["text"] == "s\ufffd"


# --- signatures --------------------------------------------------------------------------------------------


def test_signatures_go_back_on_the_parts_they_came_with():
    code = {"executableCode": {"code": "1"}, "thoughtSignature": "Y29kZQ=="}
    sent = contents(
        HI,
        own(
            ThinkingContent(thinking="hm", signature="dGhpbms="),
            ThinkingContent(thinking="", signature=json.dumps(code), redacted=True),
            TextContent(text="a", signature="dGV4dA=="),
            ToolCall(id="1", name="add", signature="Y2FsbA=="),
            ToolCall(id="2", name="add"),
            ThinkingContent(thinking="", signature="ZW5k", redacted=True),
            id=NEW,
        ),
        to=NEW,
    )
    calls = [{"functionCall": {"id": id, "name": "add", "args": {}}} for id in ("1", "2")]
    assert sent[1]["parts"] == [
        {"text": "hm", "thought": True, "thoughtSignature": "dGhpbms="},
        code,
        {"text": "a", "thoughtSignature": "dGV4dA=="},
        {**calls[0], "thoughtSignature": "Y2FsbA=="},
        calls[1],
        {"text": "", "thoughtSignature": "ZW5k"},
    ]


def test_what_another_model_thought_is_text_and_its_signatures_are_gone():
    sent = contents(
        HI,
        own(
            ThinkingContent(thinking="hm", signature="x"),
            ThinkingContent(thinking="", signature="y", redacted=True),
            TextContent(text="a", signature="z"),
            ToolCall(id="1", name="add", signature="w"),
            id="gemini-2.5-pro",
        ),
    )
    assert sent[1]["parts"] == [
        {"text": "hm"},
        {"text": "a"},
        {"functionCall": {"name": "add", "args": {}}},
    ]


def test_models_that_insist_on_a_signature_are_told_to_do_without_for_a_foreign_call():
    foreign = AssistantMessage(
        content=[ToolCall(id="1", name="add"), ToolCall(id="2", name="add")],
        api="anthropic",
        provider="anthropic",
        model="claude",
        stop_reason="tool_use",
    )
    first, second = contents(HI, foreign, to=NEW)[1]["parts"]
    assert first["thoughtSignature"] == NO_SIGNATURE
    assert "thoughtSignature" not in second
    assert not any("thoughtSignature" in part for part in contents(HI, foreign, to=OLD)[1]["parts"])


# --- thinking ----------------------------------------------------------------------------------------------


def thinking(to: str | Model, level: ThinkingLevel, **budgets: int) -> Any:
    given = {ThinkingLevel(name): tokens for name, tokens in budgets.items()}
    sent = body(HI, to=to, thinking_level=level, thinking_budgets=given)
    return sent.get("generationConfig", {}).get("thinkingConfig")


@pytest.mark.parametrize(
    ("id", "level", "expected"),
    [
        (OLD, ThinkingLevel.OFF, {"thinkingBudget": 0}),
        (OLD, ThinkingLevel.LOW, {"thinkingBudget": 4096, "includeThoughts": True}),
        (OLD, ThinkingLevel.MAX, {"thinkingBudget": 24576, "includeThoughts": True}),
        ("gemini-2.5-flash-lite", ThinkingLevel.OFF, {"thinkingBudget": 0}),
        ("gemini-2.5-pro", ThinkingLevel.OFF, {"thinkingBudget": 128}),
        ("gemini-2.5-pro", ThinkingLevel.MAX, {"thinkingBudget": 32768, "includeThoughts": True}),
        (NEW, ThinkingLevel.OFF, {"thinkingLevel": "minimal"}),
        (NEW, ThinkingLevel.MINIMAL, {"thinkingLevel": "minimal", "includeThoughts": True}),
        (NEW, ThinkingLevel.HIGH, {"thinkingLevel": "high", "includeThoughts": True}),
        (PRO, ThinkingLevel.OFF, {"thinkingLevel": "low"}),
        (PRO, ThinkingLevel.LOW, {"thinkingLevel": "low", "includeThoughts": True}),
        ("gemini-2.0-flash", ThinkingLevel.OFF, None),
        ("tunedModels/mine", ThinkingLevel.OFF, None),
    ],
)
def test_thinking_levels(id: str, level: ThinkingLevel, expected: Any):
    assert thinking(id, level) == expected


@pytest.mark.parametrize(
    ("id", "level", "expected"),
    [
        (PRO, ThinkingLevel.MEDIUM, {"thinkingLevel": "low", "includeThoughts": True}),
        (NEW, ThinkingLevel.MAX, {"thinkingLevel": "high", "includeThoughts": True}),
        ("gemini-2.0-flash", ThinkingLevel.HIGH, None),
    ],
)
def test_a_level_that_a_model_lacks_is_lowered_and_told_once(id: str, level: ThinkingLevel, expected: Any):
    to = model(id, provider=f"one-time-{id}-{level}")
    with pytest.warns(ThinkingLevelWarning):
        assert thinking(to, level) == expected
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert thinking(to, level) == expected


def test_budgets_of_ones_own():
    assert thinking(OLD, ThinkingLevel.LOW, low=77) == {"thinkingBudget": 77, "includeThoughts": True}
    assert thinking("gemini-2.5-pro", ThinkingLevel.LOW, low=7)["thinkingBudget"] == 128
    assert thinking(OLD, ThinkingLevel.LOW, low=-1)["thinkingBudget"] == -1


def test_a_model_that_does_not_think_is_not_asked_to():
    assert thinking(model(reasoning=False), ThinkingLevel.HIGH) is None


def test_profiles_can_be_added():
    PROFILES.insert(0, ("gemini-3-mine", Profile(budget=(1, 2))))
    try:
        assert thinking("gemini-3-mine", ThinkingLevel.MAX)["thinkingBudget"] == 2
    finally:
        del PROFILES[0]
    assert profile_of(model("gemini-9-ultra")).wants_signatures
    assert not profile_of(model("gemini-2.0-flash-preview-image-generation")).call_ids


# --- where it goes -----------------------------------------------------------------------------------------


def test_the_address_and_the_key(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GEMINI_API_KEY", "secret")
    request = stream.request(model(), Context("", [HI]), StreamOptions())
    base = "https://generativelanguage.googleapis.com/v1beta"
    assert request.url == f"{base}/models/{OLD}:streamGenerateContent?alt=sse"
    assert request.headers == {"x-goog-api-key": "secret"}
    assert "secret" not in request.url
    tuned = stream.request(model("tunedModels/my model"), Context("", [HI]), StreamOptions())
    assert tuned.url == f"{base}/tunedModels/my%20model:streamGenerateContent?alt=sse"


def test_a_missing_key_is_noticed_unless_a_token_is_there(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    assert stream.request(model(), Context("", [HI]), StreamOptions()).needs_key
    token = StreamOptions(headers={"Authorization": "Bearer t"})
    assert not stream.request(model(), Context("", [HI]), token).needs_key


def test_the_registry_knows_it():
    assert stream_function_for(model()) is stream
    assert stream.needs_event_loop


def test_each_message_is_encoded_once_for_all_the_turns():
    text = "x" * 2_000_000
    context = Context("", [UserMessage(content=text), AssistantMessage(content=text)])

    def seconds() -> float:
        start = time.perf_counter()
        assert google_payload(model(), context, StreamOptions()).arrays["contents"]
        return time.perf_counter() - start

    first = seconds()
    assert min(seconds() for _ in range(5)) < max(first / 2, 0.002)
