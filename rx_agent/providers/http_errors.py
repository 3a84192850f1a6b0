"""What went wrong with a request, as a sentence a person can act on and a kind a program can branch on.

The shapes read here: OpenAI and its compatibles (https://platform.openai.com/docs/guides/error-codes),
Anthropic (https://docs.anthropic.com/en/api/errors), Google (https://cloud.google.com/apis/design/errors),
FastAPI's ``detail``, plain text and HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

import pydantic_core

from rx_agent.messages import ErrorKind
from rx_agent.providers.known_models import nearest_models

Wait: TypeAlias = Literal["connect", "first_byte", "idle"]
"""What a timeout may end: the fields of :class:`~rx_agent.providers.base.Timeouts`."""

MAX_QUOTED = 600
REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-amzn-requestid", "x-goog-request-id", "cf-ray")
RETRYABLE_STATUS = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request failed: ``text`` for people, ``kind`` for programs.

    ``retryable``: asking again may help. ``retry_after``: seconds the server asked to wait, if it did.
    """

    text: str
    kind: ErrorKind = "unknown"
    retryable: bool = False
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """What an error message needs to know of the request: whom it went to and what it must never say.

    ``key_variable`` is the environment variable that holds the provider's key, ``secrets`` the strings that
    are cut out of every text.
    """

    provider: str
    model: str = ""
    url: str = ""
    key_variable: str | None = None
    secrets: tuple[str, ...] = ()

    def redact(self, text: str) -> str:
        """``text`` without the secrets, in case the server or an exception echoes them."""
        for secret in self.secrets:
            text = text.replace(secret, "[redacted]")
        return text


def secrets_in(headers: Mapping[str, str], *keys: str | None) -> tuple[str, ...]:
    """The secret strings among ``headers`` and ``keys``, longest first, so that no part of one survives another."""
    found = {key.strip() for key in keys if key}
    for name, value in headers.items():
        if re.search(r"auth|key|token|secret|cookie", name, re.IGNORECASE):
            found |= {value.strip(), value.strip().rpartition(" ")[2]}
    return tuple(sorted((text for text in found if len(text) >= 4), key=len, reverse=True))


def http_failure(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> Failure:
    """The failure that a response of ``status`` (not 2xx) tells of. ``body`` may be cut off anywhere."""
    error = parsed_error(body)
    said = error.message or text_of(body)
    kind = _kind(status, error, said)
    parts = [f"{target.provider} answered {status}"]
    if said:
        parts.append(f": {said}")
    if request_id := _request_id(headers, error):
        parts.append(f" (request id {request_id})")
    if 300 <= status < 400:
        where = headers.get("location", "nowhere")
        return Failure(
            target.redact(
                f"{target.provider} answered {status}, a redirect to {where}. It is not followed, so that the key "
                "never goes to another host; if the address is right, give it as the model's base_url."
            ),
            "invalid_request",
        )
    parts.append(_advice(status, kind, error, target))
    exhausted = error.matches(_QUOTA) or status == 402
    retryable = (status in RETRYABLE_STATUS or status >= 500) and not exhausted and kind != "context_overflow"
    if (wish := headers.get("x-should-retry", "").lower()) in ("true", "false"):
        retryable = wish == "true"
    return Failure(target.redact("".join(parts)), kind, retryable)


def stream_failure(error: ErrorData, target_name: str) -> Failure:
    """The failure that an error inside a stream of status 200 tells of."""
    said = error.message or "no reason given"
    status = int(error.code) if error.code.isdigit() else 0
    return Failure(
        f"{target_name} reported an error in the middle of its answer: {said}", _kind(status, error, said)
    )


def missing_key(target: Target) -> Failure:
    """No key was given for a provider that needs one."""
    return Failure(
        f"No API key for {target.provider}: set the environment variable {target.key_variable}, "
        "or give the agent a get_api_key hook.",
        "auth",
    )


def network_failure(reason: str, target: Target, *, started: bool, unsendable: bool = False) -> Failure:
    """The connection failed: before the answer ``started`` or in it; or the request was ``unsendable`` at all."""
    if unsendable:
        text = f"The request to {target.url} cannot be sent: {reason}"
        return Failure(target.redact(text), "invalid_request")
    if started:
        return incomplete(target.provider, why=target.redact(reason))
    text = (
        f"No answer from {target.provider} at {target.url}: {reason}. Is the address right and the server up?"
    )
    return Failure(target.redact(text), "network", retryable=True)


def timeout_failure(wait: Wait, seconds: float | None, target: Target) -> Failure:
    """The wait took longer than the ``seconds`` allowed."""
    what = {
        "connect": f"cannot be reached at {target.url}",
        "first_byte": "has sent nothing",
        "idle": "has stopped in the middle of its answer: nothing came",
    }[wait]
    text = f"{target.provider} {what} within {seconds or 0:g} s (the timeout {wait!r})."
    # Only the request that never arrived is safe to repeat; a silent server may be at work on it.
    return Failure(target.redact(text), "timeout", retryable=wait == "connect")


def incomplete(target_name: str, stray: bytes = b"", *, why: str = "") -> Failure:
    """The stream stopped before its end; ``stray`` is what came and belonged to no event."""
    text = f"The answer of {target_name} ended before it was complete"
    kind: ErrorKind = "network"
    if why:
        text += f": {why}"
    if stray.strip():
        error = parsed_error(stray)
        said = error.message or text_of(stray)
        if error.message:
            kind = _kind(int(error.code) if error.code.isdigit() else 0, error, said)
            kind = "network" if kind == "unknown" else kind
        text += f". The server sent, beside the stream: {said}"
        if stray.lstrip()[:1] == b"<":
            text += ". That is a web page; check the model's base_url"
    return Failure(text, kind)


@dataclass(frozen=True, slots=True)
class ErrorData:
    """What could be read of an error object: its ``message``, its ``code`` and all its ``words`` (type,
    status …).
    """

    message: str = ""
    code: str = ""
    words: tuple[str, ...] = ()
    request_id: str = ""

    def matches(self, pattern: re.Pattern[str]) -> bool:
        """Whether the pattern occurs in the message or in one of the words."""
        return any(pattern.search(text) for text in (self.message, *self.words))


def error_data(value: Any) -> ErrorData:
    """Reads an error as the many servers write it: a string, an object, nested under ``error``, a list of them."""
    if isinstance(value, str):
        return ErrorData(message=_quoted(value))
    if isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        if items and all(isinstance(item, Mapping) and "msg" in item for item in items):
            # FastAPI's list of complaints, one per field.
            return ErrorData(message=_quoted("; ".join(_complaint(item) for item in items)))
        return error_data(items[0]) if items else ErrorData()
    if not isinstance(value, Mapping):
        return ErrorData()
    data = cast("Mapping[str, Any]", value)
    words = [str(data[name]) for name in ("type", "code", "status", "reason", "param") if data.get(name)]
    code = str(data.get("code") or data.get("status_code") or data.get("status") or "")
    message = ""
    for name in ("message", "error", "detail", "msg", "error_message", "errors"):
        inner = data.get(name)
        if isinstance(inner, str) and inner:
            message = message or inner
        elif isinstance(inner, Mapping | list) and inner:
            nested = error_data(inner)
            message = message or nested.message
            words.extend(nested.words)
            code = nested.code or code
    metadata = data.get("metadata")
    if isinstance(metadata, Mapping) and isinstance(
        raw := cast("Mapping[str, Any]", metadata).get("raw"), str
    ):
        # OpenRouter puts the words of the provider behind it here.
        message = f"{message} ({raw})" if message else raw
    request_id = data.get("request_id")
    return ErrorData(_quoted(message), code, tuple(words), request_id if isinstance(request_id, str) else "")


def parsed_error(body: bytes) -> ErrorData:
    """The error that ``body`` describes in JSON (also behind a prefix such as ``error: ``), else an empty one."""
    start = min((at for at in (body.find(b"{"), body.find(b"[")) if at >= 0), default=-1)
    if start < 0 or body.lstrip()[:1] == b"<":
        return ErrorData()
    try:
        return error_data(pydantic_core.from_json(body[start:].strip(), allow_partial="trailing-strings"))
    except ValueError:
        return ErrorData()


def text_of(body: bytes) -> str:
    """The gist of a body that is no JSON: a page's title or its first words."""
    text = body.decode("utf-8", "replace")
    if title := re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL):
        return _quoted(title[1])
    if text.lstrip().startswith("<"):
        text = re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", text, flags=re.IGNORECASE | re.DOTALL)
    return _quoted(text)


def _quoted(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_QUOTED else text[:MAX_QUOTED] + "…"


def _complaint(item: Mapping[str, Any]) -> str:
    where = ".".join(str(step) for step in cast("Iterable[Any]", item.get("loc") or ()))
    return f"{where}: {item['msg']}" if where else str(item["msg"])


def _request_id(headers: Mapping[str, str], error: ErrorData) -> str:
    return next((headers[name] for name in REQUEST_ID_HEADERS if headers.get(name)), error.request_id)


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_QUOTA = _words(
    r"insufficient_quota|credit_balance|billing|exceeded your current quota|insufficient (credit|balance)"
)
_OVERFLOW = _words(
    r"context[_ ](length|window)[_ ]?(limit )?(is )?exceeded|context_length|maximum context length"
    r"|exceeds? (the |this model's )?(available |maximum |max )*(context|input|number of tokens)"
    r"|(prompt|input|request) (is )?too (long|large)|too many (input )?tokens|reduce the length of"
    r"|input token count|larger than the maximum context|token limit (was |is )?exceeded"
)
# The first that fits counts: an overflow is an invalid request too, a quota is told with the status of a
# rate limit.
_KINDS: tuple[tuple[re.Pattern[str], ErrorKind], ...] = (
    (_OVERFLOW, "context_overflow"),
    (
        _words(r"overloaded|unavailable|over ?capacity|at capacity|server_is_overloaded|slow_down"),
        "overloaded",
    ),
    (_words(r"rate.?limit|resource_exhausted|too many requests|quota"), "rate_limit"),
    (
        _words(
            r"authentication|unauthenticated|unauthorized|permission_denied|invalid.{0,3}api.?key"
            r"|api.?key.{0,8}(not valid|invalid|expired)"
        ),
        "auth",
    ),
    (_words(r"content.?(filter|policy)|safety|moderation|flagged"), "refused"),
    (_words(r"^timeout|deadline_exceeded|timed out"), "timeout"),
    (_words(r"invalid.?request|invalid_argument|not_found|bad.?request|validation"), "invalid_request"),
)
_STATUS_KINDS: dict[int, ErrorKind] = {
    401: "auth",
    402: "rate_limit",
    403: "auth",
    408: "timeout",
    413: "context_overflow",
    429: "rate_limit",
    499: "network",
    502: "overloaded",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}


def _kind(status: int, error: ErrorData, said: str) -> ErrorKind:
    if status in (0, 400, 413, 422, 500) and (error.matches(_OVERFLOW) or _OVERFLOW.search(said)):
        return "context_overflow"
    if status in _STATUS_KINDS:
        return _STATUS_KINDS[status]
    for pattern, kind in _KINDS:
        if error.matches(pattern):
            return kind
    return "invalid_request" if 400 <= status < 500 else "unknown"


def _advice(status: int, kind: ErrorKind, error: ErrorData, target: Target) -> str:
    variable = target.key_variable
    if error.matches(_QUOTA) or status == 402:
        return f". The account's quota is used up: check plan and billing at {target.provider}."
    match kind:
        case "auth":
            where = f"the key in {variable}" if variable else "the API key"
            return f". Check {where}: is it valid, and does it give access to this model?"
        case "context_overflow":
            return ". The conversation no longer fits the model's context window: shorten or compact it."
        case "rate_limit":
            return ". Wait and try again, or send fewer requests."
        case "overloaded":
            return ". The server is overloaded or down: try again later."
        case "refused":
            return ". The provider's filter refused the request."
        case _ if status == 404:
            near = [
                name
                for name in nearest_models(target.model, target.provider)
                if not name.endswith(f":{target.model}")
            ]
            like = f" Known are {', '.join(near)}." if near else ""
            return f". Is {target.model!r} the right model name, and {target.url} the right address?{like}"
        case "invalid_request":
            return ". The server does not accept the request as it stands."
        case _ if status >= 500:
            return ". The server failed: try again later."
        case _:
            return "."


def gave_up(failure: Failure, retries: int) -> Failure:
    """``failure``, saying that it came again and again."""
    if not retries:
        return failure
    times = "once" if retries == 1 else f"{retries} times"
    return replace(failure, text=f"{_sentence(failure.text)} Tried again {times} in vain.", retryable=False)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def too_long_to_wait(failure: Failure, limit_ms: int) -> Failure:
    """``failure``, saying that the server asks for a longer wait than is allowed."""
    wait = failure.retry_after or 0.0
    return replace(
        failure,
        text=(
            f"{_sentence(failure.text)} The server asks to wait {wait:g} s before the next try, more than "
            f"max_retry_delay_ms allows ({limit_ms / 1000:g} s): wait that long, or raise it (0 waits for any)."
        ),
        retryable=False,
    )
