"""What a delta costs from the socket to a subscriber of ``agent.events``, beside the least it could cost.

    python -m tests.benchmarks.deltas [--deltas 100000] [--rounds 5]

For each wire API a process of its own serves the same stream; it is read in turns by the agent and by the bare
minimum (httpx's ``aiter_bytes``, a split into lines, ``pydantic_core.from_json``). Printed are the CPU time of a
delta (start-up, with a tenth of the deltas, is subtracted) and the ratio, each as the median of the rounds. The bound
for every API is 4.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import gc
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.queues import Queue
from typing import Any

import httpx
from pydantic_core import from_json

from rx_agent import Agent, Model

CHUNK = 20
"""Deltas a piece: what a fast model's server sends at once."""
WORD = "word "


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of one API: what stands before, each delta, and what comes behind."""

    before: list[tuple[str, Any]]
    delta: tuple[str, Any]
    after: list[tuple[str, Any]]
    named: bool = False
    """Whether events have an ``event:`` line."""

    def bytes(self, deltas: int) -> Iterator[bytes]:
        yield b"".join(map(self._event, self.before))
        piece = self._event(self.delta) * CHUNK
        for _ in range(deltas // CHUNK):
            yield piece
        yield b"".join(map(self._event, self.after))

    def _event(self, event: tuple[str, Any]) -> bytes:
        name, data = event
        text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
        return (f"event: {name}\n" if self.named else "").encode() + f"data: {text}\n\n".encode()


def _chat_chunk(delta: dict[str, Any], finish: str | None = None) -> tuple[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return "", {
        "id": "chatcmpl-Be9LzkzO1VaJm0JPUPmkqT2zPcUqR",
        "object": "chat.completion.chunk",
        "created": 1748864751,
        "model": "gpt-4.1-mini-2025-04-14",
        "service_tier": "default",
        "system_fingerprint": "fp_6f2eabb9a5",
        "choices": [choice],
        "usage": None,
    }


def _typed(type: str, **fields: Any) -> tuple[str, Any]:
    return type, {"type": type, **fields}


def _google(**fields: Any) -> tuple[str, Any]:
    counts = {"promptTokenCount": 7, "candidatesTokenCount": 5, "totalTokenCount": 12}
    said = {"content": {"parts": [{"text": WORD}], "role": "model"}, "index": 0, **fields}
    return "", {"candidates": [said], "usageMetadata": counts, "modelVersion": "gemini-2.5-flash"}


_RESPONSE = {"id": "resp_1", "object": "response", "status": "completed", "output": []}
_ITEM = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
_PART = {"type": "output_text", "text": "", "annotations": []}
_AT = {"item_id": "msg_1", "output_index": 0, "content_index": 0}

STREAMS: dict[str, Stream] = {
    "openai_chat": Stream(
        [_chat_chunk({"role": "assistant", "content": ""})],
        _chat_chunk({"content": WORD}),
        [_chat_chunk({}, "stop"), ("", "[DONE]")],
    ),
    "anthropic": Stream(
        [
            _typed(
                "message_start",
                message={
                    "id": "msg_1",
                    "type": "message",
                    "role": "assistant",
                    "model": "claude",
                    "content": [],
                    "stop_reason": None,
                    "usage": {"input_tokens": 7, "output_tokens": 1},
                },
            ),
            _typed("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        ],
        _typed("content_block_delta", index=0, delta={"type": "text_delta", "text": WORD}),
        [
            _typed("content_block_stop", index=0),
            _typed("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 5}),
            _typed("message_stop"),
        ],
        named=True,
    ),
    "openai_responses": Stream(
        [
            _typed("response.created", response={**_RESPONSE, "status": "in_progress"}),
            _typed("response.output_item.added", output_index=0, item=_ITEM),
            _typed("response.content_part.added", **_AT, part=_PART),
        ],
        _typed("response.output_text.delta", sequence_number=9, **_AT, delta=WORD, logprobs=[]),
        [
            _typed("response.output_text.done", **_AT, text=""),
            _typed("response.output_item.done", output_index=0, item={**_ITEM, "status": "completed"}),
            _typed("response.completed", response=_RESPONSE),
        ],
        named=True,
    ),
    "google": Stream([], _google(), [_google(finishReason="STOP")]),
}


def serve(ports: Queue[int]) -> None:
    """Serves ``/<api>/<deltas>/…`` until the process is ended."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        _, api, deltas, *_ = head.split(" ", 2)[1].split("/")
        length = next(
            (line for line in head.lower().split("\r\n") if line.startswith("content-length:")), ":0"
        )
        await reader.readexactly(int(length.partition(":")[2]))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for piece in STREAMS[api].bytes(int(deltas)):
            writer.write(piece)
            await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        ports.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def bare_reader(address: str, api: str, deltas: int) -> None:
    """The least that a reader of these bytes has to do."""

    async def work() -> None:
        rest = b""
        url = f"{address}/{api}/{deltas}/"
        async with httpx.AsyncClient() as client, client.stream("POST", url, content=b"{}") as response:
            async for piece in response.aiter_bytes():
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line.startswith(b"data: {"):
                        from_json(line[6:])

    asyncio.run(work())


def agent_reader(address: str, api: str, deltas: int) -> None:
    """A run of an agent with one subscriber."""

    async def work() -> None:
        agent = Agent(
            model=Model(id="m", api=api, provider="benchmark", base_url=f"{address}/{api}/{deltas}")
        )
        seen = 0

        def count(_: Any) -> None:
            nonlocal seen
            seen += 1

        agent.events.subscribe(count)
        end = await agent.prompt("Hi")
        await agent.wait_for_idle()
        if end.error_message or len(end.text) < deltas * len(WORD) or seen < deltas:
            raise AssertionError(f"{api}: {end.error_message}, {len(end.text)} characters, {seen} events")

    asyncio.run(work())


def cpu_seconds(work: Callable[[], Any]) -> float:
    gc.collect()
    began = time.process_time()
    work()
    return time.process_time() - began


def per_delta(run: Callable[[int], Any], deltas: int) -> float:
    """Microseconds of CPU a delta, start-up subtracted."""
    few = deltas // 10
    return (cpu_seconds(lambda: run(deltas)) - cpu_seconds(lambda: run(few))) / (deltas - few) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--deltas", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("apis", nargs="*", default=list(STREAMS))
    arguments = parser.parse_args()
    ports: Queue[int] = multiprocessing.Queue()
    server = multiprocessing.Process(target=serve, args=(ports,), daemon=True)
    server.start()
    address = f"http://127.0.0.1:{ports.get()}"
    try:
        for api in arguments.apis:
            floors: list[float] = []
            costs: list[float] = []
            bare_run = functools.partial(bare_reader, address, api)
            agent_run = functools.partial(agent_reader, address, api)
            for _ in range(arguments.rounds):
                floors.append(per_delta(bare_run, arguments.deltas))
                costs.append(per_delta(agent_run, arguments.deltas))
            ratios = [cost / floor for cost, floor in zip(costs, floors, strict=True)]
            print(
                f"{api:18} {statistics.median(costs):6.2f} us a delta, bare {statistics.median(floors):5.2f} us, "
                f"ratio {statistics.median(ratios):5.2f}  ({min(ratios):.2f} to {max(ratios):.2f})"
            )
    finally:
        server.terminate()


if __name__ == "__main__":
    main()
