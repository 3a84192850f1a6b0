"""Recorded streams of real servers, from the folders that ``RX_AGENT_SSE`` names (``:`` between paths).

Each case is a folder ``chat-*`` with ``stream.sse`` and ``expected.json``. They are no part of this project, and
without them there is nothing to do here.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from rx_agent.messages import AssistantMessage, UserMessage
from rx_agent.providers.base import Context, StreamOptions
from rx_agent.providers.openai_chat import stream
from tests.providers.loopback import ChatServer, body, events_of


def cases() -> list[Path]:
    folders = [Path(part) for part in os.environ.get("RX_AGENT_SSE", "").split(":") if part]
    return sorted(path.parent for folder in folders for path in folder.rglob("chat-*/expected.json"))


pytestmark = pytest.mark.skipif(not cases(), reason="RX_AGENT_SSE names no folder with recorded streams")


def answered(content: bytes, size: int) -> AssistantMessage:
    async def main() -> AssistantMessage:
        async with ChatServer(body(content, size=size)) as server:
            context = Context("", [UserMessage(content="hi")])
            return (await events_of(stream(server.model(), context, StreamOptions())))[-1].message

    return asyncio.run(main())


@pytest.mark.parametrize("case", cases(), ids=lambda path: path.name)
@pytest.mark.parametrize("size", [0, 1024, 61])
def test_a_recorded_answer_becomes_the_right_message(case: Path, size: int):
    expected: dict[str, Any] = json.loads((case / "expected.json").read_text())
    got = answered((case / "stream.sse").read_bytes(), size)
    assert got.text == expected["text"]
    assert got.thinking == expected["thinking"]
    assert [(call.name, call.arguments) for call in got.tool_calls] == [
        (call["name"], call["arguments"]) for call in expected["tool_calls"]
    ]
    assert any(getattr(block, "signature", None) for block in got.content) == expected["signatures"]
    broken = bool(expected["error"]) or not expected["complete"] or bool(expected.get("refusal"))
    assert (got.stop_reason == "error") == broken
    if counts := expected["usage"]:
        usage = got.usage
        assert usage.input + usage.cache_read + usage.cache_write == counts["input"]
        assert usage.cache_read == (counts["cache_read"] or 0)
        assert usage.reasoning == (counts["reasoning"] or 0)
        # A server that counts thinking beside the completion: here it is part of the output.
        assert usage.output in (counts["output"], counts["output"] + (counts["reasoning"] or 0))
