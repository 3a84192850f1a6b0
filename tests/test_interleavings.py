"""Whatever the interleaving: scripts, tools, steering, aborts, disposals at random virtual instants."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import reactivex
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reactivex import operators as ops
from reactivex.scheduler import VirtualTimeScheduler

from rx_agent import (
    Agent,
    AgentBusyError,
    ContinueError,
    QueueMode,
    SteeringPoint,
    ToolContext,
    ToolExecutionMode,
    ToolResult,
    tool_from_schema,
)
from rx_agent.providers.scripted import Call, Response, Say, Think, scripted
from tests.invariants import Watch, assert_transcript_valid

TICK = 1000.0

EVENTS = (
    "agent_start",
    "turn_start",
    "message_start",
    "message_update",
    "message_end",
    "tool_execution_start",
    "tool_execution_update",
    "tool_execution_end",
    "turn_end",
    "agent_end",
)
TOOLS = ("quick", "slow", "chatty", "broken", "ending", "single", "unknown")


def make_tool(name: str, started: Callable[[str], None]) -> Any:
    def body(args: dict[str, Any], context: ToolContext[Any]) -> Any:
        del args
        started(context.tool_call_id)
        match name:
            case "quick":
                return "q"
            case "slow":
                return reactivex.timer(3 * TICK).pipe(ops.map(lambda _: ToolResult(content="s")))
            case "chatty":
                return reactivex.interval(TICK).pipe(ops.take(3), ops.map(str))
            case "broken":
                raise ValueError("it broke")
            case "ending":
                return ToolResult(content="bye", terminate=True)
            case "single":
                context.update("half")
                return reactivex.timer(TICK).pipe(ops.map(lambda _: "one"))
        raise AssertionError(name)

    mode = ToolExecutionMode.SEQUENTIAL if name == "single" else None
    return tool_from_schema(name, name, {"type": "object"}, body, execution_mode=mode)


blocks = st.one_of(
    st.builds(Say, st.lists(st.sampled_from(["a", "b", ""]), max_size=3).map(tuple)),
    st.builds(Think, st.lists(st.sampled_from(["t"]), max_size=2).map(tuple)),
    st.builds(Call, st.sampled_from(TOOLS)),
    st.builds(Call, st.sampled_from(TOOLS)),
)
ticks = st.integers(0, 3)


@dataclass(frozen=True)
class Answer:
    content: list[Any]
    delay: int
    every: int
    ending: str

    def response(self) -> Response:
        return Response(
            self.content,
            delay=self.delay * TICK,
            every=self.every * TICK,
            error_message="it failed" if self.ending in ("error", "early") else None,
            fails_before_start=self.ending == "early",
            stop_reason="length" if self.ending == "length" else None,
        )


answer = st.builds(
    Answer,
    st.lists(blocks, max_size=4),
    ticks,
    ticks,
    st.sampled_from(["ok", "ok", "ok", "ok", "length", "error", "early"]),
)
deed = st.sampled_from(
    ["steer", "steer", "follow_up", "abort", "dispose", "interrupt", "modes", "prompt", "continue"]
)


@dataclass
class Plan:
    answers: list[Answer] = field(default_factory=list)
    at: list[tuple[int, str]] = field(default_factory=list)
    inside: list[tuple[str, int, str]] = field(default_factory=list)
    sequential: bool = False
    after_answer: bool = False
    all_at_once: bool = False
    slow_hooks: bool = False
    bound: int | None = None


plan = st.builds(
    Plan,
    answers=st.lists(answer, min_size=1, max_size=4),
    at=st.lists(st.tuples(st.integers(0, 16), deed), max_size=4),
    inside=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(1, 4), deed), max_size=3),
    sequential=st.booleans(),
    after_answer=st.booleans(),
    all_at_once=st.booleans(),
    slow_hooks=st.booleans(),
    bound=st.sampled_from([None, None, 1, 2]),
)


class Play:
    """One plan, performed in virtual time and watched."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.scheduler = VirtualTimeScheduler()
        self.sent: list[str] = []
        self.names = itertools.count()
        answers = iter(plan.answers)
        self.provider = scripted(lambda context: self.answer(context, next(answers, None)))
        slow = (lambda *_: reactivex.timer(TICK).pipe(ops.map(lambda _: None))) if plan.slow_hooks else None
        self.agent = Agent(
            stream_function=self.provider,
            tools=[make_tool(name, self.started) for name in TOOLS if name != "unknown"],
            scheduler=self.scheduler,
            tool_execution=ToolExecutionMode.SEQUENTIAL if plan.sequential else ToolExecutionMode.PARALLEL,
            steering_point=SteeringPoint.AFTER_ANSWER if plan.after_answer else SteeringPoint.AFTER_TURN,
            steering_mode=QueueMode.ALL if plan.all_at_once else QueueMode.ONE_AT_A_TIME,
            before_tool_call=slow,
            after_tool_call=slow,
            prepare_next_turn=slow,
            max_concurrency=plan.bound,
        )
        self.watch = Watch(self.agent)
        self.wrong: list[str] = []
        self.runs: list[Any] = []

    def started(self, call_id: str) -> None:
        # What a tool or a provider raises is data to the runtime, so it is noted and asserted later.
        if not self.watch.running.get(call_id):
            self.wrong.append(f"the body of {call_id} was entered and the call is not open")

    def answer(self, context: Any, answer: Answer | None) -> Response:
        try:
            assert_transcript_valid(context.messages)
            assert self.watch.open == ["run", "turn"], "a request outside a turn"
        except AssertionError as error:
            self.wrong.append(str(error))
        return answer.response() if answer else Response(["the end"])

    def perform(self, deed: str) -> None:
        match deed:
            case "steer" | "interrupt":
                self.agent.steer(self.message(), interrupt=deed == "interrupt")
            case "follow_up":
                self.agent.follow_up(self.message())
            case "abort":
                self.agent.abort()
            case "dispose":
                if self.runs:
                    self.runs[-1].dispose()
            case "modes":
                modes = [QueueMode.ALL, QueueMode.ONE_AT_A_TIME]
                self.agent.steering_mode = modes[self.agent.steering_mode is QueueMode.ALL]
                self.agent.follow_up_mode = modes[self.agent.follow_up_mode is QueueMode.ALL]
            case "prompt":
                name = self.message()
                self.start(lambda: self.agent.prompt(name), refused=lambda: self.sent.remove(name))
            case "continue":
                self.start(self.agent.continue_)

    def start(self, begin: Any, refused: Any = lambda: None) -> None:
        try:
            self.runs.append(begin())
        except AgentBusyError:
            assert self.agent.active_run is not None
            refused()
        except ContinueError:
            assert not self.agent.has_queued_messages()

    def message(self) -> str:
        name = f"m{next(self.names)}"
        self.sent.append(name)
        return name

    def at_event(self, kind: str, nth: int, what: str) -> Callable[[Any], None]:
        left = itertools.count(nth - 1, -1)

        def on_event(event: Any) -> None:
            if event.type == kind and next(left) == 0:
                self.perform(what)

        return on_event

    def run(self) -> None:
        for kind, nth, what in self.plan.inside:
            self.agent.subscribe(self.at_event(kind, nth, what))
        last = Watch(self.agent)
        for tick, what in self.plan.at:
            self.scheduler.schedule_absolute(tick * TICK + 0.5, lambda *_, what=what: self.perform(what))
        self.perform("prompt")
        self.scheduler.advance_by(400 * TICK)
        assert self.agent.active_run is None, "the run does not end"
        heard = len(self.watch.events)
        self.scheduler.advance_by(100 * TICK)
        assert len(self.watch.events) == heard, "something came after the end"
        assert self.wrong == []
        self.watch.at_rest()
        assert last.events == self.watch.events, "listeners saw different orders"
        said = [message.text for message in self.agent.messages if message.role == "user"]
        waiting = [message.text for message in (*self.agent.steering_queue, *self.agent.follow_up_queue)]
        assert sorted([*said, *waiting]) == sorted(self.sent), "a message was lost or doubled"


@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan)
def test_brackets_transcript_state_and_queues_hold_whatever_happens_when(plan: Plan) -> None:
    Play(plan).run()
