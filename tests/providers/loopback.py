"""A small real HTTP/1.1 server on 127.0.0.1 that answers as it is told to, and what a chat server would say.

    async with ChatServer(answer(text("Hel", "lo"), finish("stop"), usage(5, 2))) as server:
        model = server.model()
        ...
        assert server.requests[0].json["messages"][0]["content"] == "hi"

Answers are given in order; the last one is repeated. A function of the request may stand for an answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Self

from reactivex import Observable
from reactivex.scheduler.eventloop import AsyncIOScheduler

from rx_agent.models import Model

Json = dict[str, Any]
SSE = "text/event-stream; charset=utf-8"


# --- what a chat server says -------------------------------------------------------------------------------


def chunk(delta: Json | None = None, *, finish: str | None = None, **fields: Any) -> Json:
    """A chunk with one choice."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice], **fields}


def text(*pieces: str) -> list[Json]:
    """Text in pieces."""
    return [chunk({"content": piece}) for piece in pieces]


def thinking(*pieces: str, field: str = "reasoning_content") -> list[Json]:
    """Thinking in pieces."""
    return [chunk({field: piece}) for piece in pieces]


def tool_call(
    name: str, arguments: Json | str, *, id: str | None = None, index: int = 0, pieces: int = 2
) -> list[Json]:
    """A tool call: the name first, then the arguments in pieces."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    head = {
        "index": index,
        "id": id or f"call_{index}",
        "type": "function",
        "function": {"name": name, "arguments": ""},
    }
    size = max(1, -(-len(written) // pieces))
    parts = [written[at : at + size] for at in range(0, len(written), size)]
    return [
        chunk({"tool_calls": [head]}),
        *(chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]}) for part in parts),
    ]


def finish(reason: str) -> list[Json]:
    """The chunk that says why the answer ends."""
    return [chunk(finish=reason)]


def usage(prompt: int, completion: int, *, cached: int = 0, reasoning: int = 0) -> list[Json]:
    """The last chunk, without choices."""
    counts = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }
    return [{"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": counts}]


def sse(*chunks: Json, done: bool = True) -> bytes:
    """Chunks as an event stream."""
    lines = [f"data: {json.dumps(item)}\n\n" for item in chunks]
    return "".join([*lines, "data: [DONE]\n\n"] if done else lines).encode()


# --- answers -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Answer:
    """What one request gets: ``pieces`` are bytes, or seconds to wait (``FOREVER``: until the client leaves).

    ``cut`` drops the connection at the end without the chunk that ends the body.
    """

    pieces: Sequence[bytes | float] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": SSE})
    cut: bool = False


FOREVER = float("inf")


def answer(
    *groups: Iterable[Json], done: bool = True, delay: float = 0.0, then: float | None = None
) -> Answer:
    """An answer of chunks, one piece each, ``delay`` seconds apart; ``then`` waits before
    the end mark."""
    pieces: list[bytes | float] = []
    for group in groups:
        for item in group:
            if delay:
                pieces.append(delay)
            pieces.append(sse(item, done=False))
    if then is not None:
        pieces.append(then)
    if done:
        pieces.append(b"data: [DONE]\n\n")
    return Answer(pieces)


def says(*pieces: str) -> Answer:
    """A whole answer of text."""
    return answer(text(*pieces), finish("stop"), usage(5, len(pieces)))


def body(content: bytes, *, status: int = 200, type: str = SSE, size: int = 0, **headers: str) -> Answer:
    """An answer of raw bytes, in pieces of ``size`` (0: at once). ``retry_after="3"`` is a header."""
    pieces = [content[at : at + size] for at in range(0, len(content), size)] if size else [content]
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(pieces, status, {"content-type": type, **named})


def refuses(status: int, message: str = "", code: str | None = None, **headers: str) -> Answer:
    """An error as OpenAI writes it."""
    error = {"error": {"message": message, "type": code, "code": code}}
    return body(json.dumps(error).encode(), status=status, type="application/json", **headers)


# --- the server --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Request:
    """A request that came. ``closed`` is when (``perf_counter``) its connection ended, None while it is open."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float
    answered: bool = False
    closed: float | None = None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Scripted = Answer | Callable[[Request], Answer]


class ChatServer:
    """Serves the answers given, in order; the last one again and again."""

    def __init__(self, *answers: Scripted) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Condition()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def base_url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def model(self, id: str = "m", **fields: Any) -> Model:
        """A model that this server serves."""
        return Model(
            id=id, api="openai_chat", **{"provider": "loopback", "base_url": self.base_url, **fields}
        )

    @property
    def open_connections(self) -> int:
        """How many connections have not been closed."""
        return len(self._tasks)

    async def until(self, condition: Callable[[], object], seconds: float = 2.0) -> None:
        """Returns once ``condition()`` holds; raises ``TimeoutError`` if it does not."""
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(lambda: bool(condition()))

    async def until_closed(self, seconds: float = 2.0) -> None:
        """Returns once the clients have closed all connections."""
        await self.until(lambda: not self._tasks, seconds)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        request: Request | None = None
        try:
            request = await self._read(reader)
            if request is not None:
                self.requests.append(request)
                await self._tell()
                await self._watched(request, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            pass  # the server is closing; asyncio.streams complains of a handler that ends cancelled
        finally:
            if request is not None and request.closed is None:
                request.closed = perf_counter()
            writer.close()
            self._tasks.discard(task)
            await self._tell()

    async def _read(self, reader: asyncio.StreamReader) -> Request | None:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        method, path, _ = first.split(" ")
        content = await reader.readexactly(int(headers.get("content-length", "0")))
        return Request(method, path, headers, content, perf_counter())

    async def _watched(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answers until done or until the client leaves, whichever is first."""
        answering = asyncio.ensure_future(self._answer(request, writer))
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait([answering, leaving], return_when=asyncio.FIRST_COMPLETED)
            if leaving.done():
                request.closed = perf_counter()
            if answering.done():
                answering.result()
        finally:
            for task in (answering, leaving):
                task.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        scripted = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        given = scripted(request) if callable(scripted) else scripted
        headers = {"connection": "close", **given.headers}
        if given.status != 204:
            headers["transfer-encoding"] = "chunked"
        lines = [f"HTTP/1.1 {given.status} X", *(f"{name}: {value}" for name, value in headers.items())]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        for piece in given.pieces:
            if isinstance(piece, float | int):
                await writer.drain()
                await asyncio.sleep(3600 if piece == FOREVER else piece)
            elif piece:
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                await writer.drain()
        if given.cut:
            writer.transport.abort()
            return
        if given.status != 204:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        request.answered = True


# --- a client ----------------------------------------------------------------------------------------------


async def events_of(source: Observable[Any], *, seconds: float = 10.0) -> list[Any]:
    """All events of an observable on this loop; raises what it signals."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    seen: list[Any] = []
    subscription = source.subscribe(
        seen.append, ended.set_exception, lambda: ended.set_result(None), scheduler=AsyncIOScheduler(loop)
    )
    try:
        async with asyncio.timeout(seconds):
            await ended
    finally:
        subscription.dispose()
    return seen
