"""``ToolConcurrencyConfig``: whether and how far tool uses run in parallel (S1.42, S1.43, D21)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

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
            seconds = getattr(self, name)
            if not (seconds > 0 and math.isfinite(seconds)):
                raise ValueError(f"{name} must be more than 0 seconds and finite, not {seconds}")

    @property
    def batch_slots(self) -> int:
        """How many slots one batch may hold at once."""
        return self.per_batch_max if self.per_batch_max is not None else self.max_concurrency

    @classmethod
    def off(cls) -> ToolConcurrencyConfig:
        """The ``disabled()`` of S1.43: one call at a time, no pool.

        ``enabled`` is the field that says whether parallel is on, so the factories of S1.43 are
        spelled ``off`` and ``on``.
        """
        return cls()

    @classmethod
    def on(
        cls, max_concurrency: int = DEFAULT_MAX_CONCURRENCY, per_batch_max: int | None = None
    ) -> ToolConcurrencyConfig:
        """The ``enabled(n)`` and ``enabled(n, k)`` of S1.43."""
        return cls(enabled=True, max_concurrency=max_concurrency, per_batch_max=per_batch_max)

    @staticmethod
    def builder() -> ToolConcurrencyConfigBuilder:
        """Collects values one by one; ``build()`` equals the keyword form (S1.12)."""
        return ToolConcurrencyConfigBuilder()


class _Values(TypedDict, total=False):
    enabled: bool
    max_concurrency: int
    per_batch_max: int | None
    fail_fast: bool
    retry_failed: bool
    timeout_per_call: float
    timeout_per_batch: float


class ToolConcurrencyConfigBuilder:
    """Ranges are checked by ``build()``; what was not set keeps its default."""

    def __init__(self) -> None:
        self._values: _Values = {}

    def enabled(self, value: bool) -> ToolConcurrencyConfigBuilder:
        self._values["enabled"] = value
        return self

    def max_concurrency(self, value: int) -> ToolConcurrencyConfigBuilder:
        self._values["max_concurrency"] = value
        return self

    def per_batch_max(self, value: int | None) -> ToolConcurrencyConfigBuilder:
        self._values["per_batch_max"] = value
        return self

    def fail_fast(self, value: bool) -> ToolConcurrencyConfigBuilder:
        self._values["fail_fast"] = value
        return self

    def retry_failed(self, value: bool) -> ToolConcurrencyConfigBuilder:
        self._values["retry_failed"] = value
        return self

    def timeout_per_call(self, seconds: float) -> ToolConcurrencyConfigBuilder:
        self._values["timeout_per_call"] = seconds
        return self

    def timeout_per_batch(self, seconds: float) -> ToolConcurrencyConfigBuilder:
        self._values["timeout_per_batch"] = seconds
        return self

    def build(self) -> ToolConcurrencyConfig:
        """
        Raises:
            ValueError: a value is out of its range; the text names the key and the range.
        """
        return ToolConcurrencyConfig(**self._values)
