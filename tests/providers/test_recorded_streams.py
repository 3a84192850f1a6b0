"""Recorded streams of real servers, from the folders that ``RX_AGENT_SSE`` names (``:`` between paths).

Each case is a folder with ``stream.sse`` and ``expected.json`` whose name begins with the API's. They are no part of
this project, and without them there is nothing to do here.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from rx_agent.messages import AssistantMessage, ThinkingContent, UserMessage
from rx_agent.models import Model
from rx_agent.providers.base import Context, StreamOptions
from rx_agent.providers.registry import stream_function_for
from tests.providers.loopback import ChatServer, body, events_of

APIS = {
    "anthropic": "anthropic",
    "chat": "openai_chat",
    "gemini": "google",
    "responses": "openai_responses",
}


def api_of(case: Path) -> str | None:
    return APIS.get(case.name.partition("-")[0])


def cases() -> list[Path]:
    folders = [Path(part) for part in os.environ.get("RX_AGENT_SSE", "").split(":") if part]
    found = {path.parent.resolve() for folder in folders for path in folder.rglob("expected.json")}
    return sorted(case for case in found if api_of(case))


REFUSALS = {
    "refusal",
    "sensitive",
    "content_filter",
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
}
"""Words of the providers for an answer that was refused, which ends in an error of kind ``refused``."""


pytestmark = pytest.mark.skipif(not cases(), reason="RX_AGENT_SSE names no folder with recorded streams")


def answered(api: str, content: bytes, size: int) -> AssistantMessage:
    async def main() -> AssistantMessage:
        async with ChatServer(body(content, size=size)) as server:
            context = Context("", [UserMessage(content="hi")])
            model = Model(id="m", api=api, provider="acme", base_url=server.base_url)
            return (await events_of(stream_function_for(model)(model, context, StreamOptions())))[-1].message

    return asyncio.run(main())


@pytest.mark.parametrize("case", cases(), ids=lambda path: path.name)
@pytest.mark.parametrize("size", [0, 1024, 61])
def test_a_recorded_answer_becomes_the_right_message(case: Path, size: int):
    expected: dict[str, Any] = json.loads((case / "expected.json").read_text())
    got = answered(str(api_of(case)), (case / "stream.sse").read_bytes(), size)
    assert got.text == expected["text"]
    assert got.thinking == expected["thinking"]
    # What a failed answer holds of a call that never ended is nobody's business: it does not run.
    failed = got.stop_reason == "error"
    assert [
        (
            call.name,
            None
            if call.invalid_arguments is not None or (failed and known["arguments"] is None)
            else call.arguments,
        )
        for call, known in zip(got.tool_calls, expected["tool_calls"], strict=True)
    ] == [(known["name"], known["arguments"]) for known in expected["tool_calls"]]
    # The Responses API has ids for texts and calls, which are kept there too.
    signed = [
        block
        for block in got.content
        if api_of(case) != "openai_responses" or isinstance(block, ThinkingContent)
    ]
    assert any(block.signature for block in signed) == expected["signatures"]
    refused = expected.get("refusal") or expected.get("block_reason") or expected["stop_reason"] in REFUSALS
    broken = bool(expected["error"]) or not expected["complete"] or bool(refused)
    assert (got.stop_reason == "error") == broken
    if refused:
        assert got.error_kind == "refused"
    if counts := expected["usage"]:
        usage = got.usage
        assert usage.input + usage.cache_read + usage.cache_write == counts["input"]
        assert usage.cache_read == (counts["cache_read"] or 0)
        assert usage.reasoning == (counts["reasoning"] or 0)
        # A server that counts thinking beside the completion: here it is part of the output.
        assert usage.output in ((counts["output"] or 0), (counts["output"] or 0) + (counts["reasoning"] or 0))
