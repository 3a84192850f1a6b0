"""One assistant message's tool calls: all at once (merge) or one by one (concat)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import reactivex
from reactivex import Observable
from reactivex import operators as ops

from rx_agent.abort import AbortSignal
from rx_agent.asyncio_edge import TaskScope
from rx_agent.brackets import Brackets, CallProgress, TurnScope
from rx_agent.errors import ToolArgumentsError
from rx_agent.events import (
    AgentEvent,
    MessageEndEvent,
    MessageStartEvent,
    ToolExecutionEndEvent,
    ToolExecutionStartEvent,
    ToolExecutionUpdateEvent,
)
from rx_agent.hooks import (
    AfterToolCallContext,
    AfterToolCallResult,
    AgentContext,
    BeforeToolCallContext,
    BeforeToolCallResult,
    Hooks,
    call_hook,
    expect,
)
from rx_agent.messages import AssistantMessage, ToolCall, ToolResult
from rx_agent.reporting import as_exception, reason_of
from rx_agent.sequencing import IMMEDIATE, emit, sequence
from rx_agent.tools import Tool, ToolContext, ToolEmission, ToolExecutionMode

BLOCKED = "Tool execution was blocked"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one call ended."""

    result: ToolResult
    is_error: bool = False


def error_outcome(error: Exception | str, *, terminate: bool | None = None) -> Outcome:
    """An error result that shows the model what ``error`` says."""
    text = error if isinstance(error, str) else reason_of(error)
    return Outcome(ToolResult(content=text, terminate=terminate), is_error=True)


def one_by_one(message: AssistantMessage, tools: Sequence[Tool], mode: ToolExecutionMode) -> bool:
    """Whether the calls of ``message`` are worked off one after another: a single tool of mode ``sequential`` makes
    its whole batch so, and so are the refusals of an answer that was cut off by its length.
    """
    return (
        message.stop_reason == "length"
        or mode is ToolExecutionMode.SEQUENTIAL
        or any(
            tool.execution_mode is ToolExecutionMode.SEQUENTIAL
            for call in message.tool_calls
            if (tool := tool_named(call.name, tools)) is not None
        )
    )


def tool_named(name: str, tools: Sequence[Tool]) -> Tool | None:
    """The tool of that name, if there is one."""
    return next((tool for tool in tools if tool.name == name), None)


@dataclass(frozen=True, slots=True)
class ToolBatch:
    """The calls of ``message`` and all that working them off takes.

    ``open_`` is the run's fold: the batch marks there what no event tells, that a tool's body was entered. Once
    ``scope`` is cut, nothing further of it starts.
    """

    message: AssistantMessage
    context: AgentContext
    open_: Brackets
    scope: TurnScope
    hooks: Hooks
    max_concurrency: int | None
    signal: AbortSignal
    deps: Any
    tasks: TaskScope
    now: Callable[[], int]
    """The time in milliseconds since the epoch, for the result messages."""

    def events(self) -> Observable[AgentEvent]:
        """Start, update and end of every call and its result message.

        Calls are checked (validation, ``before_tool_call``) one after another in source order. In parallel, end
        events then come as tools finish, and the result messages last, in source order; one by one, each call is
        finished before the next is looked at. One tool of mode ``sequential`` makes its whole batch so.
        """
        if self.message.stop_reason == "length":
            return self._each(self._refuse_truncated)
        if self.open_.sequential:
            return self._each(self._one_call)
        return sequence(self._in_parallel, unless=self._cut)

    def terminates(self) -> bool:
        """Whether every result of the batch asks for the end of the run."""
        calls = self.open_.calls
        return bool(calls) and all(
            call.result is not None and call.result.terminate is True for call in calls
        )

    # --- orders --------------------------------------------------------------------------------------------

    def _each(
        self, work: Callable[[CallProgress], Iterator[Observable[AgentEvent]]]
    ) -> Observable[AgentEvent]:
        def steps() -> Iterator[Observable[AgentEvent]]:
            for progress in self.open_.calls:
                yield _start(progress)
                yield from work(progress)
                yield self._result_message(progress)

        return sequence(steps, unless=self._cut)

    def _in_parallel(self) -> Iterator[Observable[AgentEvent]]:
        executions: list[Observable[AgentEvent]] = []
        for progress in self.open_.calls:
            yield _start(progress)
            check = _Check(self, progress)
            yield from check.steps()
            if check.refused is not None:
                yield emit(_end(progress.call, check.refused))
            else:
                executions.append(self._execution(progress, check))
        yield self._merged(executions)
        for progress in self.open_.calls:
            yield self._result_message(progress)

    def _merged(self, executions: list[Observable[AgentEvent]]) -> Observable[AgentEvent]:
        if len(executions) < 2:
            return executions[0] if executions else emit()
        source = reactivex.from_iterable(executions, scheduler=IMMEDIATE)
        if self.max_concurrency is None:
            return source.pipe(ops.merge_all())
        return source.pipe(ops.merge(max_concurrent=self.max_concurrency))

    def _one_call(self, progress: CallProgress) -> Iterator[Observable[AgentEvent]]:
        check = _Check(self, progress)
        yield from check.steps()
        if check.refused is not None:
            yield emit(_end(progress.call, check.refused))
        else:
            yield self._execution(progress, check)

    def _refuse_truncated(self, progress: CallProgress) -> Iterator[Observable[AgentEvent]]:
        yield emit(
            _end(
                progress.call,
                error_outcome(
                    f'Tool call "{progress.call.name}" was not executed: the response hit the output token limit, '
                    "so its arguments may be incomplete. Call the tool again with complete arguments."
                ),
            )
        )

    def _cut(self) -> bool:
        return self.scope.cut

    def _result_message(self, progress: CallProgress) -> Observable[AgentEvent]:
        message = progress.result_message(self.now())
        return emit(MessageStartEvent(message), MessageEndEvent(message))

    # --- one execution -------------------------------------------------------------------------------------

    def _execution(self, progress: CallProgress, check: _Check) -> Observable[AgentEvent]:
        """The body's partial results, then its end after ``after_tool_call``."""
        call, args, tool = progress.call, check.args, check.tool

        def run(_: Any) -> Observable[ToolEmission]:
            if self.scope.cut or tool is None:
                return reactivex.empty(IMMEDIATE)
            progress.running = True
            context: ToolContext[Any] = ToolContext(
                tool_call_id=call.id,
                tool_name=call.name,
                signal=self.signal,
                deps=self.deps,
                tasks=self.tasks,
            )
            return tool.run(args, context)

        def failed(error: Exception, _: Any) -> Observable[Outcome]:
            return emit(error_outcome(error))

        def told(item: ToolEmission | Outcome) -> Observable[AgentEvent]:
            if isinstance(item, Outcome):
                return self._finalized(progress, args, item)
            if item.final:
                return self._finalized(progress, args, Outcome(item.result))
            return emit(ToolExecutionUpdateEvent(call.id, call.name, call.arguments, item.result))

        body: Observable[Any] = reactivex.defer(run)
        return body.pipe(ops.catch(failed), ops.flat_map(told))

    def _finalized(
        self, progress: CallProgress, args: dict[str, Any], outcome: Outcome
    ) -> Observable[AgentEvent]:
        progress.finished = True
        hook = self.hooks.after_tool_call
        if hook is None:
            return emit(_end(progress.call, outcome))
        shown = AfterToolCallContext(
            self.message, progress.call, args, self._context_now(), outcome.result, outcome.is_error
        )

        def overridden(answer: Any) -> AgentEvent:
            expect("after_tool_call", answer, AfterToolCallResult)
            return _end(progress.call, outcome if answer is None else _override(outcome, answer))

        def failed(error: Exception, _: Any) -> Observable[AgentEvent]:
            return emit(_end(progress.call, error_outcome(error)))

        return call_hook("after_tool_call", hook, shown, self.signal, tasks=self.tasks).pipe(
            ops.map(overridden), ops.catch(failed)
        )

    def _context_now(self) -> AgentContext:
        return AgentContext(
            self.context.system_prompt,
            self.open_.context,
            self.context.tools,
            self.context.model,
            self.context.thinking_level,
        )


class _Check:
    """What stands before an execution: is there such a tool, do the arguments fit, does the hook agree?"""

    def __init__(self, batch: ToolBatch, progress: CallProgress) -> None:
        self.batch = batch
        self.call = progress.call
        self.tool = tool_named(progress.call.name, batch.context.tools)
        self.args: dict[str, Any] = {}
        self.refused: Outcome | None = None

    def steps(self) -> Iterator[Observable[AgentEvent]]:
        """Yields only where the hook has to be waited for; afterwards ``refused`` or ``args`` is set."""
        if self.tool is None:
            self.refused = error_outcome(f"Tool {self.call.name} not found")
            return
        try:
            if self.call.invalid_arguments is not None:
                raise ToolArgumentsError(
                    f'The arguments of "{self.call.name}" are not a JSON object (or are nested deeper than 100 '
                    "levels). "
                    "Call it again with valid JSON. "
                    f"Received: {self.call.invalid_arguments[:2000]}"
                )
            self.args = self.tool.validated(self.call.arguments)
        except BaseException as error:
            self.refused = error_outcome(as_exception(error, f"the validation of {self.call.name}"))
            return
        hook = self.batch.hooks.before_tool_call
        if hook is None:
            return
        shown = BeforeToolCallContext(
            self.batch.message,
            self.call,
            self.args,
            self.batch._context_now(),  # pyright: ignore[reportPrivateUsage]
        )

        def decide(answer: Any) -> None:
            expect("before_tool_call", answer, BeforeToolCallResult)
            if answer is not None and answer.block:
                self.refused = error_outcome(answer.reason or BLOCKED, terminate=answer.terminate)

        def failed(error: Exception, _: Any) -> Observable[Any]:
            self.refused = error_outcome(error)
            return reactivex.empty(IMMEDIATE)

        yield call_hook("before_tool_call", hook, shown, self.batch.signal, tasks=self.batch.tasks).pipe(
            ops.do_action(decide), ops.catch(failed), ops.ignore_elements()
        )


def _override(outcome: Outcome, answer: AfterToolCallResult) -> Outcome:
    if not isinstance(cast(object, answer.is_error), bool | None):
        raise TypeError(
            f"after_tool_call: AfterToolCallResult.is_error is {answer.is_error!r:.80} "
            f"({type(answer.is_error).__name__}); give True, False, or None to leave it as it is"
        )
    fields = {
        name: value
        for name in ("content", "details", "usage", "terminate")
        if (value := getattr(answer, name)) is not None
    }
    result = ToolResult.model_validate(
        {
            "content": outcome.result.content,
            "details": outcome.result.details,
            "usage": outcome.result.usage,
            "terminate": outcome.result.terminate,
            **fields,
        }
    )
    return Outcome(result, outcome.is_error if answer.is_error is None else answer.is_error)


def _start(progress: CallProgress) -> Observable[AgentEvent]:
    call = progress.call
    return emit(ToolExecutionStartEvent(call.id, call.name, call.arguments))


def _end(call: ToolCall, outcome: Outcome) -> AgentEvent:
    return ToolExecutionEndEvent(call.id, call.name, outcome.result, outcome.is_error)
