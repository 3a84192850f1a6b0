"""Is the cost linear? Ten times the turns, tools or deltas may take at most twelve times as long.

    python -m tests.benchmarks.linear

CPU seconds of this process, each size once after a warm-up; prints a line per kind and exits with 1 where a ratio is
above twelve. The garbage collector is off while a size is measured: its full collections come at sizes of its own
choosing.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable

from rx_agent import Agent, tool
from rx_agent.providers.scripted import call, say, scripted

LIMIT = 12.0


@tool
def nothing() -> str:
    """Does nothing."""
    return "done"


def turns(count: int) -> None:
    """A run of ``count`` turns, each with a tool call but the last."""
    left = iter(range(count - 1))
    agent = Agent(
        stream_function=scripted(lambda _: [call("nothing")] if next(left, None) is not None else "end"),
        tools=[nothing],
    )
    agent.prompt("go")
    assert len(agent.messages) == 2 * count


def tools(count: int) -> None:
    """One batch of ``count`` parallel calls."""
    agent = Agent(stream_function=scripted([[call("nothing")] * count, "end"]), tools=[nothing])
    agent.prompt("go")
    assert len(agent.messages) == count + 3


def deltas(count: int) -> None:
    """One answer of ``count`` deltas, with a listener and an observer."""
    agent = Agent(stream_function=scripted([[say(*["word "] * count)]]))
    seen = 0

    def see(_: object) -> None:
        nonlocal seen
        seen += 1

    agent.subscribe(see)
    agent.events.subscribe(see)
    assert len(agent.prompt("go").text) == 5 * count
    assert seen > 2 * count


def seconds(work: Callable[[int], None], count: int) -> float:
    """CPU seconds of one go."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        work(count)
        return time.process_time() - start
    finally:
        gc.enable()


def main() -> int:
    worst = 0.0
    for work, small in ((turns, 1000), (tools, 100), (deltas, 10_000)):
        work(small // 10)
        one, ten = seconds(work, small), seconds(work, small * 10)
        worst = max(worst, ten / one)
        print(
            f"{work.__name__:7} {small:6} in {one:6.2f} s   {small * 10:6} in {ten:6.2f} s   "
            f"ratio {ten / one:5.1f}   {ten / small / 10 * 1e6:7.1f} us each"
        )
    return 0 if worst <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
