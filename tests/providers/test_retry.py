"""Trying again happens on the scheduler: minutes of waiting take no time here."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex
from reactivex import Observable, abc
from reactivex.disposable import Disposable
from reactivex.testing import ReactiveTest, TestScheduler

from rx_agent.providers.http_errors import Failure
from rx_agent.providers.retry import BackOff, FinalFailure, RetryableFailure, retry_after_seconds, retry_with

on_next, on_completed = ReactiveTest.on_next, ReactiveTest.on_completed
STEADY = BackOff(max_retries=2, first=10.0, longest=1000.0, max_delay_ms=60_000, jitter=lambda: 0.0)


class Attempts:
    """An attempt that fails as often as it is told, and the times at which it was made."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.times: list[float] = []
        self.open = 0

    def __call__(self) -> Observable[str]:
        def subscribe(observer: abc.ObserverBase[str], scheduler: abc.SchedulerBase | None = None) -> Any:
            assert isinstance(scheduler, TestScheduler)
            self.times.append(scheduler.clock)
            if self.failures:
                observer.on_error(self.failures.pop(0))
            else:
                observer.on_next("answer")
                observer.on_completed()
            self.open += 1
            return Disposable(lambda: setattr(self, "open", self.open - 1))

        return Observable(subscribe)


def failing(times: int, **fields: Any) -> list[Exception]:
    return [RetryableFailure(Failure("busy", "overloaded", True, **fields)) for _ in range(times)]


def run(attempts: Attempts, back_off: BackOff = STEADY, *, disposed: float = 100_000) -> list[Any]:
    scheduler = TestScheduler()
    return scheduler.start(lambda: attempts().pipe(retry_with(back_off)), disposed=disposed).messages


def test_an_answer_at_once_is_passed_on_at_once():
    attempts = Attempts()
    assert run(attempts) == [on_next(200, "answer"), on_completed(200)]
    assert attempts.open == 0


def test_delays_double():
    attempts = Attempts(*failing(2))
    assert run(attempts) == [on_next(230, "answer"), on_completed(230)]
    assert attempts.times == [200, 210, 230]
    assert attempts.open == 0


def test_after_the_last_retry_the_failure_is_final_and_says_so():
    attempts = Attempts(*failing(5))
    (last,) = run(attempts)
    assert last.time == 230
    assert isinstance(last.value.exception, FinalFailure)
    assert last.value.exception.failure == Failure("busy. Tried again 2 times in vain.", "overloaded")
    assert len(attempts.times) == 3


def test_the_wait_that_a_server_asks_for_is_kept():
    attempts = Attempts(*failing(1, retry_after=42.0))
    assert run(attempts) == [on_next(242, "answer"), on_completed(242)]


def test_too_long_a_wait_is_refused_with_its_length():
    attempts = Attempts(*failing(1, retry_after=3600.0))
    (last,) = run(attempts)
    assert last.time == 200
    assert "wait 3600 s" in last.value.exception.failure.text
    assert "max_retry_delay_ms allows (60 s)" in last.value.exception.failure.text


def test_zero_waits_for_any():
    attempts = Attempts(*failing(1, retry_after=3600.0))
    assert run(attempts, BackOff(max_delay_ms=0)) == [on_next(3800, "answer"), on_completed(3800)]


def test_a_failure_that_is_not_to_be_repeated_passes():
    error = ValueError("no")
    (last,) = run(Attempts(error))
    assert last.value.exception is error


def test_no_retries_means_one_attempt():
    attempts = Attempts(*failing(1))
    (last,) = run(attempts, BackOff(max_retries=0))
    assert last.value.exception.failure.text == "busy"
    assert attempts.times == [200]


def test_disposing_ends_the_wait():
    attempts = Attempts(*failing(1))
    assert run(attempts, disposed=205) == []
    assert attempts.times == [200]
    assert attempts.open == 0


def test_jitter_only_shortens_and_by_a_quarter_at_most():
    delays = [BackOff(jitter=lambda j=j: j).delay(1, None) for j in (0.0, 0.5, 1.0)]
    assert delays == [1.0, 0.875, 0.75]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:02:00 GMT"}, 20.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
    ],
)
def test_reading_the_wait(headers: dict[str, str], seconds: float | None):
    assert retry_after_seconds(headers, 100.0) == seconds


def test_a_date_is_measured_by_the_servers_own_clock():
    headers = {"retry-after": "Thu, 01 Jan 2026 00:00:30 GMT", "date": "Thu, 01 Jan 2026 00:00:00 GMT"}
    assert retry_after_seconds(headers, 0.0) == 30.0


def test_many_retries_use_no_deep_stack():
    attempts = Attempts(*failing(200))
    back_off = BackOff(max_retries=200, first=1.0, longest=1.0, jitter=lambda: 0.0)
    assert run(attempts, back_off) == [on_next(400, "answer"), on_completed(400)]


def test_the_operator_composes():
    scheduler = TestScheduler()
    attempts = Attempts(*failing(1))
    source = reactivex.concat(attempts().pipe(retry_with(STEADY)), reactivex.just("after"))
    values = [m.value.value for m in scheduler.start(lambda: source).messages if m.value.kind == "N"]
    assert values == ["answer", "after"]
