"""A run as text, in virtual time: what is shown, in which order, and with which durations."""

from __future__ import annotations

import io
from typing import Any

import pytest
import reactivex
from reactivex import Observable
from reactivex import operators as ops
from reactivex.testing import TestScheduler

from rx_agent import Agent, ImageContent, ToolContext, ToolResult, Usage, tool
from rx_agent.cli.output import Output, harmless
from rx_agent.cli.printer import Printer, shown_arguments, shown_result
from rx_agent.cli.renderer import JsonLines, OnlyAnswer, Renderer
from rx_agent.event_json import event_from_json
from rx_agent.models import Cost, Model
from rx_agent.providers.scripted import Response, call, say, scripted, think

MODEL = Model(id="m", api="scripted", provider="acme")


class Screen(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@tool
def slow(seconds: float, context: ToolContext) -> Observable[str]:
    """Takes its time."""
    return reactivex.concat(
        reactivex.timer(seconds / 2).pipe(ops.map(lambda _: "half way")),
        reactivex.timer(seconds / 2).pipe(ops.map(lambda _: "done\nreally\n")),
    )


@tool
def broken() -> str:
    """Fails."""
    raise ValueError("no such thing")


def shown(*responses: Any, stream: io.StringIO | None = None, kind: Any = Printer, env: Any = None) -> str:
    scheduler = TestScheduler()
    stream = stream or io.StringIO()
    errors = io.StringIO()
    renderer: Renderer = kind(Output(stream, env or {}), Output(errors, {}))
    agent = Agent(model=MODEL, stream_function=scripted(responses), tools=[slow, broken], scheduler=scheduler)
    with renderer.show(agent.events, scheduler):
        agent.prompt("Hi")
        scheduler.start()
    return stream.getvalue() + errors.getvalue()


def test_text_tools_progress_results_durations_and_a_summary() -> None:
    usage = Usage(input=1000, output=20, cache_read=234, cost=Cost(input=0.01, output=0.0025))
    text = shown(
        Response(
            [say("Let me ", "see."), call("slow", seconds=4.0), call("broken")],
            delay=1,
            every=0.5,
            usage=usage,
        ),
        Response([think("Hm"), say("It is ", "done.")], usage=usage),
    )
    assert text == (
        "Let me see.\n"
        "\n"
        "→ 1 slow(seconds=4.0)\n"
        "→ 2 broken()\n"
        "✗ 2 broken 0.00 s: no such thing\n"
        "  1 … half way\n"
        "  1 … done really\n"
        "✓ 1 slow 4.00 s: done (+1 line)\n"
        "\n"
        "Hm\n"
        "\n"
        "It is done.\n"
        "\n"
        "── completed: 2 turns · 2 tool calls · 2,468 tokens in (468 cached), 40 out · $0.0250 · 7.0 s · acme:m\n"
    )


def test_text_comes_as_it_streams() -> None:
    scheduler = TestScheduler()
    stream = io.StringIO()
    printer = Printer(Output(stream, {}), Output(io.StringIO(), {}))
    agent = Agent(stream_function=scripted([Response([say("one ", "two")], every=1)]), scheduler=scheduler)
    with printer.show(agent.events, scheduler):
        agent.prompt("Hi")
        scheduler.advance_to(1.5)
        assert stream.getvalue() == "one "
        scheduler.start()


def test_a_failed_run_says_why() -> None:
    text = shown(Response(["so far"], error_message="the server\nis on fire"))
    assert "so far\nerror: the server is on fire\n\n── error: 1 turn" in text


def test_an_answer_that_was_cut_off_is_marked() -> None:
    assert "(cut off: the limit of output tokens was reached)" in shown(
        Response(["so"], stop_reason="length")
    )


def test_an_unknown_price_is_not_called_zero() -> None:
    assert "cost unknown" in shown(Response(["x"], usage=Usage(input=1, output=1)))


def test_steering_is_shown_where_the_model_sees_it() -> None:
    scheduler = TestScheduler()
    stream = io.StringIO()
    printer = Printer(Output(stream, {}), Output(io.StringIO(), {}))
    agent = Agent(
        stream_function=scripted([Response(["one"], delay=1), Response(["two"], delay=1)]),
        scheduler=scheduler,
    )
    with printer.show(agent.events, scheduler):
        agent.prompt("Hi")
        agent.steer("And\nquick")
        scheduler.start()
    assert stream.getvalue().splitlines()[:5] == ["one", "", "» And quick", "", "two"]


def test_a_terminal_gets_colours_and_a_status_line_that_goes_away() -> None:
    text = shown([call("slow", seconds=2.0)], "ok", stream=Screen())
    assert "\x1b[36m→ 1 slow(seconds=2.0)\x1b[0m\n" in text
    assert "\x1b[2m  1 … half way\x1b[0m\r\x1b[K" in text


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours_where_none_are_wanted(env: dict[str, str]) -> None:
    assert "\x1b" not in shown([call("slow", seconds=2.0)], "ok", stream=Screen(), env=env)


def test_a_model_cannot_play_with_the_terminal() -> None:
    text = shown("\x1b]0;owned\x07\x1b[2Jhi\r\x9b31m", stream=Screen(), env={"NO_COLOR": "1"})
    assert "\x1b" not in text
    assert "\x9b" not in text
    assert "␛]0;owned␇␛[2Jhi" in text
    assert harmless("a\tb\nc") == "a\tb\nc"


def test_a_narrow_encoding_gets_plain_signs_and_loses_no_line() -> None:
    raw = io.BytesIO()
    stream: Any = io.TextIOWrapper(raw, encoding="ascii", newline="\n")
    scheduler = TestScheduler()
    agent = Agent(
        stream_function=scripted([[call("broken")], "Grüße \ud800!"]), tools=[broken], scheduler=scheduler
    )
    printer = Printer(Output(stream, {}), Output(io.StringIO(), {}))
    with printer.show(agent.events, scheduler):
        agent.prompt("Hi")
    text = raw.getvalue().decode("ascii")
    assert "-> 1 broken()" in text
    assert "failed 1 broken 0.00 s: no such thing" in text
    assert "Gr??e ?!" in text


def test_long_arguments_and_results_are_cut() -> None:
    assert shown_arguments({"text": "x" * 100, "n": 1}) == f'text="{"x" * 58}…, n=1'
    assert shown_arguments({"text": "a\nb\x1b"}) == r'text="a\nb\u001b"'
    assert shown_result(ToolResult(content="\n  one  \ntwo\nthree"), 40) == "one (+2 lines)"
    assert shown_result(ToolResult(content="x" * 50), 10) == "x" * 9 + "…"
    assert shown_result(ToolResult(), 10) == "(empty)"
    assert (
        shown_result(ToolResult(content=ImageContent(data="AA==", mime_type="image/png")), 10)
        == "(1 without text)"
    )


def test_json_lines_are_the_events() -> None:
    lines = shown([call("broken")], "ok", kind=JsonLines).splitlines()
    types = [event_from_json(line).type for line in lines]
    assert (types[0], types[-1]) == ("agent_start", "agent_end")
    assert types.count("turn_end") == 2


def test_only_the_answer() -> None:
    assert shown(["thinking aloud", call("broken")], "It is done.", kind=OnlyAnswer) == "It is done.\n"
    assert shown(Response(error_message="no luck"), kind=OnlyAnswer) == "rx-agent: no luck\n"


class Full(io.StringIO):
    """A stream that nobody reads."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


def test_output_that_is_lost_is_told_once_and_then_left_alone() -> None:
    output = Output(Full(), {})
    told: list[bool] = []
    output.on_lost = lambda: told.append(True)
    output.write("a")
    output.write("b")
    assert told == [True]
    assert isinstance(output.lost, BrokenPipeError)
