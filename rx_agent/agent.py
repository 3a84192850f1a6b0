"""The agent: configuration, transcript and queues around the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable, SingleAssignmentDisposable

from rx_agent.abort import AbortSignal
from rx_agent.active_run import ActiveRun
from rx_agent.agent_inputs import (
    PromptInput,
    checked,
    chosen,
    hook_of,
    messages_of,
    model_of,
    tools_of,
    transcript_of,
)
from rx_agent.agent_queues import QueueingAgent
from rx_agent.asyncio_edge import TaskScope, default_scheduler, loop_of
from rx_agent.delivery import AsyncDeliveries, Hub, Leaving
from rx_agent.errors import (
    ContinueError,
    EventLoopRunningError,
    NoEventLoopError,
    RxAgentError,
)
from rx_agent.events import AgentEndEvent, AgentEvent
from rx_agent.hooks import AgentContext, Hook, Hooks, fitted
from rx_agent.loop import LoopConfig, agent_loop
from rx_agent.messages import AgentMessage, AssistantMessage, ImageContent
from rx_agent.models import Model, ThinkingLevel
from rx_agent.providers.base import OnPayload, OnResponse, StreamFunction, StreamOptions
from rx_agent.providers.registry import stream_function_for
from rx_agent.queues import QueueMode, SteeringPoint
from rx_agent.reporting import report
from rx_agent.run import Run
from rx_agent.sequences import AppendOnly
from rx_agent.state import AgentState, all_answered
from rx_agent.tools import Tool, ToolExecutionMode

Listener: TypeAlias = Callable[..., Any]
"""``on_event(event)`` or ``on_event(event, signal)``, a plain function or a coroutine function."""


class Agent(QueueingAgent):
    """An LLM agent: give it prompts, watch its events.

    ``model`` may be left out where ``stream_function`` brings one (``scripted([...])`` does); without a
    ``stream_function`` the one of ``model.api`` is used. ``scheduler`` is what ``prompt`` runs on (default: the
    running event loop; without one, this thread, which suffices for scripted models). ``options`` are the base
    of every request's. ``deps`` is handed to tools as ``ToolContext.deps``. ``max_concurrency`` bounds the tools
    of one batch that run at once. The hooks are described in :class:`rx_agent.hooks.Hooks`.

    >>> from rx_agent.providers.scripted import scripted
    >>> agent = Agent(stream_function=scripted(["Hello!"]))
    >>> agent.prompt("Hi").text
    'Hello!'
    """

    def __init__(
        self,
        *,
        model: Model | None = None,
        stream_function: StreamFunction | None = None,
        system_prompt: str = "",
        tools: Iterable[Tool | Callable[..., Any]] = (),
        messages: Iterable[AgentMessage] = (),
        thinking_level: ThinkingLevel = ThinkingLevel.OFF,
        steering_mode: QueueMode = QueueMode.ONE_AT_A_TIME,
        follow_up_mode: QueueMode = QueueMode.ONE_AT_A_TIME,
        steering_point: SteeringPoint = SteeringPoint.AFTER_TURN,
        tool_execution: ToolExecutionMode = ToolExecutionMode.PARALLEL,
        max_concurrency: int | None = None,
        deps: Any = None,
        options: StreamOptions | None = None,
        scheduler: abc.SchedulerBase | None = None,
        convert_to_llm: Hook | None = None,
        transform_context: Hook | None = None,
        before_tool_call: Hook | None = None,
        after_tool_call: Hook | None = None,
        prepare_next_turn: Hook | None = None,
        prepare_next_turn_with_context: Hook | None = None,
        should_stop_after_turn: Hook | None = None,
        get_api_key: Hook | None = None,
        on_payload: OnPayload | None = None,
        on_response: OnResponse | None = None,
    ) -> None:
        state = AgentState(
            system_prompt=checked("system_prompt", system_prompt, str),
            model=model_of(model, hook_of("stream_function", stream_function)),
            thinking_level=chosen("thinking_level", thinking_level, ThinkingLevel),
            tools=tools_of(tools),
            messages=AppendOnly(transcript_of(messages)),
        )
        super().__init__(state, steering_mode, follow_up_mode, scheduler)
        self.stream_function = stream_function
        self.steering_point = chosen("steering_point", steering_point, SteeringPoint)
        self.tool_execution = chosen("tool_execution", tool_execution, ToolExecutionMode)
        self.max_concurrency = max_concurrency
        self.deps = deps
        self.options = replace(
            StreamOptions() if options is None else checked("options", options, StreamOptions),
            **{
                name: hook_of(name, hook)
                for name, hook in (("on_payload", on_payload), ("on_response", on_response))
                if hook is not None
            },
        )
        self.hooks = Hooks(
            hook_of("convert_to_llm", convert_to_llm),
            hook_of("transform_context", transform_context),
            hook_of("before_tool_call", before_tool_call),
            hook_of("after_tool_call", after_tool_call),
            hook_of("prepare_next_turn", prepare_next_turn),
            hook_of("prepare_next_turn_with_context", prepare_next_turn_with_context),
            hook_of("should_stop_after_turn", should_stop_after_turn),
            hook_of("get_api_key", get_api_key),
        )
        self._tasks = TaskScope()
        self._deliveries = AsyncDeliveries(TaskScope())
        self._events: Hub[AgentEvent] = Hub()

    # --- running -------------------------------------------------------------------------------------------

    def prompt(self, input: PromptInput, images: Sequence[ImageContent] = ()) -> Run:
        """Starts a run with text (and images), a message, or a list of messages.

        Raises :class:`AgentBusyError` while a run is active, :class:`NoEventLoopError` where the provider needs
        an event loop and none runs, :class:`ConfigurationError` for input that is none of these.
        """
        return self._launch(messages_of(input, images, self._scheduler()), self._scheduler())

    def continue_(self) -> Run:
        """Starts a run from where the transcript stands.

        From a user or tool result message, or one of your own kinds: the model answers it. From an assistant
        message that failed or was aborted: the request is made again.
        From any other assistant message: with the queued messages. Raises :class:`ContinueError` if there is
        nothing to go on from, :class:`AgentBusyError` while a run is active.
        """
        self._refuse_if_busy("continue_")
        scheduler = self._scheduler()
        prompts, drained = self._continuation()
        return self._launch(prompts, scheduler, poll_steering_first=not drained)

    def ask(self, input: PromptInput, images: Sequence[ImageContent] = ()) -> Observable[AgentEvent]:
        """The cold twin of :meth:`prompt`: subscribing starts the run, disposing aborts it.

        So it composes: ``questions.pipe(ops.switch_map(agent.ask))``. It runs on the scheduler it is subscribed
        with. A subscription while a run is active signals :class:`AgentBusyError`; use ``agent.fork().ask`` to
        run several at once.
        """

        def subscribe(
            observer: abc.ObserverBase[AgentEvent], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            on = scheduler or self._scheduler()
            subscription = SingleAssignmentDisposable()

            def start() -> None:
                try:
                    begin = self._open(messages_of(input, images, on), on)
                except RxAgentError as error:
                    observer.on_error(error)
                    return
                run = self.active_run
                assert run is not None
                subscription.disposable = run
                run.subscribe(Leaving(observer, subscription))
                begin()

            leaving = self._active
            if leaving is None or not leaving.signal.aborted:
                start()
                return subscription
            # The run was disposed of by one of its own listeners (switch_map in a pipeline that asks from its
            # answers): it ends as soon as the event at hand has been told, and this one starts then.
            waiting = leaving.run.completion.subscribe(on_completed=start)
            return CompositeDisposable(waiting, subscription)

        return Observable(subscribe)

    def prompt_sync(self, input: PromptInput, images: Sequence[ImageContent] = ()) -> AgentEndEvent:
        """Runs a prompt to its end in an event loop of its own: for scripts.

        Raises :class:`EventLoopRunningError` inside a running event loop (use ``await agent.prompt(...)``).
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise EventLoopRunningError(
                "prompt_sync would block the event loop that runs here; use `await agent.prompt(...)`"
            )

        async def work() -> AgentEndEvent:
            try:
                return await self._launch(messages_of(input, images, self._scheduler()), default_scheduler())
            finally:
                await self.wait_for_idle()

        return asyncio.run(work())

    def abort(self) -> None:
        """Aborts the active run, if there is one; from another thread, as soon as its own thread gets to it.

        When it returns (on the run's thread, outside a listener) the brackets are closed and the transcript is
        valid. Queued messages stay queued.
        """
        if self._active is not None:
            self._active.abort()

    async def wait_for_idle(self) -> None:
        """Returns once no run is active, its coroutine listeners are through and every task has ended.

        A plain function tool that is still running in its thread is not waited for. Raises
        :class:`RxAgentError` inside a listener, a tool or a hook of this agent, which would wait for itself.
        """
        if self._inside():
            raise RxAgentError(
                "wait_for_idle inside a listener, tool or hook of the same agent would wait for itself; await it "
                "elsewhere, or start a task for it"
            )
        while self._active is not None or len(self._tasks) or self._deliveries.busy:
            if self._active is not None and self._active.stranded:
                self._active.abort()
            elif self._active is not None:
                await self._active.ended()
            await self._tasks.join()
            await self._deliveries.join()

    def reset(self) -> None:
        """Empties transcript and queues. Raises :class:`AgentBusyError` while a run is active."""
        self._refuse_if_busy("reset")
        self.clear_all_queues()
        self._set(messages=AppendOnly[AgentMessage](), error_message=None, calls_in_progress=())

    def fork(self) -> Agent:
        """An independent agent with the same configuration and transcript; queues start empty.

        Inside a turn whose calls are not all answered, the copy ends before that turn's answer.
        """
        twin = Agent(
            model=self.model,
            stream_function=self.stream_function,
            system_prompt=self.system_prompt,
            tools=self.tools,
            thinking_level=self.thinking_level,
            steering_mode=self.steering_mode,
            follow_up_mode=self.follow_up_mode,
            steering_point=self.steering_point,
            tool_execution=self.tool_execution,
            max_concurrency=self.max_concurrency,
            deps=self.deps,
            options=self.options,
            scheduler=self.scheduler,
        )
        twin.hooks = self.hooks
        messages = self.state.messages
        twin._set(messages=messages if self._active is None else all_answered(messages))
        return twin

    # --- watching ------------------------------------------------------------------------------------------

    @property
    def events(self) -> Observable[AgentEvent]:
        """The events of all runs, live, without replay."""
        return self._events

    def subscribe(self, on_event: Listener) -> abc.DisposableBase:
        """Calls ``on_event(event)``, or ``on_event(event, signal)``, for each event of every run.

        Coroutine listeners are awaited in order; a provider's stream is read on only once they are through. A
        listener that raises is reported to ``sys.unraisablehook`` and unsubscribed. Disposing drops what the
        listener has not been told yet, and cancels its coroutine that is being awaited.
        """
        events = SingleAssignmentDisposable()
        subscription = CompositeDisposable(events, Disposable(lambda: self._deliveries.drop(subscription)))
        call = fitted(on_event, 2)

        def failed(error: BaseException) -> None:
            report(error, "listener", on_event)
            subscription.dispose()

        def on_next(event: AgentEvent) -> None:
            signal = self._active.signal if self._active is not None else AbortSignal()
            try:
                answer = call(event, signal)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # a CancelledError, say, of something the listener looked at
                failed(error)
                return
            if answer is not None and isinstance(answer, Awaitable):
                self._deliveries.add(cast("Awaitable[Any]", answer), failed, subscription)

        events.disposable = self._events.subscribe(on_next)
        return subscription

    @property
    def active_run(self) -> Run | None:
        """The run that is going on; inside a listener of ``agent_end`` it still is."""
        return self._active.run if self._active is not None else None

    @property
    def signal(self) -> AbortSignal | None:
        """The active run's abort signal."""
        return self._active.signal if self._active is not None else None

    def __repr__(self) -> str:
        state = "running" if self._active is not None else "idle"
        return (
            f"Agent({self.model.provider}:{self.model.id}, {len(self.tools)} tools, "
            f"{len(self._state.messages)} messages, {state})"
        )

    def _inside(self) -> bool:
        """Whether the caller is a coroutine listener, tool or hook of this agent."""
        return self._deliveries.inside() or self._tasks.inside()

    # --- inside --------------------------------------------------------------------------------------------

    def _continuation(self) -> tuple[list[AgentMessage], bool]:
        """The messages that a continuation opens with, and whether they are drained steering."""
        messages = self.state.messages
        if not messages:
            raise ContinueError("continue_: the transcript is empty; start with prompt(...)")
        last = messages[-1]
        if not isinstance(last, AssistantMessage) or last.stop_reason in ("error", "aborted"):
            return [], False
        if self._steering:
            return self._steering.take(self._steering.due()), True
        if self._follow_ups:
            return self._follow_ups.take(self._follow_ups.due()), False
        raise ContinueError(
            "continue_: the last message is the assistant's answer and nothing is queued; use prompt(...), or "
            "queue something with steer(...) or follow_up(...) first"
        )

    def _launch(
        self, prompts: list[AgentMessage], scheduler: abc.SchedulerBase, *, poll_steering_first: bool = True
    ) -> Run:
        start = self._open(prompts, scheduler, poll_steering_first=poll_steering_first, start_now=True)
        return start().run

    def _open(
        self,
        prompts: list[AgentMessage],
        scheduler: abc.SchedulerBase,
        *,
        poll_steering_first: bool = True,
        start_now: bool = False,
    ) -> Callable[[], ActiveRun]:
        """Makes a run the active one, and gives what starts it (and returns it)."""
        self._refuse_if_busy("prompt")
        stream_function = self.stream_function or stream_function_for(self.model)
        if getattr(stream_function, "needs_event_loop", False) and loop_of(scheduler) is None:
            raise NoEventLoopError(
                f"{self.model.provider} is reached over the network, which needs an asyncio event loop, and "
                "the run's scheduler has none: use `await agent.prompt(...)`, or subscribe to `agent.ask(...)`, "
                "in async code, or `agent.prompt_sync(...)` in a script"
            )
        state = self.state
        active = self._active = ActiveRun(scheduler, self._deliveries, self._inside)
        source = agent_loop(
            prompts,
            AgentContext(state.system_prompt, state.messages, state.tools, state.model, state.thinking_level),
            LoopConfig(
                stream_function,
                self.hooks,
                replace(self.options, tasks=self._tasks, ready=active.ready),
                self._steering,
                self._follow_ups,
                self.steering_point,
                self.tool_execution,
                self.max_concurrency,
                active.signal,
                self.deps,
            ),
            poll_steering_first=poll_steering_first,
            start_now=start_now,
        )

        fold, tell, record = self._fold, self._events.next, active.run.record

        def on_event(event: AgentEvent) -> None:
            fold(event)
            tell(event)
            record(event)

        def on_completed() -> None:
            self._active = None

        def start() -> ActiveRun:
            active.start(source, on_event, on_completed)
            return active

        return start
