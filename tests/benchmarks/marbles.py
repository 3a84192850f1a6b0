"""How fast is the testing kit? A thousand small tests, and a day of a thousand turns in virtual time.

    python -m tests.benchmarks.marbles

Prints wall-clock seconds of this process; exits with 1 where a thousand tests take 10 s or the day 5 s.
"""

from __future__ import annotations

import sys
import time

from rx_agent.testing import Marbles, abort, call, prompt, steer


def text_test() -> None:
    """An answer in two pieces."""
    with Marbles() as stage:
        stage.model("--a-b|", a="Hel", b="lo")
        stage.user("p", p=prompt("Hi"))
        stage.expect(text="--a-b|", requests="r")


def abort_test() -> None:
    """An answer that is cut short."""
    with Marbles() as stage:
        stage.model("-a-b-c-d|")
        stage.user("p---x", p=prompt("Hi"), x=abort())
        stage.expect(text="-a-b!", run="^---!")


def tool_test() -> None:
    """Two turns, a tool with progress, a steering message; three lanes compared."""
    with Marbles() as stage:
        stage.model("-d|", "--b-c|", d=call("dig"), b="Found ", c="gold.")
        stage.tool("dig", "---p---(r|)", p="half way", r="done")
        stage.user("u---s", u=prompt("Dig!"), s=steer("Faster"))
        stage.expect(
            dig="      --^--p---r",
            text="     -----------b-c",
            steering=" ----1----0",
        )


def day() -> None:
    """A thousand turns, each with a slow tool: 24 hours and more."""
    with Marbles() as stage:
        stage.model(*["-w|"] * 999, "-e|", w=call("wait"), e="good night")
        stage.tool("wait", "84 s (r|)", r="done")
        stage.user("p", p=prompt("Go"))
        stage.play()
        assert stage.agent.messages[-1].text == "good night"
        assert stage.time > 85_000


def main() -> int:
    kinds = (text_test, abort_test, tool_test)
    began = time.perf_counter()
    for number in range(1_000):
        kinds[number % 3]()
    tests = time.perf_counter() - began
    began = time.perf_counter()
    day()
    turns = time.perf_counter() - began
    print(f"1,000 small tests  {tests:5.2f} s\na day of 1,000 turns {turns:5.2f} s")
    return int(tests >= 10 or turns >= 5)


if __name__ == "__main__":
    sys.exit(main())
