"""Whatever a transcript went through, what leaves for a provider is valid, and what is stored stays as it is."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

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
from rx_agent.providers.valid_transcript import MISSING_RESULT, valid_transcript


def calls(*ids: str, stop_reason: str = "tool_use", text: str = "") -> AssistantMessage:
    content = [TextContent(text=text)] if text else []
    return AssistantMessage(
        content=[*content, *(ToolCall(id=id, name="f") for id in ids)],
        stop_reason=stop_reason,  # type: ignore[arg-type]
    )


def result(id: str, text: str = "ok") -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=id, tool_name="f", content=text)


def user(text: str = "go") -> UserMessage:
    return UserMessage(content=text)


def test_a_valid_transcript_goes_out_as_the_same_objects():
    messages = [user(), calls("1", "2"), result("1"), result("2"), AssistantMessage(content="done")]
    out = valid_transcript(messages)
    assert [id(message) for message in out] == [id(message) for message in messages]


def test_failed_and_aborted_messages_are_left_out_with_the_results_of_their_calls():
    for reason in ("error", "aborted"):
        assert valid_transcript([user("a"), calls("1", stop_reason=reason), result("1"), user("b")]) == [
            user("a"),
            user("b"),
        ]


def test_a_missing_result_is_added_right_behind_its_message():
    first, second = calls("1", "2"), user("and?")
    out = valid_transcript([user(), first, result("2"), second])
    assert out[1] is first
    assert [(m.tool_call_id, m.is_error) for m in out if isinstance(m, ToolResultMessage)] == [
        ("1", True),
        ("2", False),
    ]
    assert out[2].content == (TextContent(text=MISSING_RESULT),)
    assert out[4] is second


def test_results_are_put_into_the_order_of_the_calls_and_before_what_was_said_meanwhile():
    asked, steered = calls("1", "2"), user("wait")
    assert valid_transcript([asked, result("2"), steered, result("1")]) == [
        asked,
        result("1"),
        result("2"),
        steered,
    ]


def test_results_of_no_call_and_second_results_are_left_out():
    asked = calls("1")
    assert valid_transcript([result("0"), asked, result("1", "a"), result("1", "b"), result("2")]) == [
        asked,
        result("1", "a"),
    ]


def test_ids_that_a_server_uses_again_belong_to_the_message_before():
    one, two = calls("0", text="one"), calls("0", text="two")
    messages = [one, result("0", "a"), two, result("0", "b")]
    numbered = [one, result("0", "a"), calls("0_2", text="two"), result("0_2", "b")]
    assert valid_transcript(messages) == numbered
    for once, again in zip(valid_transcript(messages), valid_transcript(messages), strict=True):
        assert once is again


def test_two_calls_of_one_id_in_one_message_get_a_result_each():
    asked = calls("1", "1")
    assert valid_transcript([asked, result("1", "a"), result("1", "b")]) == [
        calls("1", "1_2"),
        result("1", "a"),
        result("1_2", "b"),
    ]


def test_empty_text_is_dropped_and_so_is_a_message_that_is_empty_then():
    empty, image = TextContent(text=""), ImageContent(data="QQ==", mime_type="image/png")
    out = valid_transcript(
        [
            UserMessage(content=[empty]),
            UserMessage(content=[empty, image]),
            AssistantMessage(content=[empty]),
            AssistantMessage(content=()),
            AssistantMessage(content=[ThinkingContent(thinking=""), empty, ToolCall(id="1", name="f")]),
        ]
    )
    assert [m.role for m in out] == ["user", "assistant", "tool_result"]
    assert out[0].content == (image,)
    assert out[1].content == (ToolCall(id="1", name="f"),)


def test_an_empty_result_stays_for_its_call_needs_it():
    silent = ToolResultMessage(tool_call_id="1", tool_name="f")
    assert valid_transcript([calls("1"), silent])[1] is silent


def test_adjacent_user_messages_are_merged_where_the_api_wants_it():
    messages = [user("a"), AssistantMessage(stop_reason="aborted", content="x"), user("b"), user("c")]
    assert [m.role for m in valid_transcript(messages)] == ["user"] * 3
    (merged,) = valid_transcript(messages, merge_users=True)
    assert [block.text for block in merged.content if isinstance(block, TextContent)] == ["a", "b", "c"]


def test_surrogates_are_repaired_everywhere_and_only_in_the_copy():
    lone, pair = "a\ud83d!", "\ud83d\ude00"
    stored = [
        user(pair + lone),
        AssistantMessage(
            content=[
                ThinkingContent(thinking=lone),
                ToolCall(id="i\ud800", name="n\udfff", arguments={"k\ud800": [{"v": pair}]}),
            ],
            stop_reason="tool_use",
        ),
        ToolResultMessage(tool_call_id="i\ud800", tool_name="n\udfff", content=lone),
    ]
    before = [message.model_dump() for message in stored]
    asked, answered, got = valid_transcript(stored)
    assert asked.content == (TextContent(text="\U0001f600a\ufffd!"),)
    assert answered.content == (
        ThinkingContent(thinking="a\ufffd!"),
        ToolCall(id="i\ufffd", name="n\ufffd", arguments={"k\ufffd": [{"v": "\U0001f600"}]}),
    )
    assert isinstance(got, ToolResultMessage)
    assert (got.tool_call_id, got.tool_name, got.content) == (
        "i\ufffd",
        "n\ufffd",
        (TextContent(text="a\ufffd!"),),
    )
    assert [message.model_dump() for message in stored] == before


# --- for any transcript ------------------------------------------------------------------------------------

IDS = st.sampled_from("123")
TEXTS = st.text(st.characters(blacklist_categories=()), max_size=4)
BLOCKS = (
    TEXTS.map(lambda text: TextContent(text=text))
    | TEXTS.map(lambda text: ThinkingContent(thinking=text))
    | st.builds(ToolCall, id=IDS, name=TEXTS, arguments=st.dictionaries(TEXTS, TEXTS, max_size=2))
)
MESSAGES = st.lists(
    st.builds(UserMessage, content=st.lists(TEXTS, max_size=2).map(tuple))
    | st.builds(
        AssistantMessage,
        content=st.lists(BLOCKS, max_size=4).map(tuple),
        stop_reason=st.sampled_from(["stop", "tool_use", "error", "aborted", "length"]),
    )
    | st.builds(ToolResultMessage, tool_call_id=IDS, tool_name=TEXTS, content=TEXTS),
    max_size=12,
)


def complaints(messages: Sequence[Message], *, merged: bool) -> list[str]:
    """What a strict provider would object to."""
    found: list[str] = []
    waiting: list[str] = []
    for previous, message in zip([None, *messages], messages, strict=False):
        message.model_dump_json().encode()
        if isinstance(message, ToolResultMessage):
            if not waiting or waiting.pop(0) != message.tool_call_id:
                found.append("a result that does not answer the next call")
            continue
        if waiting:
            found.append("a call without its result")
        if not message.content:
            found.append("an empty message")
        if any(isinstance(block, TextContent) and not block.text for block in message.content):
            found.append("an empty block")
        if isinstance(message, AssistantMessage):
            if message.stop_reason in ("error", "aborted"):
                found.append("a failed message")
            waiting = [call.id for call in message.tool_calls]
        elif merged and isinstance(previous, UserMessage):
            found.append("two user messages in a row")
    return found + ["a call without its result"] * bool(waiting)


@settings(max_examples=400)
@given(MESSAGES, st.booleans())
def test_any_transcript_comes_out_valid_and_stays_so(messages: list[Message], merge: bool):
    before = [message.model_dump() for message in messages]
    out = valid_transcript(messages, merge_users=merge)
    assert complaints(out, merged=merge) == []
    assert valid_transcript(out, merge_users=merge) == out
    assert [message.model_dump() for message in messages] == before


@given(MESSAGES)
def test_nothing_that_was_said_is_lost(messages: list[Message]):
    said = [message for message in messages if isinstance(message, UserMessage) and message.text]
    out = [message for message in valid_transcript(messages) if isinstance(message, UserMessage)]
    assert len(said) == len(out)
