"""When a failed request is sent again by itself. Pure; the numbers are documented here.

It applies only while nothing of an answer was passed on; what comes later is the turn loop's.
"""

from __future__ import annotations

from dataclasses import dataclass

from midturn_core.errors import ModelError, ModelTimeoutError, OfflineError
from midturn_core.model.client import RetryScheduled

LONGEST_WAIT = 60.0
"""Seconds; a longer ``retry-after`` is not waited for, the error says how long it is."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Waits of 1, 2, 4, 8 and 16 s, each up to a quarter less, or what ``retry-after`` says.

    A busy or failing service is asked at most 6 times within about half a minute (with
    ``retry-after`` at most 5 waits of up to 60 s each); an address that does not answer at all
    3 times; a service that takes the request and stays silent twice.
    """

    busy_retries: int = 5
    connection_retries: int = 2
    silence_retries: int = 1
    first_delay: float = 1.0
    """Seconds; doubled with every retry."""
    max_delay: float = 16.0
    longest_wait: float = LONGEST_WAIT

    def next_retry(self, retries: int, error: ModelError, jitter: float) -> RetryScheduled | None:
        """The wait before the next request, after ``retries`` retries; None to give up.

        ``jitter`` is a random number from 0 to 1.
        """
        limit = self._limit(error)
        if not error.retryable or retries >= limit:
            return None
        delay = error.retry_after
        if delay is not None and delay > self.longest_wait:
            return None
        if not delay:
            delay = min(self.max_delay, self.first_delay * 2**retries) * (1 - jitter / 4)
        return RetryScheduled(retries + 1, limit, delay, str(error))

    def _limit(self, error: ModelError) -> int:
        match error:
            case OfflineError():
                return self.connection_retries
            case ModelTimeoutError():
                return self.silence_retries
            case _:
                return self.busy_retries
