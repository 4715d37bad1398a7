"""``ToolConcurrencyConfig``: whether and how far tool uses run in parallel (S1.42, S1.43, D21)."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_MAX_CONCURRENCY = 4
MAX_CONCURRENCY_LIMIT = 10
MAX_CALLS_PER_BATCH = 50
"""Calls beyond it get an error result that names the limit (D33)."""


@dataclass(frozen=True, slots=True)
class ToolConcurrencyConfig:
    """Immutable; off by default. Durations are seconds.

    ``per_batch_max`` None means ``max_concurrency``, that is one tier only (S1.13).

    Raises:
        ValueError: a value is out of its range; the text names the key and the range.
    """

    enabled: bool = False
    max_concurrency: int = DEFAULT_MAX_CONCURRENCY
    per_batch_max: int | None = None
    fail_fast: bool = False
    retry_failed: bool = False
    timeout_per_call: float = 30.0
    timeout_per_batch: float = 120.0

    def __post_init__(self) -> None:
        if not 1 <= self.max_concurrency <= MAX_CONCURRENCY_LIMIT:
            raise ValueError(
                f"max_concurrency must be 1..{MAX_CONCURRENCY_LIMIT}, not {self.max_concurrency}"
            )
        if self.per_batch_max is not None and not 1 <= self.per_batch_max <= self.max_concurrency:
            raise ValueError(
                f"per_batch_max must be 1..{self.max_concurrency} (max_concurrency), "
                f"not {self.per_batch_max}"
            )
        for name in ("timeout_per_call", "timeout_per_batch"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be more than 0 seconds, not {getattr(self, name)}")

    @property
    def batch_slots(self) -> int:
        """How many slots one batch may hold at once."""
        return self.per_batch_max if self.per_batch_max is not None else self.max_concurrency
