"""The documented numbers of the retries."""

from __future__ import annotations

import re

import pytest

from midturn_core.compaction import SHRINKING
from midturn_core.errors import (
    BadRequestError,
    ModelError,
    ModelTimeoutError,
    OfflineError,
    OverloadedError,
    RateLimitedError,
)
from midturn_core.model.client_settings import IDLE_TIMEOUT
from midturn_core.model.reply import RESTART_PAUSES
from midturn_core.model.retry_policy import LONGEST_WAIT, RetryPolicy
from midturn_core.model.service_errors import LEAST_ANSWER
from tests.support.midturn_process import ROOT


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


def test_the_document_has_the_numbers_of_the_code() -> None:
    """MB-1009."""
    document = (ROOT / "docs" / "model.md").read_text(encoding="utf-8")
    rows = {
        name: (int(requests), pauses)
        for name, requests, pauses in re.findall(r"^\| (.+?) \| (\d+) \| (.+?) \|$", document, re.M)
    }
    busy = next(name for name in rows if name.startswith("busy"))
    assert rows[busy] == (6, "1, 2, 4, 8 and 16 s, each up to a quarter less")
    assert len(delays(OverloadedError("busy"))) == 5
    assert rows["the address does not answer"] == (
        1 + len(delays(OfflineError("gone"))),
        "1 and 2 s",
    )
    silent = f"the request is taken and nothing comes for {IDLE_TIMEOUT:g} s"
    assert rows[silent] == (1 + len(delays(ModelTimeoutError("silent"))), "1 s")
    broken = next(row for name, row in rows.items() if name.startswith("an answer breaks off"))
    assert broken[0] == 1 + len(RESTART_PAUSES)
    assert broken[1].startswith(f"{RESTART_PAUSES[0]:g} and {RESTART_PAUSES[1]:g} s")
    assert f"`retry-after` of more than {LONGEST_WAIT:g} s" in rows
    assert f"down to {LEAST_ANSWER:,} tokens" in document
    for characters, _ in SHRINKING:
        assert f"{characters:,}" in document


def test_what_stays_wrong_is_not_tried_again() -> None:
    assert delays(BadRequestError("no")) == []


@pytest.mark.parametrize(("seconds", "expected"), [(3.0, [3.0] * 5), (60.0, [60.0] * 5)])
def test_retry_after_is_taken_at_its_word(seconds: float, expected: list[float]) -> None:
    assert delays(RateLimitedError("slow", retry_after=seconds), jitter=1.0) == expected


def test_more_than_a_minute_is_not_waited_for() -> None:
    assert delays(RateLimitedError("slow", retry_after=60.5)) == []


def test_retry_after_zero_does_not_hammer() -> None:
    assert delays(RateLimitedError("slow", retry_after=0.0)) == [1, 2, 4, 8, 16]
