"""Stand-ins for models and tools: played from marbles, data or functions, and open to inspection afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

import reactivex
from reactivex import Observable, abc
from reactivex import operators as ops

from rx_agent.errors import ConfigurationError
from rx_agent.events import AssistantMessageEvent
from rx_agent.message_builder import MessageBuilder
from rx_agent.messages import AssistantMessage, ErrorKind, ImageContent, TextContent, ToolResult
from rx_agent.models import Model, Usage
from rx_agent.providers.base import Context, StreamOptions
from rx_agent.providers.http_errors import Failure
from rx_agent.providers.retry import BackOff, FinalFailure, RetryableFailure, retry_with
from rx_agent.providers.scripted import Piece, Scriptable, ScriptedProvider, ScriptFunction, as_block
from rx_agent.sequencing import IMMEDIATE, emit, now_ms, pause, sequence
from rx_agent.testing.diagram import Diagram, DiagramError, Marble, read, seconds
from rx_agent.tools import Tool, ToolContext, ToolEmission, ToolExecutionMode
from rx_agent.tools.decorator import tool_from_schema

FAKE_MODEL = Model(
    id="fake", name="Fake", api="fake", provider="fake", reasoning=True, input=("text", "image")
)


@dataclass(frozen=True, slots=True)
class Error:
    """A failure, as a legend's meaning of a symbol.

    Of a model: ``retry`` (before anything has come) says that the runtime may ask again, after ``retry_after``
    seconds (or "30 s") if given. Of a tool: what it raises.
    """

    message: str = "it failed"
    kind: ErrorKind | None = None
    retry: bool = False
    retry_after: str | float | None = None


def error(
    message: str = "it failed",
    *,
    kind: ErrorKind | None = None,
    retry: bool = False,
    retry_after: str | float | None = None,
) -> Error:
    """A failure for a legend: ``marbles.legend(x=error("Overloaded", retry=True, retry_after="30 s"))``."""
    return Error(message, kind, retry or retry_after is not None, retry_after)


Meaning: TypeAlias = Piece | Error | AssistantMessage | ToolResult | ImageContent | Any
"""What a symbol may stand for."""
Legend: TypeAlias = Mapping[str, Meaning]


@dataclass(frozen=True, slots=True)
class DiagramResponse:
    """A model's response as marbles."""

    diagram: Diagram
    legend: Legend
    usage: Usage | None = None


class FakeRequest(NamedTuple):
    """What a model was asked, and when (milliseconds of virtual time)."""

    time: int
    model: Model
    context: Context
    options: StreamOptions

    @property
    def text(self) -> str:
        """The text of the last message."""
        return self.context.messages[-1].text if self.context.messages else ""


class FakeModel(ScriptedProvider):
    """A model that plays what it is given and remembers what it was asked.

    ``responses``: a marble diagram each (a ``str``; symbols are looked up in ``legend``, and stand for their own
    text where it lacks them), or data as :func:`~rx_agent.providers.scripted.scripted` takes it; or one function of
    the context that gives either. ``tick`` is what a character of a diagram lasts ("100 ms", or seconds). A diagram
    without an end never ends.

    >>> fake = FakeModel(["-a-b|"], legend={"a": "Hel", "b": "lo"})
    >>> fake.requests
    []
    """

    model = FAKE_MODEL

    def __init__(
        self,
        responses: Sequence[Scriptable | DiagramResponse | ScriptFunction] | ScriptFunction = (),
        *,
        legend: Legend | None = None,
        tick: str | float = 1.0,
        jitter: Callable[[], float] = lambda: 0.0,
    ) -> None:
        super().__init__(cast(Any, responses))
        self.legend: dict[str, Meaning] = dict(legend or {})
        self.tick = seconds(tick)
        self.asked: list[FakeRequest] = []
        """The requests with their times."""
        self.on_request: Callable[[FakeRequest], None] | None = None
        """Told each request as it is made."""
        self._jitter = jitter

    def add(self, *responses: Any) -> None:
        """Further responses, behind those there are."""
        self._responses.extend(responses)

    def __call__(
        self, model: Model, context: Context, options: StreamOptions, /
    ) -> Observable[AssistantMessageEvent]:
        once = super().__call__(model, context, options)

        def note(scheduler: abc.SchedulerBase) -> Observable[AssistantMessageEvent]:
            request = FakeRequest(now_ms(scheduler), model, context, options)
            self.asked.append(request)
            if self.on_request is not None:
                self.on_request(request)
            return once

        back_off = BackOff(
            max_retries=options.max_retries, max_delay_ms=options.max_retry_delay_ms, jitter=self._jitter
        )

        def give_up(reason: Exception, _: Any) -> Observable[AssistantMessageEvent]:
            if not isinstance(reason, FinalFailure):
                return reactivex.throw(reason, scheduler=IMMEDIATE)
            failure = reason.failure
            return emit(MessageBuilder(model).error(failure.text, kind=failure.kind))

        return reactivex.defer(note).pipe(retry_with(back_off), ops.catch(give_up))

    def _play(
        self, response: Scriptable | DiagramResponse, builder: MessageBuilder
    ) -> Observable[AssistantMessageEvent]:
        if isinstance(response, str):
            response = DiagramResponse(read(response, tick=self.tick), self.legend)
        if isinstance(response, DiagramResponse):
            return self._play_diagram(response, builder)
        return super()._play(response, builder)

    def _play_diagram(
        self, response: DiagramResponse, builder: MessageBuilder
    ) -> Observable[AssistantMessageEvent]:
        legend, usage = response.legend, response.usage or Usage()
        started = False

        def events(marble: Marble) -> Iterator[AssistantMessageEvent]:
            nonlocal started
            meaning = legend.get(marble.symbol, error() if marble.symbol == "#" else marble.symbol)
            if isinstance(meaning, Error) and meaning.retry and not started:
                after = None if meaning.retry_after is None else seconds(meaning.retry_after)
                raise RetryableFailure(Failure(meaning.message, meaning.kind or "unknown", True, after))
            if not started:
                started = True
                yield builder.start()
            match meaning:
                case "^":
                    pass
                case "|":
                    yield from builder.end_open_blocks()
                    yield self._done(builder, usage)
                case Error():
                    yield builder.error(meaning.message, kind=meaning.kind, usage=usage)
                case AssistantMessage():
                    for block in meaning.content:
                        yield from self._grow(builder, as_block(block))
                    yield from builder.end_open_blocks()
                    yield from self._ending(builder, meaning)
                case _:
                    yield from self._grow(builder, as_block(meaning))

        return played(response.diagram, events)

    def _ending(self, builder: MessageBuilder, message: AssistantMessage) -> Iterator[AssistantMessageEvent]:
        if message.stop_reason in ("error", "aborted"):
            yield builder.error(
                message.error_message or "it failed", kind=message.error_kind, stop_reason=message.stop_reason
            )
        else:
            yield builder.done(message.stop_reason or "stop", usage=message.usage)

    def _done(self, builder: MessageBuilder, usage: Usage) -> AssistantMessageEvent:
        called = any(block.type == "tool_call" for block in builder.blocks)
        return builder.done("tool_use" if called else "stop", usage=usage)


def played(diagram: Diagram, events: Callable[[Marble], Iterator[Any]]) -> Observable[Any]:
    """What ``events`` makes of each marble, at its time on the scheduler subscribed with.

    Completes after the diagram's ``|`` or ``#``, and never where it has neither (as in Rx).
    """

    def steps() -> Iterator[Observable[Any]]:
        now = 0.0
        for marble in diagram.marbles:
            if marble.time > now:
                yield pause(marble.time - now)
                now = marble.time
            yield emit(*events(marble))
        if not diagram.ended:
            yield reactivex.never()

    return sequence(steps)


# --- tools -------------------------------------------------------------------------------------------------


class FakeCall(NamedTuple):
    """One call of a tool: when it began (milliseconds of virtual time), its id and its arguments."""

    time: int
    id: str
    arguments: dict[str, Any]


class FakeTool(Tool):
    """A tool that plays marbles or runs a function, and remembers how it was called.

    ``plays``: a diagram for each call, the last one for all further ones. Its last value is the result, those before
    it are partial results, ``#`` or an :func:`error` of the legend makes it raise. Or a function of the arguments
    (a ``dict``), of any kind that a tool may be. Any arguments are taken unless ``parameters`` (a JSON schema) says
    otherwise.

    >>> search = FakeTool("search", "--p--(r|)", legend={"p": "half way", "r": "3 hits"})
    >>> search.name, search.calls
    ('search', [])
    """

    calls: list[FakeCall]

    def __init__(
        self,
        name: str,
        *plays: str | Callable[..., Any],
        legend: Legend | None = None,
        tick: str | float = 1.0,
        description: str = "",
        parameters: Mapping[str, Any] | None = None,
        execution_mode: ToolExecutionMode | str | None = None,
        timeout: str | float | None = None,
    ) -> None:
        calls: list[FakeCall] = []
        meanings = dict(legend or {})
        if not plays:
            raise ConfigurationError(f"tool {name!r}: give it a diagram or a function to play")

        def body(arguments: dict[str, Any], context: ToolContext) -> Any:
            play = plays[min(len(calls), len(plays)) - 1]
            if callable(play):
                return play(arguments)
            return values(read(play, tick=seconds(tick)), meanings)

        made = tool_from_schema(
            name,
            description or f"The tool {name}.",
            parameters or {"type": "object"},
            body,
            execution_mode=cast(Any, execution_mode),
            timeout=None if timeout is None else seconds(timeout),
        )

        def noting(args: dict[str, Any], context: ToolContext[Any]) -> Observable[ToolEmission]:
            def note(scheduler: abc.SchedulerBase) -> Observable[ToolEmission]:
                calls.append(FakeCall(now_ms(scheduler), context.tool_call_id, args))
                return made.body(args, context)

            return reactivex.defer(note)

        super().__init__(
            name=made.name,
            description=made.description,
            parameters=made.parameters,
            execution_mode=made.execution_mode,
            timeout=made.timeout,
            check=made.check,
            body=noting,
        )
        object.__setattr__(self, "calls", calls)


def values(diagram: Diagram, legend: Legend) -> Observable[Any]:
    """A tool's diagram as what its body emits: partial results, then a ``ToolResult`` or an error."""
    said = [marble for marble in diagram.marbles if marble.symbol not in "|#^"]
    if diagram.ended and not said and not any(marble.symbol == "#" for marble in diagram.marbles):
        raise DiagramError("a tool's diagram that ends needs a result before its '|', as in '--(r|)'")
    fails = any(marble.symbol == "#" for marble in diagram.marbles)
    last = said[-1] if said and diagram.ended and not fails else None

    def items(marble: Marble) -> Iterator[Any]:
        meaning = legend.get(marble.symbol, error() if marble.symbol == "#" else marble.symbol)
        if isinstance(meaning, Error):
            raise ToolFailedError(meaning.message)
        if marble.symbol in "|^":
            return
        if marble is last and not isinstance(meaning, ToolResult):
            meaning = ToolResult(
                content=meaning if isinstance(meaning, TextContent | ImageContent) else str(meaning)
            )
        yield meaning

    return played(diagram, items)


class ToolFailedError(Exception):
    """What a fake tool raises where its diagram says so."""
