"""A real model behind an OpenAI-compatible server, named in RX_AGENT_REAL_URL (and RX_AGENT_REAL_MODEL).

For instance llama.cpp's own:

    python -m llama_cpp.server --model FILE.gguf --model_alias smollm2 --port 8702 --n_ctx 4096 \
        --chat_format chatml-function-calling
    RX_AGENT_REAL_URL=http://127.0.0.1:8702/v1 pytest -m real_model
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
import reactivex
from reactivex import operators as ops

from rx_agent import Agent, StreamOptions, tool
from rx_agent import operators as agent_ops
from rx_agent.providers.catalog import resolve_model
from tests.on_loop import on_loop

URL = os.environ.get("RX_AGENT_REAL_URL", "")

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.skipif(not URL, reason="RX_AGENT_REAL_URL names no server"),
]


def agent_for(**fields: Any) -> Agent:
    model = resolve_model(os.environ.get("RX_AGENT_REAL_MODEL", "smollm2"), base_url=URL)
    options = {"max_tokens": 200, "temperature": 0.0, **fields.pop("options", {})}
    return Agent(model=model, options=StreamOptions(**options), system_prompt="You are helpful.", **fields)


@on_loop
async def test_a_prompt_is_answered_in_pieces() -> None:
    agent = agent_for()
    deltas: list[str] = []
    agent.events.pipe(agent_ops.text_deltas()).subscribe(deltas.append)
    end = await agent.prompt("Say hello.")
    assert end.reason == "completed"
    assert len(deltas) > 1
    assert "".join(deltas) == end.text != ""
    await agent.wait_for_idle()


@on_loop
async def test_a_forced_tool_call_runs_the_tool() -> None:
    asked: list[str] = []

    @tool
    def weather(city: str) -> str:
        """The weather in a city."""
        asked.append(city)
        return f"It rains in {city}."

    agent = agent_for(
        tools=[weather], options={"tool_choice": "weather"}, should_stop_after_turn=lambda context: True
    )
    end = await agent.prompt("What is the weather in Oslo?")
    assert end.reason == "stopped", end.error_message
    assert len(asked) == 1
    assert agent.messages[-1].text == f"It rains in {asked[0]}."
    await agent.wait_for_idle()


@on_loop
async def test_an_abort_in_mid_answer_keeps_what_came() -> None:
    agent = agent_for()
    run = agent.prompt("Tell me a long story about a ship.")
    enough: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    agent.events.pipe(agent_ops.text_deltas(), ops.take(5), ops.to_list()).subscribe(
        lambda _: enough.set_result(None)
    )
    await enough
    run.dispose()
    assert agent.active_run is None
    assert agent.messages[-1].stop_reason == "aborted"
    assert agent.messages[-1].text
    await agent.wait_for_idle()


@on_loop
async def test_switching_the_prompt_switches_the_stream() -> None:
    agent = agent_for()
    questions: reactivex.Subject[str] = reactivex.Subject()
    answered: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    questions.pipe(ops.switch_map(agent.ask), agent_ops.answers()).subscribe(answered.set_result)
    first_words = agent.events.pipe(agent_ops.text_deltas(), ops.take(3), ops.to_list())
    questions.on_next("Tell me a long story about a ship.")
    await first_words
    questions.on_next("Say hello.")
    assert await answered
    answers = [message for message in agent.messages if message.role == "assistant"]
    assert answers[0].stop_reason == "aborted"
    assert answers[1].stop_reason in ("stop", "length")
    await agent.wait_for_idle()
