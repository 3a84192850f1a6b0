"""One start of ``rx-agent``: the agent, what shows it, and a single prompt or a chat with it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from typing import Any

import reactivex
from reactivex import Observable
from reactivex import operators as ops
from reactivex.scheduler.eventloop import AsyncIOScheduler

from rx_agent.agent import Agent
from rx_agent.cli import offline_model
from rx_agent.cli.arguments import Options
from rx_agent.cli.chat import Chat
from rx_agent.cli.file_tools import file_tools
from rx_agent.cli.interrupts import Interrupts
from rx_agent.cli.model_choice import choose_model
from rx_agent.cli.offline_evidence import NOTICE
from rx_agent.cli.output import Output
from rx_agent.cli.printer import Printer
from rx_agent.cli.renderer import JsonLines, OnlyAnswer, Renderer
from rx_agent.cli.standard_input import bounded, comes_from_a_pipe, pieces_of, text_of
from rx_agent.events import AgentEndEvent
from rx_agent.hooks import Hook, PrepareNextTurnContext
from rx_agent.messages import AssistantMessage, TextContent, UserMessage
from rx_agent.sequencing import now_ms

ANSWERED, FAILED, WRONG_USE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141

SYSTEM_PROMPT = """\
You work in a terminal, in a folder of the user's. You can list, read and search the files below it, and change
nothing. Look before you say anything about files, with several calls at once where that helps. Answer briefly, in
plain text."""

WAIT_FOR_PIPE = 3.0
"""Seconds until a prompt goes without the text that standard input might have brought."""
_STDIN = 0


def make_agent(options: Options, env: Mapping[str, str]) -> Agent:
    """The agent that the command line asks for. Raises ``ConfigurationError`` for wrong use."""
    model = choose_model(options, env)
    return Agent(
        model=model,
        stream_function=offline_model.stream if model.api == "offline" else None,
        system_prompt=SYSTEM_PROMPT if options.system is None else options.system,
        tools=file_tools(options.folder),
        thinking_level=options.thinking,
        should_stop_after_turn=_after_turns(options.max_turns) if options.max_turns else None,
    )


def _after_turns(most: int) -> Hook:
    def should_stop(context: PrepareNextTurnContext, _: Any) -> bool:
        turns = sum(isinstance(message, AssistantMessage) for message in context.new_messages)
        # A turn without calls ends the run anyway, and then as one that was completed.
        return turns >= most and bool(context.tool_results)

    return should_stop


def make_renderer(options: Options, output: Output, errors: Output) -> Renderer:
    """What shows the runs; a richer one takes its place here."""
    if options.json:
        return JsonLines(output, errors)
    return OnlyAnswer(output, errors) if options.quiet else Printer(output, errors)


async def run_session(options: Options, env: Mapping[str, str] = os.environ) -> int:
    """Answers the prompt, or chats, and returns the exit code. Raises ``ConfigurationError`` for wrong use."""
    loop = asyncio.get_running_loop()
    scheduler = AsyncIOScheduler(loop)
    output, errors = Output(sys.stdout, env), Output(sys.stderr, env)
    agent = make_agent(options, env)
    renderer = make_renderer(options, output, errors)
    output.on_lost = agent.abort

    def ask() -> bool:
        active = agent.active_run is not None
        agent.abort()
        return active

    with renderer.show(agent.events, scheduler), Interrupts(loop, ask, output.silence) as interrupts:
        if options.quiet and agent.model.api == "offline" and not options.model:
            renderer.note(NOTICE)
        if options.prompt is not None:
            end = await agent.prompt(await _message(options.prompt, renderer, scheduler))
        else:
            end = await Chat(agent, renderer, scheduler, interrupts.calm).talk(_STDIN, output)
        await agent.wait_for_idle()
    if output.lost is not None:
        if isinstance(output.lost, BrokenPipeError):
            return BROKEN_PIPE
        errors.write(f"rx-agent: cannot write: {output.lost}\n")
        return FAILED
    return exit_code(end, interrupted=interrupts.happened)


def exit_code(end: AgentEndEvent | None, *, interrupted: bool) -> int:
    """What a script is told of the last run; ``end`` is None where there was none."""
    if end is None:
        return ANSWERED
    if end.reason == "aborted":
        return INTERRUPTED if interrupted else ANSWERED
    return ANSWERED if end.reason == "completed" else FAILED


async def _message(prompt: str, renderer: Renderer, scheduler: AsyncIOScheduler) -> UserMessage:
    """The prompt, with what is piped in behind it."""
    content = [TextContent(text=prompt)]
    if comes_from_a_pipe(_STDIN) and (piped := await _piped_text(renderer, scheduler)):
        content.append(TextContent(text=f"<stdin>\n{piped.rstrip()}\n</stdin>"))
    return UserMessage(content=content, timestamp=now_ms(scheduler))


async def _piped_text(renderer: Renderer, scheduler: AsyncIOScheduler) -> str:
    def give_up(_: Any) -> Observable[str]:
        renderer.note(
            f"rx-agent: nothing came on standard input within {WAIT_FOR_PIPE:g} s, so the prompt goes without "
            "(</dev/null spares the wait)"
        )
        return reactivex.empty()

    # Whoever started this program may have left its standard input open for nothing: only the first piece is
    # waited for with a limit, then all of them.
    too_late = reactivex.timer(WAIT_FOR_PIPE, scheduler=scheduler)
    text = text_of(bounded(pieces_of(_STDIN))).pipe(
        ops.timeout_with_mapper(too_late, lambda _: reactivex.never(), reactivex.defer(give_up)),
        ops.to_list(),
        ops.map("".join),
    )
    done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    with text.subscribe(done.set_result, done.set_exception, scheduler=scheduler):
        return await done
