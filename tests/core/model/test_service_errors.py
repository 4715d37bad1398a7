"""What a service says becomes one sentence and a way out."""

from __future__ import annotations

import pytest

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
from midturn_core.model.service_errors import (
    QUOTE_LIMIT,
    Endpoint,
    describe_wait,
    fitting_max_tokens,
    parse_retry_after,
    read_failure,
    to_error,
)

ENDPOINT = Endpoint("https://host/prefix", "claude-opus-5-5")


def error_of(
    status: int, kind: str = "", message: str = "", headers: dict[str, str] | None = None
) -> ModelError:
    body = {"type": "error", "error": {"type": kind, "message": message}}
    return to_error(read_failure(status, body, headers or {}, 0.0), ENDPOINT)


@pytest.mark.parametrize(
    ("status", "kind", "message", "expected", "retryable"),
    [
        (400, "invalid_request_error", "tools: no", BadRequestError, False),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 201 tokens > 200 maximum",
            ContextFullError,
            False,
        ),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
            ContextFullError,
            False,
        ),
        (400, "", "This model's maximum context length is 8192 tokens", ContextFullError, False),
        (401, "authentication_error", "invalid x-api-key", CredentialRejectedError, False),
        (402, "billing_error", "no credit", BadRequestError, False),
        (403, "permission_error", "no", CredentialRejectedError, False),
        (404, "not_found_error", "model: x", UnknownModelError, False),
        (404, "", "", UnknownModelError, False),
        (408, "", "", ModelTimeoutError, True),
        (409, "", "", ServiceError, True),
        (413, "request_too_large", "too large", ContextFullError, False),
        (422, "", "field required", BadRequestError, False),
        (429, "rate_limit_error", "slow", RateLimitedError, True),
        (500, "api_error", "oops", ServiceError, True),
        (503, "", "", ServiceError, True),
        (504, "timeout_error", "", ModelTimeoutError, True),
        (529, "overloaded_error", "Overloaded", OverloadedError, True),
        (0, "overloaded_error", "Overloaded", OverloadedError, True),
        (0, "rate_limit_error", "slow", RateLimitedError, True),
        (0, "timeout_error", "", ModelTimeoutError, True),
        (0, "of_the_future", "", ServiceError, True),
    ],
)
def test_every_failure_has_its_class_a_sentence_and_a_way_out(
    status: int, kind: str, message: str, expected: type[ModelError], retryable: bool
) -> None:
    error = error_of(status, kind, message)
    assert type(error) is expected
    assert error.retryable is retryable
    assert message in str(error)
    assert "\n" not in str(error)
    assert str(error).endswith(".")
    assert error.way_out.endswith(".")


def test_a_wrong_key_says_where_and_how_to_set_it() -> None:
    error = error_of(401, "authentication_error", "invalid x-api-key")
    assert "https://host/prefix" in str(error)
    assert "ANTHROPIC_API_KEY" in error.way_out


def test_a_404_of_something_else_points_to_the_address() -> None:
    error = to_error(read_failure(404, "<html>nginx</html>", {}, 0.0), ENDPOINT)
    assert "base_url" in error.way_out
    assert "<html>" not in str(error)


@pytest.mark.parametrize("status", [429, 503, 529])
def test_a_long_wait_is_told_whatever_the_status(status: int) -> None:
    """MB-1010."""
    error = error_of(status, headers={"retry-after": "3600"})
    assert error.retry_after == 3600
    assert "the service asks to wait 1 h" in str(error)


def test_a_spending_limit_is_not_retried() -> None:
    details = {"error_code": "enforced_spend_limit_reached"}
    body = {"error": {"type": "rate_limit_error", "message": "limit", "details": details}}
    error = to_error(read_failure(429, body, {"retry-after": "5"}, 0.0), ENDPOINT)
    assert type(error) is RateLimitedError
    assert not error.retryable


def test_the_word_of_the_service_on_retrying_counts() -> None:
    assert not error_of(500, headers={"x-should-retry": "false"}).retryable
    assert not error_of(401, headers={"x-should-retry": "true"}).retryable


def test_too_many_max_tokens_names_the_setting() -> None:
    words = "max_tokens: 70000 > 64000, which is the maximum allowed number of output tokens"
    assert "max_tokens" in error_of(400, "invalid_request_error", words).way_out


def test_an_error_page_is_quoted_by_its_title() -> None:
    page = "<html><head><title>502 Bad\n Gateway</title></head><body>...</body></html>"
    assert "502 Bad Gateway" in str(to_error(read_failure(502, page, {}, 0.0), ENDPOINT))


def test_long_words_are_cut() -> None:
    assert len(str(error_of(400, "invalid_request_error", "x" * 9000))) < QUOTE_LIMIT + 200


@pytest.mark.parametrize("body", [None, 5, [], {}, {"error": "no"}, {"error": {"message": 5}}])
def test_a_body_of_any_shape_is_survived(body: object) -> None:
    assert "status 500" in str(to_error(read_failure(500, body, {}, 0.0), ENDPOINT))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 90.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 +0000"}, 90.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        (
            {
                "retry-after": "Mon, 30 Nov 2026 10:00:30 GMT",
                "date": "Mon, 30 Nov 2026 10:00:00 GMT",
            },
            30.0,
        ),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e300"}, None),
        ({"retry-after": "Thu, 01 Jan 99999999999999999999 00:01:40 GMT"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2.0),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert parse_retry_after(headers, now=10.0) == seconds


@pytest.mark.parametrize(
    ("refusal", "room"),
    [
        ("input length and `max_tokens` exceed context limit: 9000 + 16000 > 20000, ...", 11_000),
        ("input length and `max_tokens` exceed context limit: 18000 + 16000 > 20000", 2_000),
        ("input length and `max_tokens` exceed context limit: 18001 + 16000 > 20000", None),
        ("input length and `max_tokens` exceed context limit: 1 + 1 > 99999", None),
        ("input length and max_tokens exceed context limit", 8_000),
        ("prompt is too long: 250000 tokens > 200000 maximum", None),
        ("max_tokens: 70000 > 64000, which is the maximum allowed number of output tokens", None),
    ],
)
def test_room_for_an_answer_is_read_from_the_refusal(refusal: str, room: int | None) -> None:
    assert fitting_max_tokens(refusal, 16_000) == room


def test_halving_the_room_for_an_answer_ends() -> None:
    assert fitting_max_tokens("max_tokens exceeds the context window", 3_999) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (59, "59 s"), (60, "1 min"), (61, "2 min"), (3600, "1 h"), (3900, "1 h 5 min")],
)
def test_a_wait_is_told_in_words(seconds: float, words: str) -> None:
    assert describe_wait(seconds) == words
