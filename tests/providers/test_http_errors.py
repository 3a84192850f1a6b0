"""What a person reads when a request fails: status, the provider's words, the request id, and what to do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rx_agent.messages import ErrorKind
from rx_agent.providers.http_errors import (
    Failure,
    Target,
    error_data,
    http_failure,
    incomplete,
    secrets_in,
    stream_failure,
)

TARGET = Target(
    "openai", "gpt-x", "https://api.openai.com/v1/chat/completions", "OPENAI_API_KEY", ("sk-secret",)
)


def failed(status: int, body: Any = None, **headers: str) -> Failure:
    content = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
    return http_failure(status, {name.replace("_", "-"): v for name, v in headers.items()}, content, TARGET)


def openai(message: str, **fields: str) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (401, openai("Incorrect API key"), "auth", False),
        (403, openai("Not for you"), "auth", False),
        (402, openai("Pay first"), "rate_limit", False),
        (404, openai("no such model", code="model_not_found"), "invalid_request", False),
        (400, openai("bad", type="invalid_request_error"), "invalid_request", False),
        (400, openai("too long", code="context_length_exceeded"), "context_overflow", False),
        (400, openai("This model's maximum context length is 8192 tokens"), "context_overflow", False),
        (400, openai("prompt is too long: 210000 tokens > 200000 maximum"), "context_overflow", False),
        (400, openai("the request exceeds the available context size"), "context_overflow", False),
        (413, openai("Request too large"), "context_overflow", False),
        (422, {"detail": [{"loc": ["body", "tools"], "msg": "Field required"}]}, "invalid_request", False),
        (400, openai("filtered", code="content_filter"), "refused", False),
        (408, None, "timeout", True),
        (409, openai("conflict"), "invalid_request", True),
        (429, openai("slow down", type="rate_limit_error"), "rate_limit", True),
        (429, openai("no money", code="insufficient_quota"), "rate_limit", False),
        (500, openai("oops"), "unknown", True),
        (502, b"<html><title>502 Bad Gateway</title></html>", "overloaded", True),
        (503, None, "overloaded", True),
        (504, None, "timeout", True),
        (
            529,
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            "overloaded",
            True,
        ),
        (418, b"teapot", "invalid_request", False),
    ],
)
def test_kinds(status: int, body: Any, kind: ErrorKind, retryable: bool):
    failure = failed(status, body)
    assert (failure.kind, failure.retryable) == (kind, retryable)
    assert str(status) in failure.text


def test_the_text_holds_status_words_request_id_and_what_to_do():
    text = failed(401, openai("Incorrect API key provided"), x_request_id="req_7").text
    assert text == (
        "openai answered 401: Incorrect API key provided (request id req_7). "
        "Check the key in OPENAI_API_KEY: is it valid, and does it give access to this model?"
    )
    assert "'gpt-x'" in failed(404).text
    assert "https://api.openai.com" in failed(404).text
    assert "compact" in failed(400, openai("x", code="context_length_exceeded")).text
    assert "billing" in failed(429, openai("x", code="insufficient_quota")).text


def test_the_server_may_say_whether_to_try_again():
    assert failed(400, x_should_retry="true").retryable
    assert not failed(503, x_should_retry="false").retryable


def test_a_redirect_names_where_and_is_not_followed():
    failure = failed(307, location="https://elsewhere.example/v1?k=sk-secret")
    assert "https://elsewhere.example" in failure.text
    assert "base_url" in failure.text
    assert "sk-secret" not in failure.text
    assert not failure.retryable


def test_a_key_that_the_server_echoes_is_cut_out():
    assert "sk-secret" not in failed(401, openai("Incorrect API key: sk-secret")).text


def test_secrets_are_found_by_the_names_of_headers():
    headers = {"Authorization": "Bearer sk-abcdef", "X-Api-Key": "key-123456", "Accept": "text/event-stream"}
    assert secrets_in(headers, "sk-abcdef", None) == ("Bearer sk-abcdef", "key-123456", "sk-abcdef")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("plain", "plain"),
        ({"error": "plain"}, "plain"),
        ({"error": {"message": "deep"}}, "deep"),
        ({"object": "error", "message": "vllm"}, "vllm"),
        ({"detail": "fastapi"}, "fastapi"),
        ([{"error": {"message": "google", "status": "RESOURCE_EXHAUSTED"}}], "google"),
        ({"error": {"message": "up", "metadata": {"raw": "behind"}}}, "up (behind)"),
        ({"errors": [{"message": "first"}]}, "first"),
        ({"error": None}, ""),
        (7, ""),
        ([], ""),
    ],
)
def test_the_words_are_found_wherever_servers_put_them(value: Any, message: str):
    assert error_data(value).message == message


def test_long_words_are_cut():
    assert len(failed(400, openai("x" * 10_000)).text) < 800


def test_errors_inside_a_stream_have_a_kind_too():
    assert (
        stream_failure(error_data({"message": "x", "code": "rate_limit_exceeded"}), "p").kind == "rate_limit"
    )
    assert stream_failure(error_data({"message": "x", "code": 503}), "p").kind == "overloaded"
    assert stream_failure(error_data({"message": "x"}), "p").kind == "unknown"


def test_a_stream_that_stops_tells_what_else_came():
    assert incomplete("p").text == "The answer of p ended before it was complete"
    failure = incomplete("p", b'error: {"error": {"message": "maximum context length is 5"}}\n')
    assert failure.kind == "context_overflow"
    assert "maximum context length is 5" in failure.text
    assert "web page" in incomplete("p", b"<html><title>Log in</title>").text
