"""Whole exchanges with a Gemini server on loopback."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from rx_agent.messages import AssistantMessage, ToolResultMessage, UserMessage
from rx_agent.models import Model
from rx_agent.providers.base import Context, StreamOptions
from rx_agent.providers.google import stream
from tests.providers.google_chunks import USAGE, chunk
from tests.providers.loopback import Answer, ChatServer, Json, answer, body, events_of, sse

ID = "gemini-3-flash-preview"


def model(server: ChatServer) -> Model:
    return Model(id=ID, api="google", provider="google", base_url=server.base_url)


def says(*chunks: Json) -> Answer:
    return answer(chunks, done=False)


async def ask(server: ChatServer, *messages: Any, **options: Any) -> AssistantMessage:
    context = Context("", messages or [UserMessage(content="hi")])
    settings = StreamOptions(**{"api_key": "sesame", "max_retries": 0, **options})
    events = await events_of(stream(model(server), context, settings))
    assert [event.type in ("done", "error") for event in events] == [False] * (len(events) - 1) + [True]
    return events[-1].message


def test_a_question_and_its_answer():
    async def main() -> None:
        async with ChatServer(
            says(chunk({"text": "Hel"}), chunk({"text": "lo"}, finish="STOP", usageMetadata=USAGE))
        ) as server:
            got = await ask(server)
            assert (got.text, got.stop_reason, got.usage.input, got.usage.output) == ("Hello", "stop", 5, 5)
            (request,) = server.requests
            assert request.method == "POST"
            assert request.path == f"/v1/models/{ID}:streamGenerateContent?alt=sse"
            assert request.headers["x-goog-api-key"] == "sesame"
            assert "authorization" not in request.headers
            assert request.json == {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
            await server.until_closed()

    asyncio.run(main())


def test_a_call_its_result_and_the_signature_that_goes_back():
    async def main() -> None:
        called: Json = {"functionCall": {"name": "add", "args": {"a": 2}}, "thoughtSignature": "c2ln"}
        first, second = says(chunk(called, finish="STOP")), says(chunk({"text": "4"}, finish="STOP"))
        async with ChatServer(first, second) as server:
            question = UserMessage(content="2+2?")
            asked = await ask(server, question)
            assert asked.stop_reason == "tool_use"
            (call,) = asked.tool_calls
            result = ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content="4")
            assert (await ask(server, question, asked, result)).text == "4"
            _, wire, response = server.requests[1].json["contents"]
            assert wire["parts"][0]["thoughtSignature"] == "c2ln"
            assert wire["parts"][0]["functionCall"] == {"id": call.id, "name": "add", "args": {"a": 2}}
            assert response["parts"][0]["functionResponse"] == {
                "id": call.id,
                "name": "add",
                "response": {"output": "4"},
            }

    asyncio.run(main())


@pytest.mark.parametrize(
    ("status", "name", "words", "kind"),
    [
        (403, "PERMISSION_DENIED", "No access.", "auth"),
        (429, "RESOURCE_EXHAUSTED", "Slow down.", "rate_limit"),
        (503, "UNAVAILABLE", "The model is overloaded.", "overloaded"),
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (9) exceeds the maximum number of tokens",
            "context_overflow",
        ),
    ],
)
def test_a_refused_request_says_why(status: int, name: str, words: str, kind: str):
    async def main() -> None:
        error = {"error": {"code": status, "message": f"{words} (sesame)", "status": name}}
        refusal = body(json.dumps([error]).encode(), status=status, type="application/json")
        async with ChatServer(refusal) as server:
            got = await ask(server)
            assert (got.stop_reason, got.error_kind) == ("error", kind)
            assert words in (got.error_message or "")
            assert "sesame" not in (got.error_message or "")

    asyncio.run(main())


def test_an_overloaded_server_is_asked_again():
    async def main() -> None:
        busy = body(b'{"error": {"code": 503, "status": "UNAVAILABLE"}}', status=503, retry_after="0")
        async with ChatServer(busy, says(chunk({"text": "a"}, finish="STOP"))) as server:
            assert (await ask(server, max_retries=1)).text == "a"
            assert len(server.requests) == 2

    asyncio.run(main())


def test_a_connection_that_is_cut_in_the_middle_leaves_what_came():
    async def main() -> None:
        async with ChatServer(Answer([sse(chunk({"text": "Hel"}), done=False)], cut=True)) as server:
            got = await ask(server)
            assert (got.text, got.stop_reason, got.error_kind) == ("Hel", "error", "network")

    asyncio.run(main())


@pytest.mark.parametrize("size", [0, 1, 61])
def test_an_error_object_behind_the_events_is_an_error(size: int):
    async def main() -> None:
        bare = json.dumps({"error": {"code": 503, "message": "Gone.", "status": "UNAVAILABLE"}}, indent=2)
        raw = sse(chunk({"text": "Hel"}, finish="STOP"), done=False) + bare.encode()
        async with ChatServer(body(raw, size=size)) as server:
            got = await ask(server)
            assert (got.text, got.stop_reason, got.error_kind) == ("Hel", "error", "overloaded")

    asyncio.run(main())


def test_a_tool_that_cannot_be_offered_is_an_invalid_request():
    @dataclass(frozen=True)
    class Tool:
        name: str = "3d"
        description: str = "Draws."
        parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object"})

    async def main() -> None:
        async with ChatServer(says()) as server:
            context = Context("", [UserMessage(content="hi")], [Tool()])
            events = await events_of(stream(model(server), context, StreamOptions(api_key="sesame")))
            assert events[-1].message.error_kind == "invalid_request"
            assert server.requests == []

    asyncio.run(main())
