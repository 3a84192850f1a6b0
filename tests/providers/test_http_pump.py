"""Real HTTP on loopback: what is sent, what comes, what is closed, and how fast."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Coroutine
from time import perf_counter, time
from typing import Any

import pytest
import reactivex
from reactivex import operators as ops
from reactivex.scheduler import CurrentThreadScheduler
from reactivex.scheduler.eventloop import AsyncIOScheduler
from reactivex.testing import TestScheduler

from rx_agent.asyncio_edge import TaskScope
from rx_agent.errors import ConfigurationError, NoEventLoopError
from rx_agent.messages import AssistantMessage, UserMessage
from rx_agent.models import Model
from rx_agent.providers.base import Context, ProviderResponse, StreamOptions, Timeouts
from rx_agent.providers.openai_chat import stream
from tests.providers.loopback import (
    FOREVER,
    Answer,
    ChatServer,
    answer,
    body,
    events_of,
    finish,
    refuses,
    says,
    sse,
    text,
)

CONTEXT = Context("", [UserMessage(content="hi")])


def on_loop(story: Coroutine[Any, Any, Any]) -> Any:
    """Runs a story to its end, in asyncio's debug mode; nothing may be left running."""

    async def whole() -> Any:
        value = await story
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left
        return value

    return asyncio.run(whole(), debug=True)


def ask(model: Model, **options: Any) -> reactivex.Observable[Any]:
    return stream(model, CONTEXT, StreamOptions(**options))


async def final(model: Model, **options: Any) -> AssistantMessage:
    scope = TaskScope()
    events = await events_of(ask(model, tasks=scope, **options))
    assert [event.type for event in events].count("start") == 1
    assert events[0].type == "start"
    assert events[-1].type in ("done", "error")
    await scope.join()
    return events[-1].message


# --- asking ------------------------------------------------------------------------------------------------


def test_a_question_is_answered_and_the_connection_closed():
    async def story():
        async with ChatServer(says("Hel", "lo")) as server:
            events = await events_of(ask(server.model(), api_key="sk-secret"))
            assert [event.type for event in events] == [
                *("start", "text_start", "text_delta", "text_delta", "text_end", "done")
            ]
            assert events[-1].message.text == "Hello"
            assert abs(events[-1].message.timestamp / 1000 - time()) < 60
            (request,) = server.requests
            assert (request.method, request.path) == ("POST", "/v1/chat/completions")
            assert request.headers["authorization"] == "Bearer sk-secret"
            assert request.json["messages"] == [{"role": "user", "content": "hi"}]
            await server.until_closed()

    on_loop(story())


def test_it_is_cold_and_each_subscription_asks_anew():
    async def story():
        async with ChatServer(says("a"), says("b")) as server:
            source = ask(server.model())
            await asyncio.sleep(0.02)
            assert server.requests == []
            texts = [(await events_of(source))[-1].message.text for _ in range(2)]
            assert texts == ["a", "b"]

    on_loop(story())


def test_headers_of_model_and_options_are_sent():
    async def story():
        async with ChatServer(says("a")) as server:
            await final(server.model(headers={"x-a": "1", "x-b": "1"}), headers={"x-b": "2"}, api_key=" k ")
            headers = server.requests[0].headers
            assert (headers["x-a"], headers["x-b"], headers["authorization"]) == ("1", "2", "Bearer k")
            await final(server.model(headers={"Authorization": "Basic abc"}), api_key="k")
            assert server.requests[1].headers["authorization"] == "Basic abc"

    on_loop(story())


def test_a_query_of_the_base_url_stays_behind_the_path():
    async def story():
        async with ChatServer(says("a")) as server:
            await final(server.model(base_url=f"{server.base_url}?api-version=7"))
            assert server.requests[0].path == "/v1/chat/completions?api-version=7"

    on_loop(story())


# --- wrong use ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", [None, TestScheduler(), CurrentThreadScheduler()])
def test_without_an_event_loop_it_refuses_at_once_and_names_the_way_out(scheduler: Any):
    errors: list[Exception] = []
    ask(Model(id="m", api="openai_chat", provider="p", base_url="http://127.0.0.1:9")).subscribe(
        on_error=errors.append, scheduler=scheduler
    )
    if isinstance(scheduler, TestScheduler):
        scheduler.start()
    (error,) = errors
    assert isinstance(error, NoEventLoopError)
    assert "await agent.prompt" in str(error)
    assert "prompt_sync" in str(error)
    assert stream.needs_event_loop


def test_an_unknown_transport_is_refused_by_name():
    async def story():
        model = Model(id="m", api="openai_chat", provider="p", base_url="http://127.0.0.1:9")
        with pytest.raises(ConfigurationError, match="websocket"):
            await events_of(ask(model, transport="websocket"))

    on_loop(story())


def test_a_missing_key_names_its_variable_and_sends_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    got = on_loop(final(Model(id="m", api="openai_chat", provider="groq")))
    assert got.error_kind == "auth"
    assert "GROQ_API_KEY" in (got.error_message or "")


@pytest.mark.parametrize(
    ("base_url", "words"),
    [
        ("", "no base_url"),
        ("ftp://x/v1", "protocol"),
        ("http://a\x01b/v1", "cannot be made"),
        ("localhost:1/v1", "protocol"),
    ],
)
def test_an_address_that_is_none_is_an_error_event(base_url: str, words: str):
    got = on_loop(final(Model(id="m", api="openai_chat", provider="nobody", base_url=base_url)))
    assert got.error_kind == "invalid_request"
    assert words in (got.error_message or "")


def test_a_key_that_no_header_can_hold_does_not_show_in_the_error():
    async def story():
        async with ChatServer(says("a")) as server:
            for key in ("sk-\x00secret", "sk-schlüssel", "sk-a\nb: c"):
                got = await final(server.model(), api_key=key)
                assert got.error_kind == "invalid_request"
                assert key not in (got.error_message or "")
                assert "secret" not in (got.error_message or "")

    on_loop(story())


# --- disposing ---------------------------------------------------------------------------------------------


def endless() -> Answer:
    return answer(text("a", "b"), then=FOREVER)


def test_disposing_closes_the_connection_within_100_ms_and_nothing_comes_after():
    async def story():
        async with ChatServer(endless()) as server:
            seen: list[Any] = []
            told = asyncio.Event()
            scope = TaskScope()

            def on_next(event: Any) -> None:
                seen.append(event)
                if len(seen) == 4:
                    told.set()

            scheduler = AsyncIOScheduler(asyncio.get_running_loop())
            subscription = ask(server.model(), tasks=scope).subscribe(on_next, scheduler=scheduler)
            await asyncio.wait_for(told.wait(), 5)
            count, disposed = len(seen), perf_counter()
            subscription.dispose()
            await server.until_closed()
            closed = server.requests[0].closed
            assert closed is not None
            assert closed - disposed < 0.1
            await scope.join()
            assert len(seen) == count

    on_loop(story())


@pytest.mark.parametrize("count", range(1, 5))
def test_disposing_inside_on_next_ends_everything_there(count: int):
    async def story():
        async with ChatServer(endless()) as server:
            scope = TaskScope()
            events = await events_of(ask(server.model(), tasks=scope).pipe(ops.take(count)))
            disposed = perf_counter()
            assert len(events) == count
            await server.until_closed()
            assert (server.requests[0].closed or 0.0) - disposed < 0.1
            await scope.join()

    on_loop(story())


def test_disposing_before_the_answer_and_before_the_request():
    async def story():
        async with ChatServer(Answer([FOREVER])) as server:
            scope = TaskScope()
            scheduler = AsyncIOScheduler(asyncio.get_running_loop())
            subscription = ask(server.model(), tasks=scope).subscribe(scheduler=scheduler)
            await server.until(lambda: server.requests)
            subscription.dispose()
            await server.until_closed()
            ask(server.model(), tasks=scope).subscribe(scheduler=scheduler).dispose()
            await scope.join()
            assert len(server.requests) == 1

    on_loop(story())


def test_a_new_question_cancels_the_running_answer():
    async def story():
        async with ChatServer(endless(), says("b")) as server:
            scheduler = AsyncIOScheduler(asyncio.get_running_loop())
            questions = reactivex.merge(reactivex.just(1), reactivex.timer(0.1))
            events = await events_of(
                questions.pipe(ops.switch_map(lambda _: ask(server.model()))).pipe(
                    ops.subscribe_on(scheduler)
                )
            )
            assert events[-1].message.text == "b"
            await server.until_closed()

    on_loop(story())


def test_an_observer_that_raises_is_reported_and_the_connection_closed(monkeypatch: pytest.MonkeyPatch):
    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)

    async def story():
        async with ChatServer(endless()) as server:
            scope = TaskScope()

            def on_next(event: Any) -> None:
                if event.type == "text_delta":
                    raise RuntimeError("mine")

            scheduler = AsyncIOScheduler(asyncio.get_running_loop())
            ask(server.model(), tasks=scope).subscribe(on_next, scheduler=scheduler)
            await server.until(lambda: server.requests)
            await server.until_closed()
            await scope.join()

    on_loop(story())
    assert [str(item.exc_value) for item in reported] == ["mine"]


# --- retrying ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_what_is_safe_is_tried_again(status: int):
    async def story():
        async with ChatServer(refuses(status, "busy", retry_after="0.01"), says("ok")) as server:
            assert (await final(server.model())).text == "ok"
            assert len(server.requests) == 2
            assert server.requests[0].body == server.requests[1].body

    on_loop(story())


def test_a_connection_that_breaks_before_the_first_event_is_tried_again():
    async def story():
        dropped = Answer([b": wait\n\n"], cut=True)
        async with ChatServer(dropped, says("ok")) as server:
            assert (await final(server.model())).text == "ok"

    on_loop(story())


def test_a_refused_connection_ends_in_an_error_event():
    got = on_loop(
        final(Model(id="m", api="openai_chat", provider="p", base_url="http://127.0.0.1:9"), max_retries=1)
    )
    assert got.error_kind == "network"
    assert "127.0.0.1:9" in (got.error_message or "")
    assert "Tried again once in vain" in (got.error_message or "")


def test_after_the_first_event_nothing_is_tried_again():
    async def story():
        cut = Answer([sse(*text("so far"), done=False)], cut=True)
        async with ChatServer(cut) as server:
            got = await final(server.model())
            assert (got.stop_reason, got.error_kind, got.text) == ("error", "network", "so far")
            assert len(server.requests) == 1

    on_loop(story())


def test_too_long_a_wait_is_told_and_not_waited_for():
    async def story():
        async with ChatServer(refuses(429, "Slow down", retry_after="120")) as server:
            started = perf_counter()
            got = await final(server.model())
            assert perf_counter() - started < 1
            assert got.error_kind == "rate_limit"
            assert "wait 120 s" in (got.error_message or "")

    on_loop(story())


def test_what_is_not_safe_is_not_tried_again():
    async def story():
        async with ChatServer(refuses(401, "Incorrect API key: sk-secret", x_request_id="req_1")) as server:
            got = await final(server.model(provider="openai"), api_key="sk-secret")
            assert got.error_kind == "auth"
            assert "401" in (got.error_message or "")
            assert "OPENAI_API_KEY" in (got.error_message or "")
            assert "req_1" in (got.error_message or "")
            assert "sk-secret" not in repr(got)
            assert len(server.requests) == 1

    on_loop(story())


def test_disposing_ends_the_wait_before_the_next_attempt():
    async def story():
        async with ChatServer(refuses(503, retry_after="0.2")) as server:
            scope = TaskScope()
            scheduler = AsyncIOScheduler(asyncio.get_running_loop())
            subscription = ask(server.model(), tasks=scope).subscribe(scheduler=scheduler)
            await server.until(lambda: server.requests)
            await server.until_closed()
            await asyncio.sleep(0.05)
            subscription.dispose()
            await asyncio.sleep(0.3)
            assert len(server.requests) == 1

    on_loop(story())


def test_a_redirect_never_carries_the_key_elsewhere():
    async def story():
        async with ChatServer(says("stolen")) as thief:
            moved = Answer([], 307, {"location": f"{thief.base_url}/chat/completions"})
            async with ChatServer(moved) as server:
                got = await final(server.model(), api_key="sk-secret")
                assert got.error_kind == "invalid_request"
                assert thief.base_url in (got.error_message or "")
                assert thief.requests == []

    on_loop(story())


# --- timeouts ----------------------------------------------------------------------------------------------


def test_a_server_that_accepts_and_says_nothing():
    async def story():
        async with ChatServer(Answer([FOREVER])) as server:
            got = await final(server.model(), timeouts=Timeouts(first_byte=0.1))
            assert got.error_kind == "timeout"
            assert "first_byte" in (got.error_message or "")
            await server.until_closed()
            assert len(server.requests) == 1

    on_loop(story())


def test_a_server_that_stops_in_the_middle():
    async def story():
        async with ChatServer(answer(text("so far"), then=FOREVER)) as server:
            got = await final(server.model(), timeouts=Timeouts(first_byte=5, idle=0.1))
            assert (got.error_kind, got.text) == ("timeout", "so far")
            assert "idle" in (got.error_message or "")

    on_loop(story())


def test_a_slow_server_is_waited_for_as_long_as_it_goes_on():
    async def story():
        async with ChatServer(answer(text(*"abcdef"), finish("stop"), delay=0.06)) as server:
            got = await final(server.model(), timeouts=Timeouts(first_byte=5, idle=0.15))
            assert got.text == "abcdef"

    on_loop(story())


def test_an_answer_that_is_whole_but_for_the_end_mark_is_whole():
    async def story():
        async with ChatServer(answer(text("all"), finish("stop"), then=FOREVER)) as server:
            got = await final(server.model(), timeouts=Timeouts(idle=0.1))
            assert (got.stop_reason, got.text) == ("stop", "all")

    on_loop(story())


# --- backpressure ------------------------------------------------------------------------------------------


def test_it_reads_on_only_when_the_listener_is_ready():
    async def story():
        gate = asyncio.Event()
        async with ChatServer(answer(text("a"), text("b"), finish("stop"), delay=0.02)) as server:
            seen: list[Any] = []
            ended = asyncio.Event()
            ask(server.model(), ready=gate.wait, timeouts=Timeouts(idle=0.05)).subscribe(
                seen.append,
                on_completed=ended.set,
                scheduler=AsyncIOScheduler(asyncio.get_running_loop()),
            )
            await server.until(lambda: server.requests)
            await asyncio.sleep(0.2)
            assert [event.type for event in seen] == ["start", "text_start", "text_delta"]
            gate.set()
            await asyncio.wait_for(ended.wait(), 2)
            assert seen[-1].message.text == "ab"

    on_loop(story())


# --- hooks -------------------------------------------------------------------------------------------------


async def _later(value: Any) -> Any:
    await asyncio.sleep(0.001)
    return value


@pytest.mark.parametrize(
    "wrap", [lambda value: value, _later, reactivex.just, lambda v: reactivex.of(None, v)]
)
def test_on_payload_may_answer_in_any_way(wrap: Any):
    async def story():
        async with ChatServer(says("a")) as server:
            await final(server.model(), on_payload=lambda payload: wrap({**payload, "seed": 7}))
            assert server.requests[0].json["seed"] == 7
            assert server.requests[0].json["messages"] == [{"role": "user", "content": "hi"}]

    on_loop(story())


def test_on_payload_may_change_the_payload_in_place_without_touching_the_next():
    async def story():
        async with ChatServer(says("a")) as server:
            await final(server.model(), on_payload=lambda payload: payload["messages"].clear())
            await final(server.model())
            assert [len(request.json["messages"]) for request in server.requests] == [0, 1]

    on_loop(story())


@pytest.mark.parametrize("wrap", [lambda _: None, lambda _: _later(None)])
def test_on_response_sees_status_and_headers_and_not_the_key(wrap: Any):
    seen: list[ProviderResponse] = []

    async def story():
        limited = body(b"", status=429, retry_after="0.01", x_echo="Bearer sk-secret")
        async with ChatServer(limited, says("a")) as server:
            await final(
                server.model(), api_key="sk-secret", on_response=lambda r: (seen.append(r), wrap(r))[1]
            )

    on_loop(story())
    assert [response.status for response in seen] == [429, 200]
    assert "sk-secret" not in repr(seen)
    assert seen[1].headers["content-type"].startswith("text/event-stream")


async def _raises(_: Any) -> None:
    raise ValueError("mine")


async def _cancels(_: Any) -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize("name", ["on_payload", "on_response"])
@pytest.mark.parametrize(
    ("hook", "words"),
    [
        (lambda _: 1 / 0, "ZeroDivisionError"),
        (_raises, "ValueError: mine"),
        (lambda _: reactivex.throw(ValueError("mine")), "ValueError: mine"),
        (_cancels, "cancelled from inside"),
    ],
)
def test_a_hook_that_raises_is_an_error_event_with_its_reason(name: str, hook: Any, words: str):
    async def story():
        async with ChatServer(says("a")) as server:
            got = await final(server.model(), **{name: hook})
            assert got.stop_reason == "error"
            assert name in (got.error_message or "")
            assert words in (got.error_message or "")

    on_loop(story())


def test_on_payload_that_answers_nonsense_is_told():
    async def story():
        async with ChatServer(says("a")) as server:
            assert "return a dict" in (
                (await final(server.model(), on_payload=lambda _: 7)).error_message or ""
            )
            got = await final(server.model(), on_payload=lambda _: {"x": object()})
            assert "cannot be written as JSON" in (got.error_message or "")
            assert server.requests == []

    on_loop(story())


# --- many at once ------------------------------------------------------------------------------------------


def test_many_at_once_leave_nothing_behind():
    async def story():
        async with ChatServer(lambda request: says(json.loads(request.body)["model"])) as server:
            models = [server.model(str(n)) for n in range(40)]
            got = await asyncio.gather(*(final(model) for model in models))
            assert [message.text for message in got] == [str(n) for n in range(40)]
            await server.until_closed()

    on_loop(story())
