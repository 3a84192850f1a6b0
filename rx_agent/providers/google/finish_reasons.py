"""Why an answer ended: https://ai.google.dev/api/generate-content#FinishReason."""

from __future__ import annotations

from collections.abc import Mapping

from rx_agent.messages import ErrorKind
from rx_agent.providers.http_errors import Failure

UNSPECIFIED = frozenset(
    {"FINISH_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED"}
)
"""Values that say nothing."""

_FAILURES: Mapping[str, tuple[ErrorKind, str]] = {
    "SAFETY": ("refused", "the safety filter stopped the answer"),
    "RECITATION": ("refused", "the answer repeated protected text"),
    "LANGUAGE": ("refused", "the language is not supported"),
    "BLOCKLIST": ("refused", "the answer holds a forbidden term"),
    "PROHIBITED_CONTENT": ("refused", "the answer may hold prohibited content"),
    "SPII": ("refused", "the answer may hold sensitive personal information"),
    "IMAGE_SAFETY": ("refused", "the safety filter stopped the image"),
    "IMAGE_PROHIBITED_CONTENT": ("refused", "the image may show prohibited content"),
    "IMAGE_RECITATION": ("refused", "the image repeated a protected one"),
    "IMAGE_OTHER": ("unknown", "the image could not be made"),
    "NO_IMAGE": ("unknown", "no image was made"),
    "OTHER": ("unknown", "the server gave no reason"),
    "MALFORMED_FUNCTION_CALL": ("unknown", "the model wrote a function call that cannot be read"),
    "MALFORMED_RESPONSE": ("unknown", "the model wrote an answer that cannot be read"),
    "UNEXPECTED_TOOL_CALL": ("unknown", "the model called a tool that it was not offered"),
    "TOO_MANY_TOOL_CALLS": ("unknown", "the model called too many tools in a row"),
    "MISSING_THOUGHT_SIGNATURE": ("invalid_request", "the request lacks a thought signature"),
}


def finish_failure(reason: str, said: str, provider: str) -> Failure | None:
    """The failure that a ``finishReason`` stands for, with the server's own words if it ``said`` any. None for a
    reason that is no failure, or that is newer than this table: what came is then an answer like any other.

    >>> finish_failure("SAFETY", "", "google").kind
    'refused'
    >>> finish_failure("STOP", "", "google") is None
    True
    """
    kind, why = _FAILURES.get(reason, (None, ""))
    if kind is None:
        return None
    return Failure(f"{provider} ended the answer with {reason}: {said or why}", kind)


def block_failure(reason: str, said: str, provider: str) -> Failure:
    """The failure that a ``promptFeedback.blockReason`` stands for
    (https://ai.google.dev/api/generate-content#BlockReason).

    >>> block_failure("SAFETY", "", "google").text
    'google blocked the prompt (SAFETY)'
    """
    return Failure(f"{provider} blocked the prompt ({reason}){f': {said}' if said else ''}", "refused")
