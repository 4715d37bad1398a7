"""From what a service says when it fails to the ``ModelError`` that the user sees. Pure.

Each error is one sentence and a way out. The same classes serve a refused request (by status) and
an error in mid-stream (status 200, by type).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import cast

from midturn_core.errors import (
    BadRequestError,
    ContextFullError,
    CredentialRejectedError,
    ModelError,
    ModelTimeoutError,
    OverloadedError,
    RateLimitedError,
    ServiceError,
    UnknownModelError,
)

_NO_WAIT = 1e9
"""Seconds. A number beyond it is no wish to wait, but a mistake."""
QUOTE_LIMIT = 400
"""Characters of the service's own words that are passed on."""

_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_CONTEXT_FULL = re.compile(
    r"prompt is too long|exceeds? (?:the )?(?:model'?s? )?(?:maximum )?context"
    r"|context[ _](?:length|window|limit)|context_length_exceeded",
    re.IGNORECASE,
)
_ANSWER_TOO_LONG = re.compile(r"max_tokens\W{0,2} exceeds?\b.{0,20}\bcontext", re.IGNORECASE)
_TOKEN_SUM = re.compile(r"(\d{1,9}) \+ \d{1,9} > (\d{1,9})")
LEAST_ANSWER = 2_000
"""Tokens. With less room for an answer than this the history has to be compacted."""
_SPEND_CODES = frozenset({"contract_spend_limit_reached", "enforced_spend_limit_reached"})
_SPEND = re.compile(r"credit balance|spend limit|billing", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ServiceFailure:
    """What the service said. ``status`` 0: it said so in mid-stream, ``type`` decides."""

    status: int
    type: str
    message: str
    code: str = ""
    retry_after: float | None = None
    """Seconds."""
    retry_allowed: bool | None = None
    """The service's own word on whether to send the request again; None when it has none."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Whom was asked for what, for the sentences."""

    address: str
    model: str


def read_failure(
    status: int, body: object, headers: Mapping[str, str], now: float
) -> ServiceFailure:
    """``headers`` with lower-case names; ``now`` in seconds since the epoch."""
    error = _dict(_dict(body).get("error"))
    message = error.get("message")
    code = _dict(error.get("details")).get("error_code")
    kind = error.get("type")
    words = message if isinstance(message, str) else body if isinstance(body, str) else ""
    allowed = {"true": True, "false": False}.get(headers.get("x-should-retry", ""))
    return ServiceFailure(
        status,
        kind if isinstance(kind, str) else "",
        _quote(words),
        code if isinstance(code, str) else "",
        parse_retry_after(headers, now),
        allowed,
    )


def parse_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait, from ``retry-after-ms`` or ``retry-after`` (seconds or a date).

    A date counts from the answer's own ``date`` where there is one, so that a wrong clock here
    does no harm.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "")
    seconds = _number(text)
    if seconds is not None:
        return seconds
    until = _timestamp(text)
    if until is None:
        return None
    since = _timestamp(headers.get("date", ""))
    return max(0.0, until - (now if since is None else since))


def fitting_max_tokens(refusal: str, asked: int) -> int | None:
    """A smaller ``max_tokens`` for a request of which input and answer together were refused.

    What fits by the numbers of the refusal, half of what was asked for without numbers. None: it
    refuses something else, or leaves less room than ``LEAST_ANSWER``.
    """
    if not _ANSWER_TOO_LONG.search(refusal):
        return None
    numbers = _TOKEN_SUM.search(refusal)
    room = int(numbers[2]) - int(numbers[1]) if numbers else asked // 2
    return room if LEAST_ANSWER <= room < asked else None


def to_error(failure: ServiceFailure, endpoint: Endpoint) -> ModelError:
    """The error of the user for this failure."""
    error = _classify(failure, endpoint)
    error.retry_after = failure.retry_after
    if failure.retry_allowed is not None:
        error.retryable = error.retryable and failure.retry_allowed
    return error


def describe_wait(seconds: float) -> str:
    """A span of time in words, such as ``3 s``, ``4 min`` or ``1 h 5 min``."""
    if seconds < 60:
        return f"{math.ceil(seconds)} s"
    minutes = math.ceil(seconds / 60)
    hours, rest = divmod(minutes, 60)
    return " ".join(
        part for part in (f"{hours} h" * bool(hours), f"{rest} min" * bool(rest)) if part
    )


def _classify(failure: ServiceFailure, endpoint: Endpoint) -> ModelError:
    status = failure.status or _STATUS_OF_TYPE.get(failure.type, 500)
    match status:
        case 401 | 403:
            return _credential_rejected(status, failure, endpoint)
        case 404:
            return _not_found(failure, endpoint)
        case 408 | 504:
            return ModelTimeoutError(
                _sentence("The service gave up on the request", failure), way_out=_TRY_AGAIN
            )
        case 429:
            return _rate_limited(failure)
        case 529:
            return OverloadedError(
                _sentence("The service is overloaded" + _wished_wait(failure), failure),
                way_out=_TRY_AGAIN,
            )
        case _ if status >= 500 or status == 409:
            return ServiceError(
                _sentence(
                    f"The service failed with status {status}{_wished_wait(failure)}", failure
                ),
                way_out=_TRY_AGAIN,
            )
        case _:
            return _refused(status, failure)


_TRY_AGAIN = "Wait a moment, then /retry."


def _credential_rejected(
    status: int, failure: ServiceFailure, endpoint: Endpoint
) -> CredentialRejectedError:
    what = "refused the key" if status == 401 else "does not allow this with the key"
    return CredentialRejectedError(
        _sentence(f"The service at {endpoint.address} {what}", failure),
        way_out="Check ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN) and start again; "
        "`midturn demo` works without one.",
    )


def _not_found(failure: ServiceFailure, endpoint: Endpoint) -> UnknownModelError:
    if failure.type == "not_found_error":
        return UnknownModelError(
            _sentence(f"The service does not know the model {endpoint.model!r}", failure),
            way_out="Choose another one with /model or in [model] name.",
        )
    return UnknownModelError(
        f"There is no Messages API with the model {endpoint.model!r} at {endpoint.address}.",
        way_out="Check ANTHROPIC_BASE_URL or [model] base_url, and the model's name.",
    )


def _rate_limited(failure: ServiceFailure) -> RateLimitedError:
    if failure.code in _SPEND_CODES or _SPEND.search(failure.message):
        error = RateLimitedError(
            _sentence("The spending limit of the key is reached", failure),
            way_out="Raise the limit in the service's console, or use another key.",
        )
        error.retryable = False
        return error
    what = "The rate limit is reached" + _wished_wait(failure)
    return RateLimitedError(_sentence(what, failure), way_out="Wait, then /retry.")


def _wished_wait(failure: ServiceFailure) -> str:
    if not failure.retry_after:
        return ""
    return f", the service asks to wait {describe_wait(failure.retry_after)}"


def _refused(status: int, failure: ServiceFailure) -> ModelError:
    if (
        failure.type == "request_too_large"
        or status == 413
        or _CONTEXT_FULL.search(failure.message)
    ):
        return ContextFullError(
            _sentence("The conversation no longer fits into the model's context", failure),
            way_out="/compact makes room; /clear starts anew.",
        )
    sentence = _sentence(f"The service refused the request with status {status}", failure)
    if 300 <= status < 400:
        way_out = "Set ANTHROPIC_BASE_URL or [model] base_url to the final address."
    elif status == 402 or _SPEND.search(failure.message):
        way_out = "Check the billing of the key's account, or use another key."
    elif failure.message.startswith("max_tokens"):
        way_out = "Set [model] max_tokens to what this model allows."
    else:
        way_out = "If it comes again, /compact or /clear; /model chooses another model."
    return BadRequestError(sentence, way_out=way_out)


def _sentence(what: str, failure: ServiceFailure) -> str:
    words = failure.message.rstrip(".")
    return f"{what}: {words}." if words else f"{what}."


def _quote(words: str) -> str:
    """On one line, without the markup of an error page, and not endless."""
    if words.lstrip()[:1] == "<":
        title = re.search(r"<title>(.*?)</title>", words, re.IGNORECASE | re.DOTALL)
        words = title[1] if title else ""
    line = " ".join(words.split())
    return line if len(line) <= QUOTE_LIMIT else line[:QUOTE_LIMIT].rstrip() + "…"


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return max(0.0, value) if value <= _NO_WAIT else None  # nor is NaN one


def _timestamp(text: str) -> float | None:
    # Imported late: some milliseconds of start-up time for a header that hardly ever comes.
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # the latter for a year of twenty digits
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _dict(value: object) -> Mapping[object, object]:
    return cast("dict[object, object]", value) if isinstance(value, dict) else {}
