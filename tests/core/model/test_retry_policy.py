"""The documented numbers of the retries."""

from __future__ import annotations

import pytest

from midturn_core.errors import (
    BadRequestError,
    ModelError,
    ModelTimeoutError,
    OfflineError,
    OverloadedError,
    RateLimitedError,
)
from midturn_core.model.retry_policy import RetryPolicy


def delays(error: ModelError, jitter: float = 0.0) -> list[float]:
    policy = RetryPolicy()
    found: list[float] = []
    while (retry := policy.next_retry(len(found), error, jitter)) is not None:
        assert retry.attempt == len(found) + 1
        assert retry.reason == str(error)
        found.append(retry.delay)
    return found


def test_a_busy_service_is_asked_six_times_within_about_half_a_minute() -> None:
    assert delays(OverloadedError("busy")) == [1, 2, 4, 8, 16]


def test_jitter_takes_up_to_a_quarter() -> None:
    assert delays(OverloadedError("busy"), jitter=1.0) == [0.75, 1.5, 3, 6, 12]


def test_an_address_that_does_not_answer_is_tried_three_times() -> None:
    assert delays(OfflineError("gone")) == [1, 2]


def test_a_silent_service_is_tried_twice() -> None:
    assert delays(ModelTimeoutError("silent")) == [1]


def test_what_stays_wrong_is_not_tried_again() -> None:
    assert delays(BadRequestError("no")) == []


@pytest.mark.parametrize(("seconds", "expected"), [(3.0, [3.0] * 5), (60.0, [60.0] * 5)])
def test_retry_after_is_taken_at_its_word(seconds: float, expected: list[float]) -> None:
    assert delays(RateLimitedError("slow", retry_after=seconds), jitter=1.0) == expected


def test_more_than_a_minute_is_not_waited_for() -> None:
    assert delays(RateLimitedError("slow", retry_after=60.5)) == []


def test_retry_after_zero_does_not_hammer() -> None:
    assert delays(RateLimitedError("slow", retry_after=0.0)) == [1, 2, 4, 8, 16]
