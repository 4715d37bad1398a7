"""The exceptions of Midturn.

MidturnError
├── ConfigError              a configuration value or file cannot be used (exit code 2)
├── SessionError             a session cannot be opened or written
├── QueueError
│   ├── QueueFullError       the cap of a context is reached; the text stays with the user (D11)
│   └── QueueStoreError      the store of the queue cannot be used
│       └── QueueStoreGoneError  it was taken away while it was open; opening it anew may help
├── PictureError             a file cannot be sent as a picture
│   └── NotAPictureError     it is none
├── ConversationError        a history that the Messages API would refuse
└── ModelError               a request to the model failed; carries a way out for the user
    ├── MissingCredentialError
    ├── CredentialRejectedError
    ├── UnknownModelError
    ├── BadRequestError
    ├── ContextFullError     the history no longer fits; compaction is the way out
    ├── RateLimitedError
    ├── OverloadedError
    ├── ServiceError         5xx
    ├── OfflineError         no connection
    ├── ModelTimeoutError    no answer, or a stream that went silent
    └── TruncatedStreamError the stream ended without its last event
"""

from __future__ import annotations


class MidturnError(Exception):
    """Base class. ``str(error)`` is one sentence for the user."""


class ConfigError(MidturnError):
    """A configuration file, variable or flag cannot be used. Says where and what is allowed.

    Attributes:
        problems: everything that is wrong, each in one sentence.
    """

    def __init__(self, *problems: str):
        super().__init__("; ".join(problems))
        self.problems = problems


class SessionError(MidturnError):
    """A session cannot be found, read or written."""


class QueueError(MidturnError):
    """The queue refused an operation; nothing was changed."""


class QueueFullError(QueueError):
    """The cap of this context is reached (D11); nothing was stored."""

    def __init__(self, cap: int) -> None:
        super().__init__(
            f"{cap} inputs are already waiting; remove one with /queue rm, or raise queue.cap"
        )


class QueueStoreError(QueueError):
    """The file or server that keeps the queue cannot be used.

    The one queue error after which the change may have happened all the same: the connection to
    a server can break after the server has carried it out. To enqueue the same input again is
    always right.

    Attributes:
        problem: what is wrong.
        where: the file or the server, without credentials.
        way_out: what the user can do about it.
    """

    def __init__(self, problem: str, *, where: str, way_out: str) -> None:
        super().__init__(f"the queue in {where} cannot be used: {problem}; {way_out}")
        self.problem = problem
        self.where = where
        self.way_out = way_out


class QueueStoreGoneError(QueueStoreError):
    """The store was removed or replaced while it was open: what is open leads nowhere."""


class PictureError(MidturnError):
    """A file cannot be sent as a picture. ``str(error)`` goes on after "it": "is too large"."""


class NotAPictureError(PictureError):
    """The content is no picture, whatever the name says."""


class ConversationError(MidturnError):
    """An operation would make the history invalid for the Messages API."""


class ModelError(MidturnError):
    """A request to the model failed.

    Attributes:
        way_out: one sentence: what the user can do now.
        retryable: whether sending the same request again may succeed.
        retry_after: seconds the service asked to wait; None when it did not say.
    """

    retryable = False

    def __init__(self, message: str, *, way_out: str = "", retry_after: float | None = None):
        super().__init__(message)
        self.way_out = way_out
        self.retry_after = retry_after


class MissingCredentialError(ModelError):
    """No key and no token is configured."""


class CredentialRejectedError(ModelError):
    """The service refused the key or its permissions (401, 403)."""


class UnknownModelError(ModelError):
    """The service does not know the model (404)."""


class BadRequestError(ModelError):
    """The service refused the request (400, 402, 422, a redirect)."""


class ContextFullError(ModelError):
    """The history does not fit into the model's window or a request (400, 413) any more."""


class RateLimitedError(ModelError):
    """Too many requests or tokens (429)."""

    retryable = True


class OverloadedError(ModelError):
    """The service is overloaded (529)."""

    retryable = True


class ServiceError(ModelError):
    """The service failed (5xx)."""

    retryable = True


class OfflineError(ModelError):
    """The service cannot be reached."""

    retryable = True


class ModelTimeoutError(ModelError):
    """No answer in time, or a stream that went silent."""

    retryable = True


class TruncatedStreamError(ModelError):
    """The stream ended before the message was complete."""

    retryable = True


def internal_error(error: Exception) -> str:
    """One sentence about a defect of Midturn's own, for the user."""
    return f"Internal error: {error!r}"
