"""Messages, models and usage: they survive JSON whatever text is in them, and convert as documented."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from rx_agent import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    Cost,
    CustomMessage,
    ImageContent,
    Model,
    ModelCost,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    Usage,
    UserMessage,
    bash_execution_to_text,
    convert_to_llm,
    convert_to_llm_message,
)
from rx_agent.messages import message_from_json, messages_from_json, to_json
from rx_agent.sequences import AppendOnly

text = st.text(st.characters(), max_size=20)
"""Any code points, lone surrogates included."""
maybe = st.none() | text
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
costs = st.builds(Cost, *[], input=st.floats(0, 9), output=st.floats(0, 9))
usages = st.builds(Usage, input=st.integers(0), output=st.integers(0), cache_read=st.integers(0), cost=costs)
texts = st.builds(TextContent, text=text, signature=maybe)
images = st.builds(ImageContent, data=text, mime_type=text)
thoughts = st.builds(ThinkingContent, thinking=text, signature=maybe, redacted=st.booleans())
calls = st.builds(
    ToolCall,
    id=text,
    name=text,
    arguments=st.dictionaries(text, json_values, max_size=3),
    invalid_arguments=maybe,
)
user_blocks = st.lists(texts | images, max_size=3).map(tuple)
messages = st.one_of(
    st.builds(UserMessage, content=user_blocks, timestamp=st.integers()),
    st.builds(
        AssistantMessage,
        content=st.lists(texts | thoughts | calls, max_size=4).map(tuple),
        api=text,
        provider=text,
        model=text,
        usage=usages,
        stop_reason=st.sampled_from([None, "stop", "length", "tool_use", "error", "aborted"]),
        error_message=maybe,
        error_kind=st.sampled_from([None, "auth", "timeout"]),
    ),
    st.builds(
        ToolResultMessage,
        tool_call_id=text,
        tool_name=text,
        content=user_blocks,
        details=json_values,
        is_error=st.booleans(),
    ),
    st.builds(
        BashExecutionMessage,
        command=text,
        output=text,
        exit_code=st.none() | st.integers(0, 255),
        cancelled=st.booleans(),
        truncated=st.booleans(),
        full_output_path=maybe,
    ),
    st.builds(CompactionSummaryMessage, summary=text, tokens_before=st.integers(0)),
    st.builds(BranchSummaryMessage, summary=text, from_id=text),
)


@settings(max_examples=300, deadline=None)
@given(messages)
def test_every_message_comes_back_from_json_as_it_went(message: Any) -> None:
    line = to_json(message)
    assert line.isascii()
    assert "\n" not in line
    assert message_from_json(line) == message


@given(st.lists(messages, max_size=5))
def test_a_transcript_comes_back_too(transcript: list[Any]) -> None:
    assert messages_from_json(to_json(transcript)) == transcript


@given(usages, usages)
def test_usage_adds_up(a: Usage, b: Usage) -> None:
    total = a + b
    assert total.total_tokens == a.total_tokens + b.total_tokens
    assert total.cost.total == pytest.approx(a.cost.total + b.cost.total)
    assert Usage.model_validate(json.loads(to_json(total))) == total


def test_usage_is_priced_in_dollars_per_million_tokens() -> None:
    prices = ModelCost(input=3, output=15, cache_read=0.3, cache_write=3.75)
    usage = Usage(input=1000, output=2000, cache_read=10_000, cache_write=100).priced(prices)
    assert usage.cost.input == pytest.approx(0.003)
    assert usage.cost.total == pytest.approx(0.003 + 0.03 + 0.003 + 0.000375)


def test_messages_are_frozen() -> None:
    message = UserMessage(content="hi")
    with pytest.raises(ValidationError):
        message.content = ()  # type: ignore[misc]
    with pytest.raises(ValidationError, match="extra"):
        UserMessage(content="hi", colour="red")  # type: ignore[call-arg]


def test_text_stands_for_one_text_block() -> None:
    assert UserMessage(content="hi").content == (TextContent(text="hi"),)
    assert ToolResult(content=["a", ImageContent(data="", mime_type="image/png")]).text == "a"


def test_an_unknown_role_is_named() -> None:
    with pytest.raises(ValueError, match="'sheep' is not a message kind"):
        message_from_json('{"role": "sheep"}')


def test_a_models_headers_stay_out_of_its_repr() -> None:
    model = Model(id="m", api="openai_chat", provider="p", headers={"x-key": "secret"})
    assert "secret" not in repr(model)


class Reminder(CustomMessage):
    role: Literal["reminder"] = "reminder"
    about: str


class Secret(CustomMessage):
    role: Literal["secret"] = "secret"
    code: int


@convert_to_llm_message.register
def _(message: Reminder) -> UserMessage:
    return UserMessage(content=f"Remember: {message.about}", timestamp=message.timestamp)


def test_custom_messages_are_dropped_unless_their_kind_is_registered() -> None:
    shown = convert_to_llm([UserMessage(content="hi"), Reminder(about="the milk"), Secret(code=7)])
    assert [message.text for message in shown] == ["hi", "Remember: the milk"]
    assert message_from_json(to_json(Secret(code=7))) == Secret(code=7)


def test_what_is_no_message_is_refused_with_the_way_out() -> None:
    with pytest.raises(TypeError, match="derive it from CustomMessage"):
        convert_to_llm_message("hi")  # type: ignore[arg-type]


def test_a_role_of_the_runtimes_own_cannot_be_taken() -> None:
    with pytest.raises(TypeError, match="'user' is a role of the runtime's own"):

        class Mine(CustomMessage):
            role: Literal["user"] = "user"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"output": "a\n", "exit_code": 0}, "Ran `ls`\n```\na\n```"),
        ({"exit_code": 0}, "Ran `ls`\n(no output)"),
        ({"output": "x", "exit_code": 2}, "Ran `ls`\n```\nx\n```\nCommand exited with code 2"),
        ({"output": "x", "cancelled": True}, "Ran `ls`\n```\nx\n```\n(command cancelled)"),
        (
            {"output": "x", "exit_code": 0, "truncated": True, "full_output_path": "/tmp/out"},
            "Ran `ls`\n```\nx\n```\n(output truncated. The full output is in /tmp/out.)",
        ),
        ({"output": "```", "exit_code": 0}, "Ran `ls`\n````\n```\n````"),
    ],
)
def test_a_shell_command_is_shown_with_all_that_matters(fields: dict[str, Any], expected: str) -> None:
    message = BashExecutionMessage(command="ls", **fields)
    assert bash_execution_to_text(message) == expected
    shown = convert_to_llm_message(message)
    assert isinstance(shown, UserMessage)
    assert shown.text == expected


def test_a_shell_command_may_be_kept_from_the_model() -> None:
    assert convert_to_llm_message(BashExecutionMessage(command="ls", exclude_from_context=True)) is None


def test_summaries_say_what_they_are() -> None:
    compacted = convert_to_llm_message(CompactionSummaryMessage(summary="they talked"))
    branched = convert_to_llm_message(BranchSummaryMessage(summary="they tried"))
    assert isinstance(compacted, UserMessage)
    assert isinstance(branched, UserMessage)
    assert "compacted" in compacted.text
    assert "<summary>\nthey talked\n</summary>" in compacted.text
    assert "branch" in branched.text


@given(st.lists(st.tuples(st.integers(0, 5), st.lists(st.integers(), max_size=3)), max_size=20))
def test_sequences_that_share_storage_never_change_each_other(growth: list[tuple[int, list[int]]]) -> None:
    kept = [(AppendOnly[int](), [])]
    for source, more in growth:
        sequence, copy = kept[source % len(kept)]
        kept.append((sequence.plus(*more), copy + more))
    for sequence, copy in kept:
        assert list(sequence) == copy
        assert sequence == copy
        assert sequence[1:3] == tuple(copy[1:3])
