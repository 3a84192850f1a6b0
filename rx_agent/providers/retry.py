"""Trying again: how long to wait, and an operator that waits on the scheduler it is subscribed with.

``Retry-After`` is RFC 9110, section 10.2.3 (https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3): seconds
or an HTTP date. ``retry-after-ms`` and ``x-should-retry`` are OpenAI's.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TypeVar

import reactivex
from reactivex import Observable
from reactivex import operators as ops
from reactivex.scheduler import ImmediateScheduler

from rx_agent.providers.http_errors import Failure, gave_up, too_long_to_wait

T = TypeVar("T")

_NOW = ImmediateScheduler.singleton()


class RetryableFailure(Exception):
    """Signalled by an attempt that failed before its first item and may be made again."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


class FinalFailure(Exception):
    """Signalled once no further attempt is made; ``failure`` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class BackOff:
    """How often and how long: ``first`` seconds, doubled at each retry up to ``longest``, less a random quarter.

    ``max_delay_ms`` is the longest wait that a server may ask for (0: any). ``jitter()`` gives 0 … 1.

    >>> [BackOff(jitter=lambda: 0.0).delay(retry, None) for retry in range(6)]
    [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]
    >>> BackOff().delay(0, 30.0)
    30.0
    """

    max_retries: int = 2
    max_delay_ms: int = 60_000
    first: float = 0.5
    longest: float = 8.0
    jitter: Callable[[], float] = random.random

    def delay(self, retry: int, retry_after: float | None) -> float:
        """Seconds to wait before the retry of this number (from 0); what the server asks for goes before."""
        if retry_after is not None:
            return retry_after
        seconds = min(self.first * 2.0 ** min(retry, 30), self.longest) * (1 - 0.25 * self.jitter())
        return min(seconds, self.max_delay_ms / 1000) if self.max_delay_ms else seconds

    def allows(self, delay: float) -> bool:
        """Whether a server may ask for ``delay`` seconds."""
        return not self.max_delay_ms or delay * 1000 <= self.max_delay_ms


def retry_with(back_off: BackOff) -> Callable[[Observable[T]], Observable[T]]:
    """An operator: subscribes again, after a delay, to a source that signals :class:`RetryableFailure`.

    Signals :class:`FinalFailure` when the retries are used up or the server asks for too long a wait; other
    errors pass. Delays run on the scheduler of the subscription, so they take no real time in virtual time,
    and disposing ends a wait at once.
    """

    def operator(source: Observable[T]) -> Observable[T]:
        def attempt(number: int) -> Observable[T]:
            def recover(error: Exception, _: Observable[T]) -> Observable[T]:
                if not isinstance(error, RetryableFailure):
                    return reactivex.throw(error, scheduler=_NOW)
                failure = error.failure
                if number >= back_off.max_retries:
                    return reactivex.throw(FinalFailure(gave_up(failure, number)), scheduler=_NOW)
                delay = back_off.delay(number, failure.retry_after)
                if not back_off.allows(delay):
                    return reactivex.throw(
                        FinalFailure(too_long_to_wait(failure, back_off.max_delay_ms)), scheduler=_NOW
                    )
                return reactivex.timer(delay).pipe(ops.flat_map(lambda _: attempt(number + 1)))

            return source.pipe(ops.catch(recover))

        return attempt(0)

    return operator


def retry_after_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """The wait in seconds that a response asks for, or None. ``headers`` have lower-case names.

    ``now`` is the time in seconds since the epoch, used for a date where the response has no ``Date`` of
    its own (the server's clock is the better reference). A date in the past is no wait; nonsense is no wish.

    >>> retry_after_seconds({"retry-after": "7"}, 0.0), retry_after_seconds({"retry-after-ms": "250"}, 0.0)
    (7.0, 0.25)
    >>> retry_after_seconds(
    ...     {"retry-after": "Thu, 01 Jan 1970 00:01:30 GMT", "date": "Thu, 01 Jan 1970 00:01:00 GMT"}, 0.0
    ... )
    30.0
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) / unit
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    at = _epoch(headers.get("retry-after"))
    if at is None:
        return None
    sent = _epoch(headers.get("date"))
    return max(0.0, at - (now if sent is None else sent))


def _epoch(date: str | None) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp() if date else None
    except (ValueError, OverflowError):
        return None
