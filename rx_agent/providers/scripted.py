"""A provider that plays given responses: for tests, notebooks and demos. No network, no clock of its own.

Delays run on the scheduler that the stream is subscribed with, so a script plays in virtual time as well as on
asyncio.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import pydantic_core
import reactivex
from reactivex import Observable, abc
from reactivex import operators as ops

from rx_agent.errors import ConfigurationError
from rx_agent.events import AssistantMessageEvent
from rx_agent.message_builder import MessageBuilder
from rx_agent.messages import AssistantMessage, StopReason, TextContent, ThinkingContent, ToolCall
from rx_agent.models import Model, Usage
from rx_agent.providers.base import Context, StreamOptions
from rx_agent.sequencing import IMMEDIATE, emit, now_ms, pause, sequence

SCRIPTED_MODEL = Model(id="scripted", name="Scripted", api="scripted", provider="scripted")


@dataclass(frozen=True, slots=True)
class Say:
    """A text block, one delta per chunk."""

    chunks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Think:
    """A thinking block, one delta per chunk."""

    chunks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. ``chunks`` is its arguments' JSON text in pieces; None makes it one piece."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str | None = None
    chunks: tuple[str, ...] | None = None


def say(*chunks: str) -> Say:
    """Text that arrives in these chunks: ``say("hel", "lo")``."""
    return Say(chunks)


def think(*chunks: str) -> Think:
    """Thinking that arrives in these chunks."""
    return Think(chunks)


def call(name: str, /, **arguments: Any) -> Call:
    """A tool call with these arguments and an id of its own: ``call("add", a=1, b=2)``."""
    return Call(name, arguments)


Piece: TypeAlias = str | Say | Think | Call | TextContent | ThinkingContent | ToolCall


@dataclass(frozen=True, slots=True)
class Response:
    """One answer with its timing.

    ``delay``: seconds before ``start``; ``every``: seconds before each delta. ``stop_reason`` where None:
    ``tool_use`` if there is a call, else ``stop``. ``error_message`` ends it with an ``error`` event, and
    without any ``start`` if ``fails_before_start``.

    >>> Response([think("hm"), "two and two is ", call("add", a=2, b=2)], delay=0.5, every=0.05).every
    0.05
    """

    content: Iterable[Piece] = ()
    delay: float = 0.0
    every: float = 0.0
    stop_reason: StopReason | None = None
    usage: Usage | None = None
    error_message: str | None = None
    fails_before_start: bool = False


@dataclass(frozen=True, slots=True)
class MarbleResponse:
    """One answer drawn as marbles: ``marbles("--a-b-(c,|)", {"a": "hel", "b": "lo", "c": call("add", a=1)})``.

    Each marble is a piece, looked up in ``pieces`` (a marble without an entry is its own text); ``-`` is
    ``step`` seconds; ``|`` is the end, ``#`` a failure. See ``reactivex.from_marbles``.
    """

    diagram: str
    pieces: Mapping[str, Piece]
    step: float
    usage: Usage | None = None


def marbles(diagram: str, pieces: Mapping[str, Piece] | None = None, *, step: float = 1.0) -> MarbleResponse:
    """A response as a marble diagram; see :class:`MarbleResponse`."""
    return MarbleResponse(diagram, dict(pieces or {}), step)


Scriptable: TypeAlias = Piece | Iterable[Piece] | Response | MarbleResponse | AssistantMessage
ScriptFunction: TypeAlias = Callable[[Context], Scriptable]


class ScriptedProvider:
    """A :class:`~rx_agent.providers.base.StreamFunction` that gives its responses in order.

    ``requests`` holds what was asked, in order, for looking at afterwards.
    """

    model = SCRIPTED_MODEL

    def __init__(self, responses: Iterable[Scriptable | ScriptFunction] | ScriptFunction) -> None:
        self._by_function = responses if callable(responses) else None
        self._responses = [] if callable(responses) else list(_checked(responses))
        self.requests: list[tuple[Model, Context, StreamOptions]] = []
        self._ids = itertools.count(1)

    def __call__(
        self, model: Model, context: Context, options: StreamOptions, /
    ) -> Observable[AssistantMessageEvent]:
        def start(scheduler: abc.SchedulerBase) -> Observable[AssistantMessageEvent]:
            place = len(self.requests)
            self.requests.append((model, context, options))
            builder = MessageBuilder(model, timestamp=now_ms(scheduler))
            if self._by_function is None and place >= len(self._responses):
                return emit(
                    builder.error(
                        f"The script has {len(self._responses)} responses, and this is request {place + 1}: "
                        "add one, or script with a function of the context"
                    )
                )
            scripted_ = self._by_function or self._responses[place]
            if callable(scripted_):
                scripted_ = scripted_(context)
            return self._play(scripted_, builder)

        return reactivex.defer(start)

    def _play(self, response: Scriptable, builder: MessageBuilder) -> Observable[AssistantMessageEvent]:
        if isinstance(response, MarbleResponse):
            return self._play_marbles(response, builder)
        if isinstance(response, AssistantMessage):
            response = Response(
                response.content,
                stop_reason=response.stop_reason,
                usage=response.usage,
                error_message=response.error_message,
            )
        elif not isinstance(response, Response):
            response = Response([response] if isinstance(response, Piece) else response)
        return timed(self._plan(response, builder))

    def _plan(
        self, response: Response, builder: MessageBuilder
    ) -> Iterator[tuple[float, Callable[[], AssistantMessageEvent]]]:
        """Seconds to wait, and then the event to make."""
        wait = response.delay
        if response.error_message is not None and response.fails_before_start:
            yield wait, lambda: self._ended(response, builder)
            return
        yield wait, builder.start
        for piece in response.content:
            yield from self._block(as_block(piece), response.every, builder)
        yield 0.0, lambda: self._ended(response, builder)

    def _block(
        self, block: Say | Think | Call, every: float, builder: MessageBuilder
    ) -> Iterator[tuple[float, Callable[[], AssistantMessageEvent]]]:
        index = builder.next_index
        if isinstance(block, Say):
            yield 0.0, builder.text_start
            for chunk in block.chunks:
                yield every, lambda chunk=chunk: builder.text_delta(index, chunk)
            yield 0.0, lambda: builder.text_end(index)
        elif isinstance(block, Think):
            yield 0.0, builder.thinking_start
            for chunk in block.chunks:
                yield every, lambda chunk=chunk: builder.thinking_delta(index, chunk)
            yield 0.0, lambda: builder.thinking_end(index)
        else:
            yield 0.0, lambda: builder.tool_call_start(self._id(block), block.name)
            for chunk in argument_chunks(block):
                yield every, lambda chunk=chunk: builder.tool_call_delta(index, chunk)
            yield 0.0, lambda: builder.tool_call_end(index)

    def _id(self, block: Call) -> str:
        return block.id or f"call_{next(self._ids)}"

    def _ended(self, response: Response, builder: MessageBuilder) -> AssistantMessageEvent:
        usage = response.usage or Usage()
        if response.error_message is not None:
            stop: StopReason = "aborted" if response.stop_reason == "aborted" else "error"
            return builder.error(response.error_message, stop_reason=stop, usage=usage)
        return _done(builder, response.stop_reason, usage)

    def _play_marbles(
        self, response: MarbleResponse, builder: MessageBuilder
    ) -> Observable[AssistantMessageEvent]:
        def start() -> Iterator[Observable[AssistantMessageEvent]]:
            yield emit(builder.start())
            pieces: Observable[Any] = reactivex.from_marbles(
                response.diagram, timespan=response.step, lookup=cast(Any, response.pieces)
            )
            yield pieces.pipe(
                ops.flat_map(lambda piece: emit(*self._grow(builder, as_block(piece)))),
                ops.catch(lambda error, _: emit(*builder.end_open_blocks(), builder.error(str(error)))),
            )
            if not failed:
                yield emit(*builder.end_open_blocks(), _done(builder, None, response.usage or Usage()))

        failed = "#" in response.diagram
        return sequence(start)

    def _grow(self, builder: MessageBuilder, block: Say | Think | Call) -> Iterator[AssistantMessageEvent]:
        """One marble: it goes on with the open block if that is of its kind, else opens one."""
        open_ = builder.open_indexes()
        kind = builder.kind_of(open_[0]) if open_ else None
        if isinstance(block, Call) or kind != ("text" if isinstance(block, Say) else "thinking"):
            yield from builder.end_open_blocks()
            open_ = ()
        if isinstance(block, Call):
            started = builder.tool_call_start(self._id(block), block.name)
            yield started
            for chunk in argument_chunks(block):
                yield builder.tool_call_delta(started.content_index, chunk)
            yield builder.tool_call_end(started.content_index)
        elif isinstance(block, Say):
            if not open_:
                yield builder.text_start()
            for chunk in block.chunks:
                yield builder.text_delta(builder.open_indexes()[0], chunk)
        else:
            if not open_:
                yield builder.thinking_start()
            for chunk in block.chunks:
                yield builder.thinking_delta(builder.open_indexes()[0], chunk)


def _checked(responses: Any) -> Iterator[Scriptable | ScriptFunction]:
    """The responses; what cannot be one is refused here, where it was written, rather than when it is asked for."""
    if isinstance(responses, str | Say | Think | Call | Response | MarbleResponse | AssistantMessage):
        raise ConfigurationError(f"scripted({responses!r:.80}): give a list, with one item for each answer")
    try:
        items = iter(responses)
    except TypeError as error:
        raise ConfigurationError(
            f"scripted({responses!r:.80}): give a list of answers, or a function"
        ) from error
    for item in items:
        if not (callable(item) or isinstance(item, Response | MarbleResponse | AssistantMessage | Iterable)):
            as_block(item)
        elif isinstance(item, list | tuple):
            for piece in cast("list[Any]", item):
                as_block(piece)
        yield cast(Any, item)


def _done(builder: MessageBuilder, stop_reason: StopReason | None, usage: Usage) -> AssistantMessageEvent:
    calls = any(isinstance(block, ToolCall) for block in builder.blocks)
    return builder.done(stop_reason or ("tool_use" if calls else "stop"), usage=usage)


def argument_chunks(block: Call) -> tuple[str, ...]:
    """The call's arguments as they arrive: its chunks, or compact JSON in one piece."""
    if block.chunks is not None:
        return block.chunks
    # Escaped JSON, as pydantic's writer takes no lone surrogate (a file name that is not UTF-8 has some).
    return (
        json.dumps(dict(block.arguments), default=pydantic_core.to_jsonable_python, separators=(",", ":")),
    )


def as_block(piece: Any) -> Say | Think | Call:
    """``piece`` as the block it stands for. Raises ``ConfigurationError`` for what is none."""
    match piece:
        case Say() | Think() | Call():
            return piece
        case str():
            return Say((piece,))
        case TextContent():
            return Say((piece.text,))
        case ThinkingContent():
            return Think((piece.thinking,))
        case ToolCall():
            return Call(piece.name, piece.arguments, piece.id)
        case _:
            raise ConfigurationError(
                f"response piece: {piece!r:.80} ({type(piece).__name__}) is no str, say(...), think(...), "
                "call(...), TextContent, ThinkingContent or ToolCall"
            )


def timed(
    plan: Iterator[tuple[float, Callable[[], AssistantMessageEvent]]],
) -> Observable[AssistantMessageEvent]:
    """The planned events at their times; those of one instant in one go."""

    def steps() -> Iterator[Observable[AssistantMessageEvent]]:
        ahead = next(plan, None)
        while ahead is not None:
            wait, make = ahead
            if wait > 0:
                yield pause(wait)

            def now(make: Callable[[], AssistantMessageEvent] = make) -> Iterator[AssistantMessageEvent]:
                nonlocal ahead
                yield make()
                for wait, make in plan:
                    if wait > 0:
                        ahead = wait, make
                        return
                    yield make()
                ahead = None

            yield reactivex.from_iterable(now(), scheduler=IMMEDIATE)

    return sequence(steps)


def scripted(responses: Iterable[Scriptable | ScriptFunction] | ScriptFunction) -> ScriptedProvider:
    """A provider that gives ``responses`` in order, or what the function makes of each request's context.

    >>> provider = scripted([[call("add", a=2, b=2)], "four"])
    >>> echo = scripted(lambda context: context.messages[-1].text.upper())
    """
    return ScriptedProvider(responses)
