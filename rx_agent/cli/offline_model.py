"""The built-in offline model: rules, no LLM, so that everything else can be seen at work without a key.

It is a :class:`~rx_agent.providers.base.StreamFunction` like any other: it streams word by word, really calls the
tools it is given, several at once, and writes its answer from their results. It never looks at the disk itself.
"""

from __future__ import annotations

import re
from dataclasses import replace

import reactivex
from reactivex import Observable

from rx_agent.cli.offline_evidence import evidence_of
from rx_agent.cli.offline_replies import Reply, reply_to
from rx_agent.events import AssistantMessageEvent
from rx_agent.messages import AssistantMessage, TextContent, ThinkingContent, ToolCall
from rx_agent.models import Model, Usage
from rx_agent.providers.base import Context, StreamOptions
from rx_agent.providers.scripted import Call, Response, Say, scripted

OFFLINE_MODEL = Model(id="offline", name="Built-in offline model (rules)", api="offline", provider="offline")

WORD_SECONDS = 0.008
"""The pause before each word."""
LONGEST_SECONDS = 0.8
"""What the pauses of one turn come to at most; a long answer streams faster."""
_CHARACTERS_PER_TOKEN = 4


class OfflineModel:
    """Answers from rules. Its delays run on the scheduler that its stream is subscribed with.

    >>> from rx_agent import Agent
    >>> agent = Agent(stream_function=OfflineModel(word_seconds=0))
    >>> agent.prompt("hello").text.startswith("Built-in offline model: rules, not an LLM.")
    True
    """

    model = OFFLINE_MODEL

    def __init__(self, *, word_seconds: float = WORD_SECONDS) -> None:
        self._word_seconds = word_seconds

    def __call__(
        self, model: Model, context: Context, options: StreamOptions, /
    ) -> Observable[AssistantMessageEvent]:
        """The events of one answer, cold."""
        return reactivex.defer(lambda _: scripted([self._response(context)])(model, context, options))

    def _response(self, context: Context) -> Response:
        try:
            reply = reply_to(evidence_of(context))
        except Exception as error:  # a provider's failure is an answer that says so, never an exception
            return Response(
                error_message=f"the offline model's rules failed: {type(error).__name__}: {error}"
            )
        words = tuple(re.findall(r"\s*\S+\s*", reply.text))
        return Response(
            [Say(words), *_numbered(reply, context)],
            every=min(self._word_seconds, LONGEST_SECONDS / max(1, len(words))),
            usage=Usage(input=_tokens_in(context), output=_tokens(len(reply.text) + 40 * len(reply.calls))),
        )


def _numbered(reply: Reply, context: Context) -> list[Call]:
    # A transcript only grows, so its length tells the calls of one turn from those of every other.
    turn = len(context.messages)
    return [replace(each, id=f"offline_{turn}_{number}") for number, each in enumerate(reply.calls, 1)]


def _tokens(characters: int) -> int:
    return -(-characters // _CHARACTERS_PER_TOKEN)


def _tokens_in(context: Context) -> int:
    characters = len(context.system_prompt)
    for message in context.messages:
        for block in message.content:
            match block:
                case TextContent():
                    characters += len(block.text)
                case ToolCall():
                    characters += len(block.name) + len(str(block.arguments))
                case ThinkingContent():
                    characters += len(block.thinking) if isinstance(message, AssistantMessage) else 0
                case _:
                    pass
    return _tokens(characters)


stream = OfflineModel()
"""Answers from rules, at a readable pace."""
