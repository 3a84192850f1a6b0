"""The agent: configuration, transcript and queues around the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, SingleAssignmentDisposable

from rx_agent.abort import AbortSignal
from rx_agent.asyncio_edge import TaskScope, default_scheduler, hop, loop_of
from rx_agent.delivery import AsyncDeliveries, Hub
from rx_agent.errors import (
    AgentBusyError,
    ConfigurationError,
    ContinueError,
    EventLoopRunningError,
    NoEventLoopError,
    RxAgentError,
)
from rx_agent.events import AgentEndEvent, AgentEvent, MessageUpdateEvent
from rx_agent.hooks import AgentContext, Hook, Hooks, call_with_fitting
from rx_agent.loop import LoopConfig, agent_loop
from rx_agent.messages import AgentMessage, AssistantMessage, ImageContent, TextContent, UserMessage
from rx_agent.models import Model, ThinkingLevel
from rx_agent.providers.base import OnPayload, OnResponse, StreamFunction, StreamOptions
from rx_agent.queues import MessageQueue, QueueMode, SteeringPoint
from rx_agent.reporting import report
from rx_agent.run import Run
from rx_agent.sequences import AppendOnly
from rx_agent.sequencing import now_ms
from rx_agent.state import AgentState, reduce
from rx_agent.tools import Tool, ToolExecutionMode, as_tool

Listener = Callable[..., Any]
"""``on_event(event)`` or ``on_event(event, signal)``, a plain function or a coroutine function."""
PromptInput = str | AgentMessage | Sequence[AgentMessage]


class Agent:
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
        self.stream_function = stream_function
        self._state = AgentState(
            system_prompt=system_prompt,
            model=_model_of(model, stream_function),
            thinking_level=ThinkingLevel(thinking_level),
            tools=_tools_of(tools),
            messages=AppendOnly(messages),
        )
        self._latest: MessageUpdateEvent | None = None
        self.steering_point = SteeringPoint(steering_point)
        self.tool_execution = ToolExecutionMode(tool_execution)
        if max_concurrency is not None and max_concurrency < 1:
            raise ConfigurationError(
                f"max_concurrency: {max_concurrency} must be 1 or more; leave it out for no bound"
            )
        self.max_concurrency = max_concurrency
        self.deps = deps
        self.scheduler = scheduler
        self.options = replace(
            options or StreamOptions(),
            **{
                name: hook
                for name, hook in (("on_payload", on_payload), ("on_response", on_response))
                if hook is not None
            },
        )
        self.hooks = Hooks(
            convert_to_llm,
            transform_context,
            before_tool_call,
            after_tool_call,
            prepare_next_turn,
            prepare_next_turn_with_context,
            should_stop_after_turn,
            get_api_key,
        )
        self._steering = MessageQueue(QueueMode(steering_mode))
        self._follow_ups = MessageQueue(QueueMode(follow_up_mode))
        self._active: _ActiveRun | None = None
        self._tasks = TaskScope()
        self._deliveries = AsyncDeliveries(TaskScope())
        self._events: Hub[AgentEvent] = Hub()
        self._states: Hub[AgentState] = Hub()

    # --- running -------------------------------------------------------------------------------------------

    def prompt(self, input: PromptInput, images: Sequence[ImageContent] = ()) -> Run:
        """Starts a run with text (and images), a message, or a list of messages.

        Raises :class:`AgentBusyError` while a run is active, :class:`NoEventLoopError` where the provider needs
        an event loop and none runs, :class:`ConfigurationError` for input that is none of these.
        """
        return self._launch(self._prompts(input, images), self._scheduler())

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
            subscription = SingleAssignmentDisposable()

            def start() -> None:
                try:
                    active = self._create(
                        self._prompts(input, images), scheduler or self._scheduler(), poll_steering_first=True
                    )
                except RxAgentError as error:
                    observer.on_error(error)
                    return
                subscription.disposable = active.run
                active.run.subscribe(observer)
                active.start()

            leaving = self._active
            if leaving is None or not leaving.signal.aborted:
                start()
                return subscription
            # The run was disposed of by one of its own listeners (switch_map in a pipeline that asks from its
            # answers): it ends as soon as the event at hand has been told, and this one starts then.
            waiting = leaving.run.subscribe(on_completed=start)
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
                return await self._launch(self._prompts(input, images), default_scheduler())
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
        :class:`RxAgentError` inside a listener, which would wait for itself.
        """
        if self._deliveries.inside():
            raise RxAgentError(
                "wait_for_idle inside a listener would wait for itself; await it elsewhere, or "
                "start a task for it"
            )
        while self._active is not None or len(self._tasks) or self._deliveries.busy:
            if self._active is not None:
                await self._active.ended()
            await self._tasks.join()
            await self._deliveries.join()

    def reset(self) -> None:
        """Empties transcript and queues. Raises :class:`AgentBusyError` while a run is active."""
        self._refuse_if_busy("reset")
        self.clear_all_queues()
        self._set(
            messages=AppendOnly[AgentMessage](), error_message=None, pending_tool_calls=frozenset[str]()
        )

    def fork(self) -> Agent:
        """An independent agent with the same configuration and transcript; queues start empty."""
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
        twin._set(messages=self.state.messages)
        return twin

    # --- watching ------------------------------------------------------------------------------------------

    @property
    def events(self) -> Observable[AgentEvent]:
        """The events of all runs, live, without replay."""
        return self._events

    @property
    def states(self) -> Observable[AgentState]:
        """The present state, then one per change."""

        def subscribe(
            observer: abc.ObserverBase[AgentState], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            observer.on_next(self.state)
            return self._states.subscribe(observer, scheduler=scheduler)

        return Observable(subscribe)

    def subscribe(self, on_event: Listener) -> abc.DisposableBase:
        """Calls ``on_event(event)``, or ``on_event(event, signal)``, for each event of every run.

        Coroutine listeners are awaited in order; a provider's stream is read on only once they are through. A
        listener that raises is reported to ``sys.unraisablehook`` and unsubscribed.
        """
        subscription = SingleAssignmentDisposable()

        def failed(error: Exception) -> None:
            report(error, "listener", on_event)
            subscription.dispose()

        def on_next(event: AgentEvent) -> None:
            signal = self._active.signal if self._active is not None else AbortSignal()
            try:
                answer = call_with_fitting(on_event, event, signal)
            except Exception as error:
                failed(error)
                return
            if isinstance(answer, Awaitable):
                self._deliveries.add(cast("Awaitable[Any]", answer), failed)

        subscription.disposable = self._events.subscribe(on_next)
        return subscription

    @property
    def state(self) -> AgentState:
        """A snapshot of the state now."""
        if self._latest is not None:
            # Updates only move the streaming message, so of many in a row the last one is all that counts.
            latest, self._latest = self._latest, None
            self._state = reduce(self._state, latest)
        return self._state

    @property
    def active_run(self) -> Run | None:
        """The run that is going on; inside a listener of ``agent_end`` it still is."""
        return self._active.run if self._active is not None else None

    @property
    def signal(self) -> AbortSignal | None:
        """The active run's abort signal."""
        return self._active.signal if self._active is not None else None

    # --- queues --------------------------------------------------------------------------------------------

    def steer(self, message: PromptInput, *, interrupt: bool = False) -> None:
        """Queues a message for the end of the turn (see ``steering_mode`` and ``steering_point``).

        ``interrupt`` cancels the stream or the tools in flight at once, closes what is open, and goes on with the
        message.
        """
        messages = self._prompts(message)
        for place, item in enumerate(messages, 1):
            last = interrupt and place == len(messages)
            if last and self._active is not None and not self._active.on_its_thread():
                self._active.call(lambda item=item: self._steering.put(item, interrupt=True))
            else:
                self._steering.put(item, interrupt=last)

    def follow_up(self, message: PromptInput) -> None:
        """Queues a message for when the run would otherwise end."""
        for item in self._prompts(message):
            self._follow_ups.put(item)

    def steer_from(self, source: Observable[Any], *, interrupt: bool = False) -> abc.DisposableBase:
        """Steers with each item of ``source`` until disposed. An error of ``source`` is reported."""
        return source.subscribe(
            lambda item: self.steer(item, interrupt=interrupt),
            lambda error: report(error, "steering source", source),
        )

    def follow_up_from(self, source: Observable[Any]) -> abc.DisposableBase:
        """Queues each item of ``source`` as a follow-up until disposed. An error of ``source`` is reported."""
        return source.subscribe(self.follow_up, lambda error: report(error, "follow-up source", source))

    @property
    def steering_queue(self) -> MessageQueue:
        """The steering messages that wait: a sequence, with ``contents`` as an observable."""
        return self._steering

    @property
    def follow_up_queue(self) -> MessageQueue:
        """The follow-ups that wait: a sequence, with ``contents`` as an observable."""
        return self._follow_ups

    def has_queued_messages(self) -> bool:
        """Whether either queue holds something."""
        return bool(self._steering) or bool(self._follow_ups)

    def clear_steering_queue(self) -> None:
        """Drops the steering messages that wait."""
        self._steering.clear()

    def clear_follow_up_queue(self) -> None:
        """Drops the follow-ups that wait."""
        self._follow_ups.clear()

    def clear_all_queues(self) -> None:
        """Drops everything that waits."""
        self._steering.clear()
        self._follow_ups.clear()

    @property
    def steering_mode(self) -> QueueMode:
        """How much of the steering queue a turn takes; may change at any time."""
        return self._steering.mode

    @steering_mode.setter
    def steering_mode(self, mode: QueueMode) -> None:
        self._steering.mode = QueueMode(mode)

    @property
    def follow_up_mode(self) -> QueueMode:
        """How much of the follow-up queue a turn takes; may change at any time."""
        return self._follow_ups.mode

    @follow_up_mode.setter
    def follow_up_mode(self, mode: QueueMode) -> None:
        self._follow_ups.mode = QueueMode(mode)

    # --- what the user assigns -----------------------------------------------------------------------------

    def _set(self, **fields: Any) -> None:
        self._state = replace(self.state, **fields)
        if self._states.observed:
            self._states.next(self._state)

    @property
    def system_prompt(self) -> str:
        """The system prompt; a change takes effect with the next run, as for model, tools and messages."""
        return self._state.system_prompt

    @system_prompt.setter
    def system_prompt(self, value: str) -> None:
        self._set(system_prompt=value)

    @property
    def model(self) -> Model:
        """The model of the next run (within one, ``prepare_next_turn`` changes it)."""
        return self._state.model

    @model.setter
    def model(self, value: Model) -> None:
        self._set(model=value)

    @property
    def thinking_level(self) -> ThinkingLevel:
        """How much the model may think."""
        return self._state.thinking_level

    @thinking_level.setter
    def thinking_level(self, value: ThinkingLevel) -> None:
        self._set(thinking_level=ThinkingLevel(value))

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools; functions are made into tools when assigned."""
        return self._state.tools

    @tools.setter
    def tools(self, value: Iterable[Tool | Callable[..., Any]]) -> None:
        self._set(tools=_tools_of(value))

    @property
    def messages(self) -> Sequence[AgentMessage]:
        """The transcript. Assigning replaces it; raises :class:`AgentBusyError` while a run is active."""
        return self.state.messages

    @messages.setter
    def messages(self, value: Iterable[AgentMessage]) -> None:
        self._refuse_if_busy("assigning messages")
        self._set(messages=AppendOnly(value))

    def __repr__(self) -> str:
        state = "running" if self._active is not None else "idle"
        return (
            f"Agent({self.model.provider}:{self.model.id}, {len(self.tools)} tools, "
            f"{len(self._state.messages)} messages, {state})"
        )

    # --- inside --------------------------------------------------------------------------------------------

    def _scheduler(self) -> abc.SchedulerBase:
        return self.scheduler or default_scheduler()

    def _refuse_if_busy(self, what: str) -> None:
        if self._active is not None:
            raise AgentBusyError(
                f"{what}: the agent is busy with a run. Queue the message with steer(...) or follow_up(...), wait "
                "with `await agent.wait_for_idle()`, stop the run with abort(), or use an independent "
                "agent.fork()"
            )

    def _prompts(self, input: PromptInput, images: Sequence[ImageContent] = ()) -> list[AgentMessage]:
        if isinstance(input, str):
            content = (TextContent(text=input), *images)
            return [UserMessage(content=content, timestamp=now_ms(self._scheduler()))]
        messages = [input] if _is_message(input) else list(cast("Iterable[AgentMessage]", input))
        for message in messages:
            if not _is_message(message):
                raise ConfigurationError(
                    f"prompt: {message!r:.80} ({type(message).__name__}) is no text, message or list of messages"
                )
        if not messages:
            raise ConfigurationError("prompt: an empty list; give text, a message or a list of messages")
        if images:
            raise ConfigurationError(
                "images: go with a text prompt; put them into the message's content here"
            )
        return messages

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
        active = self._create(prompts, scheduler, poll_steering_first=poll_steering_first)
        active.start()
        return active.run

    def _create(
        self, prompts: list[AgentMessage], scheduler: abc.SchedulerBase, *, poll_steering_first: bool
    ) -> _ActiveRun:
        self._refuse_if_busy("prompt")
        stream_function = self.stream_function or _stream_function_for(self.model)
        if getattr(stream_function, "needs_event_loop", False) and loop_of(scheduler) is None:
            raise NoEventLoopError(
                f"{self.model.provider} is reached over the network, which needs an asyncio event loop, and "
                "the run's scheduler has none: use `await agent.prompt(...)` in async code, or "
                "`agent.prompt_sync(...)` in a script"
            )
        state = self.state
        self._active = _ActiveRun(self, scheduler)
        self._active.source = agent_loop(
            prompts,
            AgentContext(state.system_prompt, state.messages, state.tools, state.model, state.thinking_level),
            LoopConfig(
                stream_function,
                self.hooks,
                replace(self.options, tasks=self._tasks, ready=self._active.ready),
                self._steering,
                self._follow_ups,
                self.steering_point,
                self.tool_execution,
                self.max_concurrency,
                self._active.signal,
                self.deps,
            ),
            poll_steering_first=poll_steering_first,
        )
        return self._active

    def _on_event(self, run: Run, event: AgentEvent) -> None:
        if isinstance(event, MessageUpdateEvent):
            self._latest = event
        else:
            self._state = reduce(self.state, event)
        if self._states.observed:
            self._states.next(self.state)
        self._events.next(event)
        run.record(event)

    def _on_completed(self, run: Run) -> None:
        self._active = None
        run.complete()

    def deliveries_ready(self) -> Awaitable[None] | None:
        """What a provider awaits before it reads on; None where every coroutine listener is through."""
        return self._deliveries.ready()

    async def settle(self) -> None:
        """Returns once the coroutine listeners are through (at once inside one of them)."""
        if not self._deliveries.inside():
            await self._deliveries.join()


class _ActiveRun:
    """A run in progress: its thread, its signal, its subscription of the loop."""

    def __init__(self, agent: Agent, scheduler: abc.SchedulerBase) -> None:
        self.agent = agent
        self.scheduler = scheduler
        self.signal = AbortSignal()
        self.run = Run(self.abort, agent.settle)
        self.source: Observable[AgentEvent] | None = None
        self._thread = threading.get_ident()
        self._subscription = SingleAssignmentDisposable()

    def start(self) -> None:
        assert self.source is not None
        agent, run = self.agent, self.run
        self._subscription.disposable = self.source.subscribe(
            lambda event: agent._on_event(run, event),  # pyright: ignore[reportPrivateUsage]
            on_completed=lambda: agent._on_completed(run),  # pyright: ignore[reportPrivateUsage]
            scheduler=self.scheduler,
        )

    def ready(self) -> Awaitable[None] | None:
        return self.agent.deliveries_ready() or self.run.caught_up()

    def on_its_thread(self) -> bool:
        return threading.get_ident() == self._thread

    def call(self, action: Callable[[], object]) -> None:
        """Calls ``action()`` on the run's thread, at once if this is it."""
        loop = loop_of(self.scheduler)
        if loop is None or self.on_its_thread():
            action()
        else:
            hop(loop, action)

    def abort(self) -> None:
        self.call(self._abort)

    def _abort(self) -> None:
        if self.agent.active_run is self.run:
            self.signal.set()

    async def ended(self) -> None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        subscription = self.run.subscribe(on_completed=lambda: hop(loop, _resolve, done))
        try:
            await done
        finally:
            subscription.dispose()


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _is_message(value: object) -> bool:
    return hasattr(value, "role") and hasattr(value, "model_copy")


def _model_of(model: Model | None, stream_function: StreamFunction | None) -> Model:
    found = model or getattr(stream_function, "model", None)
    if not isinstance(found, Model):
        raise ConfigurationError(
            f"model: {found!r} is no Model; give Agent(model=...), for instance "
            'resolve_model("openai-chat:gpt-5-mini") from rx_agent.providers.catalog, or a stream_function that '
            "brings its own, such as scripted([...])"
        )
    return found


def _tools_of(tools: Iterable[Tool | Callable[..., Any]]) -> tuple[Tool, ...]:
    made = tuple(as_tool(item) for item in tools)
    seen: dict[str, Tool] = {}
    for item in made:
        if item.name in seen:
            raise ConfigurationError(
                f"tools: two are named {item.name!r}; give one another name with @tool(name=...)"
            )
        seen[item.name] = item
    return made


def _stream_function_for(model: Model) -> StreamFunction:
    from rx_agent.providers.registry import stream_function_for

    return stream_function_for(model)
