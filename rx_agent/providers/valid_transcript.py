"""Makes a transcript valid for a provider before it leaves. The stored transcript is never touched.

What every API demands: each tool call is answered by exactly one result, right behind the message that
called, in source order; no answer without its call; no empty block; text that is valid Unicode. Runs that
were aborted, broke off or were edited by hand leave transcripts that are none of this.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from rx_agent.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from rx_agent.providers.wire_json import IdentityCache, repaired
from rx_agent.surrogates import repaired_text

MISSING_RESULT = (
    "No result: the tool call was interrupted before it gave one. It may or may not have had effects."
)

B = TypeVar("B")


class _Asked:
    """A message that goes out, and the results that answer its calls as they turn up."""

    __slots__ = ("message", "results")

    def __init__(self, message: Message, calls: int = 0) -> None:
        self.message = message
        self.results: list[ToolResultMessage | None] = [None] * calls


def valid_transcript(messages: Iterable[Message], *, merge_users: bool = False) -> list[Message]:
    """``messages`` as a provider accepts them, in O(n).

    - Assistant messages of stop reason ``error`` or ``aborted`` are left out, and so are the results of
      their calls.
    - Results move right behind the message that called, into the order of its calls. A result belongs to
      the nearest message before it that made a call of that id (some servers use ids again). A second
      result to one call and a result to no call are left out; a call without a result gets an error result.
    - A call id that was used before gets a number behind it, in call and result: ids are unique. A result has
      the name of its call.
    - Empty text and thinking blocks are left out, and so are user and assistant messages that are empty then.
    - Lone surrogates become U+FFFD, split pairs are joined.
    - ``merge_users`` joins adjacent user messages, for APIs whose roles must alternate.

    Messages that need no repair are the same objects as before, so that what was cached for them still serves.

    >>> call = AssistantMessage(content=ToolCall(id="1", name="f"), stop_reason="tool_use")
    >>> [message.role for message in valid_transcript([UserMessage(content="hi"), call])]
    ['user', 'assistant', 'tool_result']
    """
    asked: list[_Asked] = []
    # For each call id, the places of the latest message that used it; None where that message is left out.
    places: dict[str, deque[tuple[_Asked, int]] | None] = {}
    for message in messages:
        clean = _clean(message)
        if isinstance(clean, ToolResultMessage):
            free = places.get(clean.tool_call_id)
            if free:
                owner, position = free.popleft()
                owner.results[position] = clean
        elif isinstance(clean, AssistantMessage):
            calls = clean.tool_calls
            if clean.stop_reason in ("error", "aborted"):
                places.update(dict.fromkeys((call.id for call in calls), None))
            elif clean.content:
                owner = _Asked(clean, len(calls))
                places.update((call.id, deque()) for call in calls)
                for position, call in enumerate(calls):
                    waiting = places[call.id]
                    if waiting is not None:
                        waiting.append((owner, position))
                asked.append(owner)
        elif clean.content:
            previous = asked[-1].message if merge_users and asked else None
            if isinstance(previous, UserMessage):
                merged = previous.model_copy(update={"content": previous.content + clean.content})
                asked[-1] = _Asked(merged)
            else:
                asked.append(_Asked(clean))
    taken: set[str] = set()
    return [message for owner in asked for message in _with_results(owner, taken)]


def _with_results(owner: _Asked, taken: set[str]) -> Sequence[Message]:
    message = owner.message
    if not isinstance(message, AssistantMessage) or not owner.results:
        return (message,)
    ids = tuple(_free_id(call.id, taken) for call in message.tool_calls)
    message = _numbered(message, ids)
    return (
        message,
        *(
            _answering(result, call) if result else missing_result(call, message.timestamp)
            for call, result in zip(message.tool_calls, owner.results, strict=True)
        ),
    )


def _free_id(id: str, taken: set[str]) -> str:
    free, number = id, 1
    while free in taken:
        number += 1
        free = f"{id}_{number}"
    taken.add(free)
    return free


_NUMBERED: IdentityCache[Any] = IdentityCache()
"""Messages whose ids were used before, by their new ids."""


def _numbered(message: AssistantMessage, ids: tuple[str, ...]) -> AssistantMessage:
    if all(call.id == id for call, id in zip(message.tool_calls, ids, strict=True)):
        return message

    def make() -> AssistantMessage:
        free = iter(ids)
        content = tuple(
            block.model_copy(update={"id": next(free)}) if isinstance(block, ToolCall) else block
            for block in message.content
        )
        return message.model_copy(update={"content": content})

    return _NUMBERED.get(message, ids, make)


def _answering(result: ToolResultMessage, call: ToolCall) -> ToolResultMessage:
    answers = {"tool_call_id": call.id, "tool_name": call.name}
    if (result.tool_call_id, result.tool_name) == (call.id, call.name):
        return result
    return _NUMBERED.get(result, (call.id, call.name), lambda: result.model_copy(update=answers))


def missing_result(call: ToolCall, timestamp: int = 0) -> ToolResultMessage:
    """The error result that stands in for one that never came."""
    return ToolResultMessage(
        tool_call_id=call.id,
        tool_name=call.name,
        content=(TextContent(text=MISSING_RESULT),),
        is_error=True,
        timestamp=timestamp,
    )


_REPAIRS: IdentityCache[Message | None] = IdentityCache()
"""The repaired message, or None where a message is fine as it is: each text is gone through once, not once
a turn.
"""


def _clean(message: Message) -> Message:
    return _REPAIRS.get(message, None, lambda: _repair(message)) or message


def _repair(message: Message) -> Message | None:
    """A valid copy of ``message``, or None where it is valid."""
    changes: dict[str, Any] = {}
    content = [_block(block) for block in message.content]
    if not isinstance(message, ToolResultMessage):
        content = [block for block in content if not _is_empty(block)]
    if len(content) != len(message.content) or any(
        new is not old for new, old in zip(content, message.content, strict=False)
    ):
        changes["content"] = tuple(content)
    if isinstance(message, ToolResultMessage):
        for name in ("tool_call_id", "tool_name"):
            value = getattr(message, name)
            if (valid := repaired_text(value)) is not value:
                changes[name] = valid
    return message.model_copy(update=changes) if changes else None


def _is_empty(block: object) -> bool:
    match block:
        case TextContent(text=""):
            return True
        case ThinkingContent(thinking="", signature=None):
            return True
        case _:
            return False


def _block(block: B) -> B:
    changes: dict[str, Any] = {}
    match block:
        case TextContent(text=text):
            changes = _changed(text=text)
        case ThinkingContent(thinking=text):
            changes = _changed(thinking=text)
        case ToolCall(id=id, name=name, arguments=arguments):
            changes = _changed(id=id, name=name)
            if (valid := repaired(arguments)) != arguments:
                changes["arguments"] = valid
        case _:
            pass
    return block.model_copy(update=changes) if changes else block  # type: ignore[attr-defined]


def _changed(**texts: str) -> dict[str, Any]:
    return {name: valid for name, text in texts.items() if (valid := repaired_text(text)) is not text}
