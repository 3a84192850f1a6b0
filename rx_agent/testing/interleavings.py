"""The library's property test for users' agents: concurrent things in any order, aborts and steering anywhere."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from rx_agent.agent import Agent
from rx_agent.marble_text import seconds_text
from rx_agent.messages import UserMessage
from rx_agent.testing.actions import Action, abort, dispose, follow_up, steer
from rx_agent.testing.checks import Guard
from rx_agent.testing.stage import Marbles

Kind: TypeAlias = Literal["abort", "dispose", "steer", "interrupt", "follow_up"]


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Something a user might do at any moment."""

    time: float
    kind: Kind
    number: int = 0

    def action(self) -> Action:
        """As an action."""
        text = f"{self.kind} {self.number}"
        match self.kind:
            case "abort":
                return abort()
            case "dispose":
                return dispose()
            case "steer":
                return steer(text)
            case "interrupt":
                return steer(text, interrupt=True)
            case "follow_up":
                return follow_up(text)

    def code(self) -> str:
        """As source text."""
        match self.kind:
            case "abort" | "dispose":
                return f"{self.kind}()"
            case "interrupt":
                return f'steer("interrupt {self.number}", interrupt=True)'
            case _:
                return f'{self.kind}("{self.kind} {self.number}")'


@dataclass(frozen=True, slots=True)
class Plan:
    """One way a script can go: an order of what falls on one instant, and what the user does beside it."""

    seed: int | None
    """Orders the timers of one instant; None leaves them as they were set."""
    disturbances: tuple[Disturbance, ...] = ()


class InterleavingError(AssertionError):
    """A way was found in which an invariant breaks. ``plan`` is the shortest found, ``script`` the test to paste."""

    def __init__(self, message: str, plan: Plan, script: str) -> None:
        super().__init__(f"{message}\n\nA test that shows it:\n\n{script}")
        self.plan = plan
        self.script = script


Script: TypeAlias = Callable[[Marbles], None]
Factory: TypeAlias = Callable[[Marbles], Agent]


def check_interleavings(
    agent_factory: Factory | None,
    script: Script,
    *,
    examples: int = 200,
    seed: int = 0,
    kinds: Sequence[Kind] = ("abort", "dispose", "steer", "interrupt", "follow_up"),
    check: Callable[[Marbles], None] | None = None,
) -> int:
    """Plays ``script`` in ``examples`` ways and says how many there were; raises the shortest one that breaks.

    ``script(marbles)`` draws model, tools and user; ``agent_factory(marbles)`` makes the agent (None: the stage's
    own). Each way orders what falls on one instant differently, and disturbs the run with up to three of ``kinds``
    at random ticks. After every event and at the end it must hold that brackets nest, each call has one result, the
    state is the fold of the events, no message that was queued is lost or doubled, and nothing is left behind; and
    what ``check(marbles)`` asserts.

    Raises :class:`InterleavingError`, whose text ends in a test to paste. The same ``seed`` gives the same ways.

    >>> def script(marbles: Marbles) -> None:
    ...     marbles.model("-a|")
    ...     marbles.user("p", p=prompt("Hi"))
    >>> from rx_agent.testing import prompt
    >>> check_interleavings(None, script, examples=20)
    20
    """
    length = _length_of(agent_factory, script)
    dice = random.Random(seed)
    for number in range(examples):
        plan = _plan(dice, length, kinds) if number else Plan(None)
        problem = _problem(agent_factory, script, plan, check)
        if problem is not None:
            shortest, problem = _shrunk(agent_factory, script, plan, check, problem)
            raise InterleavingError(problem, shortest, _as_test(shortest))
    return examples


def _plan(dice: random.Random, length: float, kinds: Sequence[Kind]) -> Plan:
    count = dice.choice((0, 1, 1, 2, 3)) if kinds else 0
    ticks = max(1, round(length * 2))
    return Plan(
        dice.randrange(2**32),
        tuple(
            sorted(
                (
                    Disturbance(dice.randrange(ticks + 1) / 2, dice.choice(list(kinds)), number)
                    for number in range(count)
                ),
                key=lambda each: each.time,
            )
        ),
    )


def _stage(plan: Plan) -> Marbles:
    return Marbles(order=None if plan.seed is None else random.Random(plan.seed).random)


def _length_of(agent_factory: Factory | None, script: Script) -> float:
    """How long the undisturbed script lasts, in seconds; capped, so that ticks stay dense."""
    stage = _stage(Plan(None))
    try:
        _set(stage, agent_factory, script)
        last = 0.0

        def note(_: Any) -> None:
            nonlocal last
            last = stage.time

        stage.agent.events.subscribe(note)
        stage.play()
        return min(last + 2, 10_000)
    finally:
        stage.close()


def _set(stage: Marbles, agent_factory: Factory | None, script: Script) -> None:
    script(stage)
    if agent_factory is not None:
        stage.agent = agent_factory(stage)


def _problem(
    agent_factory: Factory | None, script: Script, plan: Plan, check: Callable[[Marbles], None] | None
) -> str | None:
    stage = _stage(plan)
    try:
        _set(stage, agent_factory, script)
        guard = Guard(stage.agent)
        for each in plan.disturbances:
            stage.act_at(each.time, each.action())
        stage.play()
        guard.at_rest()
        _queues_kept(stage, plan)
        if check is not None:
            check(stage)
    except AssertionError as error:
        return str(error)
    finally:
        stage.close()
    return None


def _queues_kept(stage: Marbles, plan: Plan) -> None:
    """Every message that was queued is in the transcript or still in its queue, once."""
    agent = stage.agent
    waiting = [*agent.steering_queue, *agent.follow_up_queue]
    there = Counter(
        message.text for message in [*agent.messages, *waiting] if isinstance(message, UserMessage)
    )
    for each in plan.disturbances:
        if each.kind in ("steer", "interrupt", "follow_up"):
            count = there[f"{each.kind} {each.number}"]
            if count != 1:
                name = f"{each.kind} {each.number}"
                raise AssertionError(f"{name}, queued at {seconds_text(each.time)}, is there {count} times")


def _shrunk(
    agent_factory: Factory | None,
    script: Script,
    plan: Plan,
    check: Callable[[Marbles], None] | None,
    problem: str,
) -> tuple[Plan, str]:
    """The shortest plan that still fails: without an order, with fewer disturbances, at rounder and earlier times."""
    progress = True
    while progress:
        progress = False
        for candidate in _simpler(plan):
            found = _problem(agent_factory, script, candidate, check)
            if found is not None:
                plan, problem, progress = candidate, found, True
                break
    return plan, problem


def _simpler(plan: Plan) -> list[Plan]:
    several = plan.disturbances
    candidates = [
        replace(plan, disturbances=several[:place] + several[place + 1 :]) for place in range(len(several))
    ]
    if plan.seed is not None:
        candidates.insert(0, replace(plan, seed=None))
    for place, each in enumerate(several):
        for time in sorted({0.0, float(int(each.time)), each.time // 2}):
            if time < each.time:
                moved = replace(each, time=time)
                candidates.append(
                    replace(plan, disturbances=(*several[:place], moved, *several[place + 1 :]))
                )
    return candidates


def _as_test(plan: Plan) -> str:
    lines = ["def test_found_by_check_interleavings(marbles):"]
    if plan.seed is not None:
        lines = [
            "def test_found_by_check_interleavings():",
            f"    marbles = Marbles(order=random.Random({plan.seed}).random)",
        ]
    lines += ["    script(marbles)", "    guard = Guard(marbles.agent)"]
    lines += [f"    marbles.act_at({each.time:g}, {each.code()})" for each in plan.disturbances]
    lines += ["    marbles.play()", "    guard.at_rest()", "    print(marbles.picture())"]
    return "\n".join(lines)
