"""What the built-in offline model has to go by: the question that stands, and what tools have told since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rx_agent.cli.offline_questions import Question, narrowing, understand
from rx_agent.messages import AssistantMessage, Message, TextContent, ToolResultMessage, UserMessage
from rx_agent.providers.base import Context

NOTICE = (
    "Built-in offline model: rules, not an LLM. For a real one set OPENAI_API_KEY (or another provider's key), "
    "or use --model ollama:MODEL, or --base-url URL."
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The question, and all that came since. ``question`` is None where no rule fits what the user said.

    ``ignored`` are messages of the user's that no rule fits while another question stands; ``attached`` is text
    that came with the question.
    """

    asked: str
    question: Question | None
    ignored: tuple[str, ...]
    attached: str
    results: tuple[ToolResultMessage, ...]
    tools: frozenset[str]
    introduced: bool

    def told(self, tool: str) -> list[dict[str, Any]]:
        """The details of the tool's results that succeeded, in order."""
        details: list[Any] = [
            result.details for result in self.results if result.tool_name == tool and not result.is_error
        ]
        return [each for each in details if isinstance(each, dict)]

    def asked_for(self, tool: str) -> bool:
        """Whether the tool has been called, whatever came of it."""
        return any(result.tool_name == tool for result in self.results)

    @property
    def failures(self) -> list[str]:
        """What went wrong, a line each, the same thing once."""
        lines = (
            f"{result.tool_name}: {result.text.strip() or 'failed'}"
            for result in self.results
            if result.is_error
        )
        return list(dict.fromkeys(lines))


def evidence_of(context: Context) -> Evidence:
    """Reads the conversation: the last question that a rule fits, of those not answered so far."""
    messages = context.messages
    open_ = _unanswered(messages)
    understood = [
        (place, question) for place in open_ if (question := _understood(messages, place)) is not None
    ]
    place, question = understood[-1] if understood else (open_[-1] if open_ else len(messages), None)
    asked, attached = _texts(messages[place]) if place < len(messages) else ("", "")
    later = [_texts(messages[other])[0] for other in open_ if other > place]
    return Evidence(
        asked=asked,
        question=question,
        ignored=tuple(later),
        attached=attached,
        results=tuple(message for message in messages[place:] if isinstance(message, ToolResultMessage)),
        tools=frozenset(tool.name for tool in context.tools),
        introduced=any(
            isinstance(message, AssistantMessage) and NOTICE in message.text for message in messages
        ),
    )


def _unanswered(messages: Sequence[Message]) -> list[int]:
    """The places of the user's messages since the last answer; the last one's where all are answered.

    Several, where the user steered. An aborted or failed answer ends a question too: the user went on to
    another, unless nothing came behind it (the request is made again).
    """
    places: list[int] = []
    for place in range(len(messages) - 1, -1, -1):
        match messages[place]:
            case UserMessage():
                places.append(place)
            case AssistantMessage() as message if places and not message.tool_calls:
                break
            case AssistantMessage(stop_reason="error" | "aborted") if places:
                break
            case _:
                pass
    return places[::-1]


def _understood(messages: Sequence[Message], place: int) -> Question | None:
    text = _texts(messages[place])[0]
    pattern = narrowing(text)
    if pattern is not None:
        for earlier in range(place - 1, -1, -1):
            if isinstance(messages[earlier], UserMessage) and (
                before := understand(_texts(messages[earlier])[0])
            ):
                return replace(before, pattern=pattern)
    return understand(text)


def _texts(message: Message) -> tuple[str, str]:
    """The question, and the text blocks behind it, which hold what was attached."""
    blocks = [block.text for block in message.content if isinstance(block, TextContent)]
    return (blocks[0], "\n".join(blocks[1:])) if blocks else ("", "")
