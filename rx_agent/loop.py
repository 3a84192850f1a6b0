"""The loop: a run as a cold observable. Turns are a generator of observables, joined by concat.

The generator resumes when the turn before has completed, reads the queues, and yields the next turn or returns.
It reads plain state (:class:`~rx_agent.brackets.Brackets`, a fold of the events it has itself emitted) and never
waits for a subscription.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reactivex import Observable, abc
from reactivex import operators as ops
from reactivex.subject import Subject

from rx_agent.abort import AbortSignal
from rx_agent.asyncio_edge import default_scheduler
from rx_agent.brackets import INTERRUPTED_BY_STEERING, Brackets, Cut, TurnScope, closing_events
from rx_agent.convert import convert_to_llm
from rx_agent.events import (
    AgentEndEvent,
    AgentEvent,
    AgentStartEvent,
    EndReason,
    MessageEndEvent,
    MessageStartEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from rx_agent.hooks import (
    AgentContext,
    AgentLoopTurnUpdate,
    Hooks,
    PrepareNextTurnContext,
    call_hook,
    expect,
    expect_messages,
)
from rx_agent.messages import (
    AgentMessage,
    AssistantMessage,
    CustomMessage,
    Message,
    ToolResultMessage,
    UserMessage,
)
from rx_agent.models import Model, ThinkingLevel
from rx_agent.providers.base import Context, StreamFunction, StreamOptions
from rx_agent.queues import MessageQueue, SteeringPoint
from rx_agent.responses import as_message_events
from rx_agent.sequences import AppendOnly
from rx_agent.sequencing import emit, now_ms, sequence
from rx_agent.supervision import supervise
from rx_agent.tool_batch import ToolBatch, one_by_one
from rx_agent.tools import ToolExecutionMode


@dataclass(frozen=True, slots=True)
class LoopConfig:
    """What a run works with beside its context.

    ``signal`` aborts it. ``options`` are the base of every request's; ``options.tasks`` owns all asyncio tasks
    of the run. ``max_concurrency`` bounds the tools of one batch that run at once.
    """

    stream_function: StreamFunction
    hooks: Hooks = field(default_factory=Hooks)
    options: StreamOptions = field(default_factory=StreamOptions)
    steering: MessageQueue = field(default_factory=MessageQueue)
    follow_ups: MessageQueue = field(default_factory=MessageQueue)
    steering_point: SteeringPoint = SteeringPoint.AFTER_TURN
    tool_execution: ToolExecutionMode = ToolExecutionMode.PARALLEL
    max_concurrency: int | None = None
    signal: AbortSignal = field(default_factory=AbortSignal)
    deps: Any = None


def agent_loop(
    prompts: Sequence[AgentMessage],
    context: AgentContext,
    config: LoopConfig,
    *,
    poll_steering_first: bool = True,
    start_now: bool = False,
) -> Observable[AgentEvent]:
    """A run: cold, so each subscription is a run of its own, on the scheduler it is subscribed with.

    ``prompts`` are announced first; without any, the run goes on from ``context.messages``. The stream opens with
    ``agent_start``, closes with ``agent_end`` and completes. Failures are in the messages; there is no
    ``on_error``. ``start_now`` runs it within ``subscribe``, even inside another pipeline's step (it can then be
    left by ``config.signal`` only). ``config.signal`` aborts: what runs is cancelled, what is open is closed, the
    stream completes.
    Disposing cancels too, and says nothing more to the observer that left.

    >>> from rx_agent.models import Model
    >>> from rx_agent.messages import UserMessage
    >>> from rx_agent.providers.scripted import scripted
    >>> model = Model(id="m", api="scripted", provider="scripted")
    >>> context = AgentContext("", (), (), model)
    >>> run = agent_loop([UserMessage(content="hi")], context, LoopConfig(scripted(["hello"])))
    >>> run.subscribe(lambda event: print(event.type) if event.type.endswith("_end") else None).dispose()
    message_end
    message_end
    turn_end
    agent_end
    """

    def subscribe(
        observer: abc.ObserverBase[AgentEvent], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        scheduler = scheduler or default_scheduler()
        run = _LoopRun(prompts, context, config, scheduler, poll_steering_first)
        return supervise(run, observer, scheduler, start_now=start_now)

    return Observable(subscribe)


class _LoopRun:
    """One subscription of the loop: its fold, its context as hooks have changed it, its generator."""

    def __init__(
        self,
        prompts: Sequence[AgentMessage],
        context: AgentContext,
        config: LoopConfig,
        scheduler: abc.SchedulerBase,
        poll_steering_first: bool,
    ) -> None:
        self.open = Brackets(
            _append_only(context.messages),
            undelivered=list(prompts),
            is_sequential=lambda answer: one_by_one(answer, self.base.tools, config.tool_execution),
        )
        self.base = context
        self.config = config
        self.prompts = prompts
        self.now = lambda: now_ms(scheduler)
        self.poll_steering_first = poll_steering_first
        self.interrupts: Subject[None] = Subject()
        self.interrupted = False
        self.scope = TurnScope()
        self._shown: AppendOnly[Message] = AppendOnly()
        self._shown_from: AppendOnly[AgentMessage] = AppendOnly()

    @property
    def signal(self) -> AbortSignal:
        """Aborts the run."""
        return self.config.signal

    @property
    def steering(self) -> MessageQueue:
        """The queue whose messages may interrupt."""
        return self.config.steering

    @property
    def context(self) -> AgentContext:
        """The context as it is now."""
        return replace(self.base, messages=self.open.context)

    # --- the run -------------------------------------------------------------------------------------------

    def steps(self) -> Iterator[Observable[AgentEvent]]:
        config, open_ = self.config, self.open
        yield emit(AgentStartEvent(), TurnStartEvent(), *_announce(self.prompts))
        if self.poll_steering_first and not self._owes_an_answer():
            yield from self._deliver(config.steering, config.steering.due())
        while True:
            while due := config.steering.due_by_interrupt():
                yield from self._deliver(config.steering, due)
            self.interrupted = False
            scope = self.scope = TurnScope()
            batch: list[ToolBatch] = []
            turn = sequence(
                lambda scope=scope, batch=batch: self._turn(scope, batch),
                unless=lambda scope=scope: scope.cut,
            )
            yield turn.pipe(ops.take_until(self.interrupts))
            if self.interrupted:
                yield emit(*self.close(INTERRUPTED_BY_STEERING))
            message = open_.assistant
            assert message is not None
            if not self.interrupted and message.stop_reason in ("error", "aborted"):
                yield emit(self._end("error" if message.stop_reason == "error" else "aborted"))
                return
            terminated = bool(batch) and batch[0].terminates()
            goes_on = bool(open_.calls) and not terminated and not self.interrupted
            if config.hooks.should_stop_after_turn is not None and not self.interrupted:
                stops: list[Any] = []
                yield self._ask("should_stop_after_turn", config.hooks.should_stop_after_turn, stops)
                if stops and stops[0]:
                    yield emit(self._end("stopped"))
                    return
            queue, due = self._next_input(goes_on)
            if goes_on or due:
                yield from self._prepare_next_turn()
                if not due or not queue:
                    # Preparing can take long: steering may have come meanwhile, or the queue been cleared.
                    queue, due = self._next_input(goes_on)
            if not goes_on and not due:
                # Interrupted, and the message that did it has been taken back: there is no answer to speak of.
                yield emit(
                    self._end("aborted" if self.interrupted else "stopped" if terminated else "completed")
                )
                return
            yield from self._deliver(queue, due, opening=True)

    def _owes_an_answer(self) -> bool:
        """With ``AFTER_ANSWER``, whether tool results wait for the assistant to answer them."""
        if self.config.steering_point is SteeringPoint.AFTER_TURN or not len(self.open.context):
            return False
        return self.open.context[-1].role == "tool_result"

    def _next_input(self, goes_on: bool) -> tuple[MessageQueue, int]:
        """Which queue feeds the next turn, and with how many messages."""
        config = self.config
        waits = goes_on and config.steering_point is SteeringPoint.AFTER_ANSWER
        due = config.steering.due_by_interrupt() if waits else config.steering.due()
        if due or goes_on:
            return config.steering, due
        return config.follow_ups, config.follow_ups.due()

    def _deliver(
        self, queue: MessageQueue, count: int, *, opening: bool = False
    ) -> Iterator[Observable[AgentEvent]]:
        """Takes ``count`` messages on and announces them, after a ``turn_start`` if that is due."""
        taken = queue.take(count)
        self.open.undelivered.extend(taken)
        events: list[AgentEvent] = [*_announce(taken)]
        if opening:
            events.insert(0, TurnStartEvent())
        if events:
            yield emit(*events)

    def _end(self, reason: EndReason) -> AgentEvent:
        return AgentEndEvent(tuple(self.open.new_messages), reason)

    def close(self, cut: Cut) -> list[AgentEvent]:
        """What is missing: up to the turn for an interruption, else up to the run."""
        return closing_events(
            self.open,
            cut,
            scope="turn" if cut.kind == "interrupted" else "run",
            model=self.base.model,
            timestamp=self.now(),
        )

    # --- a turn --------------------------------------------------------------------------------------------

    def _turn(self, scope: TurnScope, batch: list[ToolBatch]) -> Iterator[Observable[AgentEvent]]:
        """The answer, then the calls it makes. Puts the batch, if there is one, into ``batch``."""
        hooks = self.config.hooks
        messages: list[Any] = [self.open.context]
        if hooks.transform_context is not None:
            yield self._ask("transform_context", hooks.transform_context, messages, messages[0])
            expect_messages("transform_context", messages[-1], _TRANSCRIPT, "messages")
        shown: list[Any] = []
        if hooks.convert_to_llm is not None:
            yield self._ask("convert_to_llm", hooks.convert_to_llm, shown, messages[-1], signal=False)
            for converted in shown:
                expect_messages("convert_to_llm", converted, _FOR_MODELS, _FOR_MODELS_IN_WORDS)
        request = shown[0] if shown else self._converted(messages[-1])
        keys: list[Any] = []
        if hooks.get_api_key is not None:
            yield self._ask("get_api_key", hooks.get_api_key, keys, self.base.model.provider, signal=False)
            if keys and not isinstance(keys[0], str):  # not shown: it may be the key in some other form
                raise TypeError(f"get_api_key returned {type(keys[0]).__name__}; return a str or None")
        options = replace(
            self.config.options,
            thinking_level=self.base.thinking_level,
            api_key=(keys[0] if keys else None) or self.config.options.api_key,
        )
        context = Context(self.base.system_prompt, request, tuple(self.base.tools))
        model, ask = self.base.model, self.config.stream_function
        yield as_message_events(lambda: ask(model, context, options), model)
        message = self.open.assistant
        if message is None:
            raise AssertionError("a response ended without a message")
        if self.open.calls:
            batch.append(
                ToolBatch(
                    message,
                    self.context,
                    self.open,
                    scope,
                    hooks,
                    self.config.max_concurrency,
                    self.config.signal,
                    self.config.deps,
                    self.config.options.tasks,
                    self.now,
                )
            )
            yield batch[0].events()
        yield emit(TurnEndEvent(message, self.open.tool_results))

    def _converted(self, messages: Sequence[AgentMessage]) -> Sequence[Message]:
        """The default conversion; of a transcript that only grew since the last request, just what is new."""
        if not isinstance(messages, AppendOnly):
            return convert_to_llm(messages)
        if messages.extends(self._shown_from):
            fresh = convert_to_llm(messages.since(len(self._shown_from)))
            self._shown = self._shown.plus(*fresh)
        else:
            self._shown = AppendOnly(convert_to_llm(messages))
        self._shown_from = messages
        return self._shown

    # --- hooks ---------------------------------------------------------------------------------------------

    def _ask(
        self, name: str, hook: Any, answers: list[Any], shown: Any = None, *, signal: bool = True
    ) -> Observable[AgentEvent]:
        """Appends the hook's answer to ``answers`` unless it is None; emits nothing."""
        arguments = [self._turn_context() if shown is None else shown]
        if signal:
            arguments.append(self.config.signal)

        def keep(answer: Any) -> None:
            if answer is not None:
                answers.append(answer)

        return call_hook(name, hook, *arguments, tasks=self.config.options.tasks).pipe(
            ops.do_action(keep), ops.ignore_elements()
        )

    def _turn_context(self) -> PrepareNextTurnContext:
        message = self.open.assistant
        assert message is not None
        return PrepareNextTurnContext(message, self.open.tool_results, self.context, self.open.new_messages)

    def _prepare_next_turn(self) -> Iterator[Observable[AgentEvent]]:
        hooks = self.config.hooks
        hook = hooks.prepare_next_turn_with_context or hooks.prepare_next_turn
        if hook is None:
            return
        answers: list[Any] = []
        yield self._ask("prepare_next_turn", hook, answers)
        if not answers:
            return
        expect("prepare_next_turn", answers[0], AgentLoopTurnUpdate)
        update: AgentLoopTurnUpdate = answers[0]
        # Checked before any of it is taken over: the run must be able to end on what it has.
        expect("prepare_next_turn: context", update.context, AgentContext)
        expect("prepare_next_turn: model", update.model, Model)
        base = update.context or self.base
        expect("prepare_next_turn: context.model", base.model, Model)
        messages = _append_only(base.messages) if update.context is not None else self.open.context
        level = base.thinking_level if update.thinking_level is None else update.thinking_level
        self.base = replace(
            base,
            tools=tuple(base.tools),
            model=update.model or base.model or self.base.model,
            thinking_level=ThinkingLevel(level),
        )
        self.open.context = messages


_TRANSCRIPT = (UserMessage, AssistantMessage, ToolResultMessage, CustomMessage)
_FOR_MODELS = (UserMessage, AssistantMessage, ToolResultMessage)
_FOR_MODELS_IN_WORDS = "UserMessage, AssistantMessage and ToolResultMessage"


def _append_only(messages: Sequence[AgentMessage]) -> AppendOnly[AgentMessage]:
    return messages if isinstance(messages, AppendOnly) else AppendOnly(messages)


def _announce(messages: Sequence[AgentMessage]) -> Iterator[AgentEvent]:
    for message in messages:
        yield MessageStartEvent(message)
        yield MessageEndEvent(message)
