"""A conversation over standard input: lines are prompts, or steering while the agent works; commands begin with /."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable

from reactivex import abc
from reactivex.disposable import SerialDisposable

from rx_agent.agent import Agent
from rx_agent.cli.output import Output
from rx_agent.cli.renderer import Renderer
from rx_agent.cli.standard_input import bounded, entries_of, lines_of, pieces_of, text_of
from rx_agent.errors import ConfigurationError
from rx_agent.events import AgentEndEvent
from rx_agent.run import Run

HELP = """\
A line is a question; typed while the agent works, it steers it: the model sees it before its next step.
/follow TEXT   asked when the agent is through
/abort         stops the answer, keeping what came
/reset         forgets the conversation (and stops the answer)
/quit          leaves (Ctrl-D too, after the running answer)"""


class Chat:
    """Prompts, steers and aborts ``agent`` as the user says. ``run_ended`` is called after each run."""

    def __init__(
        self, agent: Agent, renderer: Renderer, scheduler: abc.SchedulerBase, run_ended: Callable[[], object]
    ) -> None:
        self._agent = agent
        self._renderer = renderer
        self._scheduler = scheduler
        self._run_ended = run_ended
        self._input = SerialDisposable()
        self._leaving = False
        self._end: AgentEndEvent | None = None
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._commands: dict[str, Callable[[str], None]] = {
            "/follow": self._follow,
            "/abort": self._abort,
            "/reset": self._reset,
            "/help": self._help,
            "/quit": self._quit,
            "/exit": self._quit,
        }
        self._is_terminal = True
        self._prompted = False

    async def talk(self, descriptor: int, output: Output) -> AgentEndEvent | None:
        """Talks until ``/quit`` or the end of input; returns the last run's end.

        Raises ``ConfigurationError`` where input that is no terminal says nothing at all.
        """
        self._is_terminal = os.isatty(descriptor)
        if self._is_terminal and output.is_terminal:
            model = self._agent.model
            self._renderer.note(f"{model.provider}:{model.id}; /help lists the commands")
        self._await_input()
        output.on_lost = self._output_lost
        pieces = pieces_of(descriptor)
        text = text_of(pieces if self._is_terminal else bounded(pieces))
        entries = entries_of(lines_of(text), self._commands, self._scheduler)
        self._input.disposable = entries.subscribe(
            self._entered, self._over.set_exception, self._input_ended, scheduler=self._scheduler
        )
        with self._input:
            await self._over
        if self._prompted and output.is_terminal:
            output.write("\n")  # the shell's own prompt shall not stand behind ours
        if self._end is None and not self._is_terminal:
            raise ConfigurationError("there was no prompt, neither as an argument nor on standard input")
        return self._end

    # --- input ---------------------------------------------------------------------------------------------

    def _entered(self, text: str) -> None:
        self._prompted = False
        word, _, rest = text.partition(" ")
        if self._is_terminal and text.strip().lower() in ("exit", "quit"):
            word = "/quit"
        command = self._commands.get(word.lower())
        if command is not None:
            command(rest.strip())
        elif re.fullmatch(r"/[A-Za-z]+", word):
            self._renderer.note(f"{word} is no command; /help lists them")
        elif self._agent.active_run is not None:
            self._agent.steer(text)
            self._renderer.note("(the agent sees that before its next step)")
        else:
            self._watch(self._agent.prompt(text))
        if self._agent.active_run is None and not self._leaving:
            self._await_input()

    def _await_input(self) -> None:
        if self._is_terminal and not self._prompted:
            self._prompted = True
            self._renderer.await_input()

    def _input_ended(self) -> None:
        self._leaving = True
        if self._agent.active_run is None:
            self._finish()

    def _finish(self) -> None:
        self._leaving = True
        self._input.dispose()
        if not self._over.done():
            self._over.set_result(None)

    def _output_lost(self) -> None:
        # Inside the event that could not be shown: the run is aborted once everybody has seen that.
        self._agent.abort()
        self._finish()

    # --- runs ----------------------------------------------------------------------------------------------

    def _watch(self, run: Run) -> None:
        def completed() -> None:
            self._end = run.end
            self._run_ended()
            if self._agent.has_queued_messages():
                if run.end is not None and run.end.reason == "completed":
                    # Queued behind the last look at the queue; nobody else would send it on its way.
                    self._watch(self._agent.continue_())
                    return
                if not self._leaving:
                    self._renderer.note("(what was queued goes with the next question)")
            if self._leaving:
                self._finish()
            else:
                self._await_input()

        run.subscribe(on_completed=completed)

    # --- commands ------------------------------------------------------------------------------------------

    def _follow(self, text: str) -> None:
        if not text:
            self._renderer.note("/follow what? Write /follow TEXT")
        elif self._agent.active_run is not None:
            self._agent.follow_up(text)
            self._renderer.note("(asked when the agent is through)")
        else:
            self._watch(self._agent.prompt(text))

    def _abort(self, _: str) -> None:
        if self._agent.active_run is None:
            self._renderer.note("(nothing is running)")
        self._agent.abort()

    def _reset(self, _: str) -> None:
        self._agent.clear_all_queues()
        self._renderer.note("(the conversation is forgotten)")
        self._agent.abort()
        self._agent.reset()

    def _help(self, _: str) -> None:
        self._renderer.note(HELP)

    def _quit(self, _: str) -> None:
        # In a pipe this comes right behind the question, long before the answer; like the end of input it then
        # means that nothing more is to come.
        if self._is_terminal:
            self._leaving = True
            self._agent.abort()
            self._finish()
        else:
            self._input.dispose()
            self._input_ended()
