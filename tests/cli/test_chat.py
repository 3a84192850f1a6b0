"""The chat on a terminal and in a pipe: what a line does while the agent works, and what it does while not."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import Callable
from typing import Any, Self

import pytest
from reactivex.scheduler.eventloop import AsyncIOScheduler

from rx_agent import Agent, AgentEndEvent, UserMessage
from rx_agent.cli.chat import Chat
from rx_agent.cli.output import Output
from rx_agent.cli.printer import Printer
from rx_agent.errors import ConfigurationError
from rx_agent.providers.scripted import Response, say, scripted
from tests.on_loop import on_loop

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")


def slowly(text: str) -> Response:
    """An answer that takes 0.6 seconds."""
    return Response([say(text, ".")], every=0.3)


class Talk:
    """A chat whose other end is a pseudo-terminal (or a pipe) that the test types on."""

    def __init__(self, *responses: Any, terminal: bool = True) -> None:
        if terminal:
            import pty

            self._typing, self._reading = pty.openpty()
        else:
            self._reading, self._typing = os.pipe()
        self.shown, self.notes = io.StringIO(), io.StringIO()
        self.agent = Agent(stream_function=scripted(responses))
        output = Output(self.shown, {})
        printer = Printer(output, Output(self.notes, {}))
        self._scheduler = AsyncIOScheduler(asyncio.get_running_loop())
        self._shows = printer.show(self.agent.events, self._scheduler)
        self.runs = 0
        chat = Chat(self.agent, printer, self._scheduler, self._count)
        self._talk = asyncio.ensure_future(chat.talk(self._reading, output))

    def _count(self) -> None:
        self.runs += 1

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._talk.cancel()
        await asyncio.gather(self._talk, return_exceptions=True)
        self.agent.abort()
        await self.agent.wait_for_idle()
        self._shows.dispose()
        for descriptor in (self._reading, self._typing):
            try:
                os.close(descriptor)
            except OSError:
                continue

    def type(self, text: str) -> None:
        os.write(self._typing, text.encode())

    def close(self) -> None:
        os.close(self._typing)

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(5):
            while not condition():  # noqa: ASYNC110  (what is waited for is state, not an event)
                await asyncio.sleep(0.005)

    async def working(self) -> None:
        await self.until(
            lambda: self.agent.state.streaming_message and self.agent.state.streaming_message.text
        )  # type: ignore[union-attr]

    async def idle(self, runs: int) -> None:
        await self.until(lambda: self.runs >= runs)

    async def over(self) -> AgentEndEvent | None:
        return await asyncio.wait_for(self._talk, 5)

    @property
    def said(self) -> list[str]:
        return [message.text for message in self.agent.messages if isinstance(message, UserMessage)]


@on_loop
async def test_a_line_is_a_question_and_the_conversation_goes_on() -> None:
    async with Talk("one", "two") as talk:
        talk.type("first\n")
        await talk.idle(1)
        talk.type("second\n")
        await talk.idle(2)
        talk.type("/quit\n")
        end = await talk.over()
        assert talk.said == ["first", "second"]
        assert end is not None
        assert end.text == "two"


@on_loop
async def test_a_line_typed_while_the_agent_works_steers_it() -> None:
    async with Talk(slowly("one"), "two") as talk:
        talk.type("first\n")
        await talk.working()
        talk.type("and quick\n")
        await talk.idle(1)
        assert talk.said == ["first", "and quick"]
        assert "» and quick" in talk.shown.getvalue()
        assert "the agent sees that before its next step" in talk.notes.getvalue()


@on_loop
async def test_a_follow_up_comes_when_the_agent_is_through_and_asks_at_once_when_it_is_idle() -> None:
    async with Talk(slowly("one"), "two", "three") as talk:
        talk.type("first\n")
        await talk.working()
        talk.type("/follow then this\n")
        await talk.until(lambda: talk.agent.follow_up_queue)
        await talk.idle(1)
        assert talk.said == ["first", "then this"]
        talk.type("/follow and that\n")
        await talk.idle(2)
        assert talk.said[-1] == "and that"
        talk.type("/follow\n")
        await talk.until(lambda: "/follow what?" in talk.notes.getvalue())


@on_loop
async def test_abort_keeps_what_came_and_the_chat_goes_on() -> None:
    async with Talk(slowly("one"), "two") as talk:
        talk.type("/abort\n")
        await talk.until(lambda: "(nothing is running)" in talk.notes.getvalue())
        talk.type("first\n")
        await talk.working()
        talk.type("queued\n")
        await talk.until(lambda: talk.agent.steering_queue)
        talk.type("/abort\n")
        await talk.idle(1)
        assert talk.agent.messages[-1].text == "one"
        assert "── aborted: 1 turn" in talk.shown.getvalue()
        assert "what was queued goes with the next question" in talk.notes.getvalue()
        talk.type("second\n")
        await talk.idle(2)
        assert sorted(talk.said) == ["first", "queued", "second"]


@on_loop
async def test_reset_forgets_everything_even_while_the_agent_works() -> None:
    async with Talk(slowly("one"), "two") as talk:
        talk.type("first\n")
        await talk.working()
        talk.type("/reset\n")
        await talk.until(lambda: "the conversation is forgotten" in talk.notes.getvalue())
        assert list(talk.agent.messages) == []
        talk.type("second\n")
        await talk.idle(2)
        assert talk.said == ["second"]


@on_loop
async def test_quit_leaves_at_once_on_a_terminal() -> None:
    async with Talk(Response([say("one", "...")], every=30)) as talk:
        talk.type("first\n")
        await talk.until(lambda: talk.agent.active_run)
        talk.type("/quit\n")
        end = await talk.over()
        assert end is not None
        assert end.reason == "aborted"


@on_loop
async def test_help_and_what_is_no_command() -> None:
    async with Talk("one") as talk:
        talk.type("/help\n")
        await talk.until(lambda: "/follow TEXT" in talk.notes.getvalue())
        talk.type("/frobnicate\n")
        await talk.until(lambda: "/frobnicate is no command" in talk.notes.getvalue())
        talk.type("/usr/bin/env is what?\n")
        await talk.idle(1)
        assert talk.said == ["/usr/bin/env is what?"]


@on_loop
async def test_in_a_pipe_the_end_of_input_waits_for_the_answer() -> None:
    async with Talk(slowly("one"), terminal=False) as talk:
        talk.type("first\nline two\n")
        talk.close()
        end = await talk.over()
        assert talk.said == ["first\nline two"]
        assert end is not None
        assert end.text == "one."


@on_loop
async def test_in_a_pipe_quit_waits_for_the_answer_too_and_nothing_behind_it_counts() -> None:
    async with Talk(slowly("one"), terminal=False) as talk:
        talk.type("first\n/quit\nnever\n")
        end = await talk.over()
        assert talk.said == ["first"]
        assert end is not None
        assert end.text == "one."


@on_loop
async def test_a_pipe_that_says_nothing_is_wrong_use() -> None:
    async with Talk(terminal=False) as talk:
        talk.type("\n  \n")
        talk.close()
        with pytest.raises(ConfigurationError, match="there was no prompt"):
            await talk.over()


@on_loop
async def test_a_terminal_that_hangs_up_ends_the_chat() -> None:
    async with Talk("one") as talk:
        talk.type("first\n")
        await talk.idle(1)
        talk.close()
        assert (await talk.over()).text == "one"  # type: ignore[union-attr]
