"""The stage on which an agent is tested: a model, tools, a user and a clock, all drawn as marbles."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Self, cast

import reactivex
from reactivex import Observable, abc
from reactivex import operators as ops
from reactivex.disposable import CompositeDisposable

from rx_agent.agent import Agent
from rx_agent.events import AgentEvent
from rx_agent.marble_text import seconds_text
from rx_agent.providers.base import Context
from rx_agent.providers.scripted import Scriptable
from rx_agent.run import Run
from rx_agent.state import AgentState
from rx_agent.testing.actions import Action
from rx_agent.testing.diagram import DiagramError, Marble, read, seconds
from rx_agent.testing.fakes import DiagramResponse, Error, FakeModel, FakeTool, Legend, Meaning, played
from rx_agent.testing.lanes import (
    Difference,
    Record,
    Wanted,
    compared,
    difference,
    failure_text,
    text_of,
    wanted_of,
    whole_picture,
)
from rx_agent.testing.virtual_loop import VirtualLoop, VirtualScheduler
from rx_agent.timeline import Entry

DAY = 86_400.0


class Marbles:
    """A test of an agent, in virtual time. In pytest it is the fixture ``marbles``.

    Say who plays what (:meth:`legend`, :meth:`model`, :meth:`tool`, :meth:`user`), then what is to come out
    (:meth:`expect`), lane by lane. A character of a diagram lasts ``tick`` (one second unless changed first).

    >>> from rx_agent.testing import prompt
    >>> marbles = Marbles()
    >>> _ = marbles.model("--a-b|", a="Hel", b="lo")
    >>> marbles.user("p", p=prompt("Hi"))
    >>> marbles.expect(text="--a-b|", requests="r")
    >>> marbles.agent.messages[-1].text
    'Hello'
    >>> marbles.close()
    """

    def __init__(self, tick: str | float = 1.0, *, order: Callable[[], float] | None = None) -> None:
        self.tick = tick
        """What a character lasts: seconds, or words such as "100 ms"."""
        self.limit: str | float = 7 * DAY
        """Virtual time after which a run that still goes on is given up."""
        self.loop = VirtualLoop(order=order)
        self.scheduler = VirtualScheduler(self.loop)
        self.record = Record()
        self.runs: list[Run] = []
        """The runs that the user's prompts started."""
        self.fake_model = FakeModel()
        self.fake_model.on_request = lambda request: self._note("requests", request.text)
        self.tools: dict[str, FakeTool] = {}
        self._legend: dict[str, Meaning] = {}
        self._agent: Agent | None = None
        self._options: dict[str, Any] = {}
        self._actions: list[tuple[float, Action]] = []
        self._failed_actions: list[str] = []
        self._hot: list[Callable[[abc.SchedulerBase], Any]] = []
        self._own = CompositeDisposable()
        self._watched: list[tuple[str, Callable[[], Observable[Any]]]] = []
        self._lanes: list[tuple[str, Callable[[AgentEvent], Any]]] = []
        self._last: dict[str, str] = {}
        self._subscribed: dict[str, int] = {}
        self._loop_errors: list[str] = []
        self._played = False

    # --- who plays what ------------------------------------------------------------------------------------

    def legend(self, **meanings: Meaning) -> None:
        """What symbols stand for, in all diagrams: text, ``say``, ``think``, ``call``, ``error``, whole messages,
        images, tool results, actions. A symbol without an entry is its own text.
        """
        self._legend |= meanings

    def model(self, *responses: str | Scriptable, **meanings: Meaning) -> FakeModel:
        """The model's next responses, a diagram each (or data, as ``scripted`` takes it).

        Times count from each request.
        """
        self.legend(**meanings)
        self.fake_model.add(*(self._response(response) for response in responses))
        return self.fake_model

    def _response(self, response: Any) -> Any:
        if not isinstance(response, str):
            return response

        def drawn_response(_: Context) -> DiagramResponse:
            return DiagramResponse(read(response, tick=self._tick), self._legend)

        return drawn_response

    def tool(self, name: str, *plays: str | Callable[..., Any], **meanings: Any) -> FakeTool:
        """A tool, a diagram for each call (the last for all further ones); times count from each call.

        ``timeout``, ``execution_mode``, ``parameters`` and ``description`` are the tool's; any other name is a
        symbol's meaning.
        """
        options = {
            key: meanings.pop(key)
            for key in ("timeout", "execution_mode", "parameters", "description")
            if key in meanings
        }
        self.legend(**meanings)
        made = self.tools[name] = FakeTool(name, *plays, legend=self._legend, tick=self.tick, **options)
        return made

    def user(self, diagram: str, **meanings: Meaning) -> None:
        """What the user does, at these times from the start of the test: actions such as ``prompt("Hi")``."""
        self.legend(**meanings)
        for marble in read(diagram, tick=self._tick).marbles:
            action = self._legend.get(marble.symbol)
            if not isinstance(action, Action):
                raise DiagramError(
                    f"user lane: {marble.symbol!r} stands for {action!r}, which is no action; give "
                    f'{marble.symbol}=prompt("…"), steer("…"), follow_up("…"), abort() or do(function)'
                )
            self.act_at(marble.time, action)

    def act_at(self, time: str | float, action: Action) -> None:
        """One more thing that the user does, at ``time`` (seconds or words) from the start of the test."""
        self._actions.append((seconds(time), action))

    def cold(self, diagram: str, **meanings: Any) -> Observable[Any]:
        """A source for pipelines: each subscription plays the diagram from its start."""
        self.legend(**meanings)
        return self._tracked(f"cold {diagram!r}", lambda: self._values(diagram))

    def hot(self, diagram: str, **meanings: Any) -> Observable[Any]:
        """A source for pipelines: the diagram is played once, from the start of the test."""
        self.legend(**meanings)
        shared = self._values(diagram).pipe(ops.publish())
        self._hot.append(shared.connect)
        return self._tracked(f"hot {diagram!r}", lambda: shared)

    def _values(self, diagram: str) -> Observable[Any]:
        def items(marble: Marble) -> Any:
            meaning = self._legend.get(marble.symbol, marble.symbol)
            if marble.symbol == "#" or isinstance(meaning, Error):
                raise RuntimeError(meaning.message if isinstance(meaning, Error) else "it failed")
            if marble.symbol not in "|^":
                yield meaning

        return played(read(diagram, tick=self._tick), items)

    # --- the agent -----------------------------------------------------------------------------------------

    def configure(self, **options: Any) -> None:
        """Arguments for the agent that :attr:`agent` makes, such as ``system_prompt`` or hooks."""
        self._options |= options

    @property
    def agent(self) -> Agent:
        """The agent under test: made of the model and the tools above, or one of your own that was assigned.

        ``marbles.agent = build_agent(stream_function=marbles.fake_model)``; it then runs on :attr:`scheduler`.
        """
        if self._agent is None:
            options = {
                "stream_function": self.fake_model,
                "tools": list(self.tools.values()),
                **self._options,
            }
            self.agent = Agent(**cast(Any, options))
        assert self._agent is not None
        return self._agent

    @agent.setter
    def agent(self, agent: Agent) -> None:
        self._agent = agent
        agent.scheduler = self.scheduler
        agent.events.subscribe(self._see)
        for lane, queue in (("steering", agent.steering_queue), ("follow_ups", agent.follow_up_queue)):
            queue.contents.subscribe(
                lambda waiting, lane=lane: self._note_change(lane, str(len(waiting)), "0")
            )

    def _see(self, event: AgentEvent) -> None:
        self.record.see(self.time, event)
        if event.type != "message_update":
            self._note_change("state", _state_symbol(self.agent.state), "i")
        for name, value_of in self._lanes:
            if (value := value_of(event)) is not None:
                self._note(name, str(value))

    def _note(self, lane: str, value: str, kind: str = "value") -> None:
        self.record.note(self.time, Entry(lane, kind, value))

    def _note_change(self, lane: str, value: str, first: str) -> None:
        """Notes ``value`` where it is not what the lane shows already (``first`` at the start)."""
        if self._last.get(lane, first) != value:
            self._last[lane] = value
            self._note(lane, value)
            if lane in ("steering", "follow_ups"):
                agent = self.agent
                self._note_change("queue", str(len(agent.steering_queue) + len(agent.follow_up_queue)), "0")

    def lane(self, name: str, value_of: Callable[[AgentEvent], Any]) -> None:
        """A lane of your own: ``value_of(event)`` as text, where it is not None."""
        self._lanes.append((name, value_of))

    def watch(self, name: str, source: Observable[Any] | Callable[[], Observable[Any]]) -> None:
        """A lane of an observable's items (as text), end and error; subscribed at the start of the test."""
        if isinstance(source, Observable):
            fixed = cast("Observable[Any]", source)
            self._watched.append((name, lambda: fixed))
        else:
            self._watched.append((name, source))

    @property
    def time(self) -> float:
        """Seconds of virtual time since the start."""
        return self.loop.time()

    @property
    def _tick(self) -> float:
        return seconds(self.tick)

    # --- playing -------------------------------------------------------------------------------------------

    def play(self) -> None:
        """Plays everything to its end, once. Fails with what was left behind or touched the wall clock."""
        if self._played:
            return
        self._played = True
        agent = self.agent
        self.loop.set_exception_handler(lambda _, context: self._loop_errors.append(_complaint(context)))
        for name, source in self._watched:
            self._subscribe(name, source)
        for connect in self._hot:
            self.loop.call_soon(connect, self.scheduler)
        for time, action in self._actions:
            self.loop.call_at(time, self._act, agent, action)
        self.loop.horizon = seconds(self.limit)
        self.loop.rest()
        self._own.dispose()
        self._check(agent)

    def _subscribe(self, name: str, source: Callable[[], Observable[Any]]) -> None:
        def start() -> None:
            subscription = source().subscribe(
                lambda item: self._note(name, text_of(item)),
                lambda error: self._note(name, str(error), "fail"),
                lambda: self._note(name, "", "end"),
                scheduler=self.scheduler,
            )
            self._own.add(subscription)

        self.loop.call_soon(start)

    def _act(self, agent: Agent, action: Action) -> None:
        self._note("user", str(action))
        try:
            outcome = action.perform(agent)
        except Exception as error:
            self._failed_actions.append(
                f"user: {action} at {seconds_text(self.time)} raised {type(error).__name__}: {error}"
            )
        else:
            if isinstance(outcome, Run):
                self.runs.append(outcome)

    def _tracked(self, what: str, source: Callable[[], Observable[Any]]) -> Observable[Any]:
        def begin(_: abc.SchedulerBase) -> Observable[Any]:
            self._subscribed[what] = self._subscribed.get(what, 0) + 1
            return source().pipe(ops.finally_action(end))

        def end() -> None:
            self._subscribed[what] -= 1

        return reactivex.defer(begin)

    def _check(self, agent: Agent) -> None:
        problems = [*self._failed_actions, *self.loop.offences, *self._loop_errors]
        if agent.active_run is not None:
            when = seconds_text(self.time)
            problems.append(f"the run never ends: nothing happens any more after {when}, and it still waits")
        left = [task for task in asyncio.all_tasks(self.loop) if not task.done()]
        problems += [f"a task is left behind: {_name(task)}" for task in left]
        if agent.active_run is None:
            problems += [
                f"a timer is left behind, due at {seconds_text(timer.when())}: {_callback(timer)}"
                for timer in self.loop.timers()
            ]
        problems += [
            f"a subscription is left behind: {what}" for what, count in self._subscribed.items() if count
        ]
        if problems:
            picture = whole_picture(self.record, self._legend)
            raise AssertionError("\n".join(problems) + f"\n\n{picture}")

    # --- what is to come out -------------------------------------------------------------------------------

    def expect(self, **lanes: str) -> None:
        """Plays, and compares each lane named with its diagram; times count from the start of the test.

        ============================  ===============================================================
        ``run``, ``turns``            ``^`` begins, ``|`` ends, ``!`` aborted, ``#`` failed
        ``messages``                  ``u``, ``a``, ``t`` by role, or their text
        ``text``, ``thinking``        each delta; ``|``, ``!``, ``#`` end an answer (compared if given)
        ``calls``                     what the model calls: a tool's name, or ``call(...)``
        each tool, by its name        ``^`` begins, partial results and the result by their text, ``#`` fails
        ``requests``                  ``r``, or the last message's text
        ``steering``, ``follow_ups``  how many wait, at each change; ``queue`` is both together
        ``state``                     ``s`` streaming, ``t`` tools running, ``i`` idle, ``e`` idle, failed
        ``user``                      the actions
        your own                      of :meth:`lane` and :meth:`watch`
        ============================  ===============================================================

        A symbol of the legend stands for its meaning's text; one that means a function is a check of the text.
        Lanes that are not named are not compared.

        Raises ``AssertionError`` with both timelines where one differs.
        """
        self.play()
        worst: tuple[Difference, list[Wanted], list[Any]] | None = None
        for name, diagram in lanes.items():
            wanted = wanted_of(read(diagram, tick=self._tick), self._legend)
            happened = compared(name, wanted, self.record.lane(name))
            found = difference(name, wanted, happened)
            if found is not None and (worst is None or found.time < worst[0].time):
                worst = found, wanted, happened
        if worst is not None:
            raise AssertionError(failure_text(*worst, self.record, self._legend))

    def picture(self) -> str:
        """Everything that happened, drawn as text."""
        return whole_picture(self.record, self._legend)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancels what is left and closes the loop."""
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        for timer in self.loop.timers():
            timer.cancel()
        self.loop.rest()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    @property
    def played(self) -> bool:
        """Whether the test has been played."""
        return self._played


def _state_symbol(state: AgentState) -> str:
    if not state.is_streaming:
        return "e" if state.error_message else "i"
    return "t" if state.pending_tool_calls else "s"


def _complaint(context: dict[str, Any]) -> str:
    error = context.get("exception")
    return f"{context.get('message', 'the loop complains')}" + (f": {error!r}" if error is not None else "")


def _name(task: asyncio.Task[Any]) -> str:
    coroutine = task.get_coro()
    return str(getattr(coroutine, "__qualname__", coroutine))


def _callback(timer: asyncio.TimerHandle) -> str:
    callback = getattr(timer, "_callback", None)
    return str(getattr(callback, "__qualname__", callback))


__all__ = ["Legend", "Marbles"]
