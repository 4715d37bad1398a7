"""``ToolConcurrencyConfig``: whether and how far tool uses run in parallel (S1.42, S1.43, D21)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypedDict, get_args

DEFAULT_MAX_CONCURRENCY = 4
MAX_CONCURRENCY_LIMIT = 10
MAX_CALLS_PER_BATCH = 50
"""The largest and the default ``max_calls`` (D33)."""

MixedBatches: TypeAlias = Literal["sequential", "segments"]
"""How a batch with safe and unsafe calls runs: one after another altogether, or neighbouring safe
ones together with each unsafe one as a barrier between them (D23)."""
CallStart: TypeAlias = Literal["complete", "streaming"]
"""When the first calls of a response may start: when it is complete, or while it streams (D24)."""


@dataclass(frozen=True, slots=True)
class ToolConcurrencyConfig:
    """Immutable; off by default. Durations are seconds.

    ``per_batch_max`` None means ``max_concurrency``, that is one tier only (S1.13);
    ``per_context_max`` None means that a context alone may hold every slot (S1.16). Calls of a
    batch beyond ``max_calls`` get an error result that names the limit (D33). ``mixed`` and
    ``start`` count only while ``enabled``.

    Raises:
        ValueError: a value is out of its range; the text names the key and the range.
    """

    enabled: bool = False
    max_concurrency: int = DEFAULT_MAX_CONCURRENCY
    per_batch_max: int | None = None
    per_context_max: int | None = None
    max_calls: int = MAX_CALLS_PER_BATCH
    mixed: MixedBatches = "sequential"
    start: CallStart = "complete"
    fail_fast: bool = False
    retry_failed: bool = False
    timeout_per_call: float = 30.0
    timeout_per_batch: float = 120.0

    def __post_init__(self) -> None:
        if not 1 <= self.max_concurrency <= MAX_CONCURRENCY_LIMIT:
            raise ValueError(
                f"max_concurrency must be 1..{MAX_CONCURRENCY_LIMIT}, not {self.max_concurrency}"
            )
        self._check_share("per_batch_max", self.per_batch_max)
        self._check_share("per_context_max", self.per_context_max)
        if not 1 <= self.max_calls <= MAX_CALLS_PER_BATCH:
            raise ValueError(f"max_calls must be 1..{MAX_CALLS_PER_BATCH}, not {self.max_calls}")
        self._check_modes()
        for name in ("timeout_per_call", "timeout_per_batch"):
            seconds = getattr(self, name)
            if not (seconds > 0 and math.isfinite(seconds)):
                raise ValueError(f"{name} must be more than 0 seconds and finite, not {seconds}")

    def _check_share(self, name: str, share: int | None) -> None:
        if share is not None and not 1 <= share <= self.max_concurrency:
            raise ValueError(
                f"{name} must be 1..{self.max_concurrency} (max_concurrency), not {share}"
            )

    def _check_modes(self) -> None:
        for name, known in (("mixed", get_args(MixedBatches)), ("start", get_args(CallStart))):
            if getattr(self, name) not in known:
                choices = " or ".join(f'"{word}"' for word in known)
                raise ValueError(f"{name} must be {choices}, not {getattr(self, name)!r}")
        if self.start == "streaming" and self.mixed != "segments":
            raise ValueError(
                'start = "streaming" needs mixed = "segments": only then is it known that no call '
                "before an early one changes anything"
            )

    @property
    def starts_early(self) -> bool:
        """Whether calls may start while the response that asks for them streams (D24)."""
        return self.enabled and self.start == "streaming"

    @property
    def batch_slots(self) -> int:
        """How many slots one batch may hold at once."""
        return self.per_batch_max if self.per_batch_max is not None else self.max_concurrency

    @property
    def context_slots(self) -> int:
        """How many slots all batches of one context may hold at once."""
        return self.per_context_max if self.per_context_max is not None else self.max_concurrency

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
    per_context_max: int | None
    max_calls: int
    mixed: MixedBatches
    start: CallStart
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

    def per_context_max(self, value: int | None) -> ToolConcurrencyConfigBuilder:
        self._values["per_context_max"] = value
        return self

    def max_calls(self, value: int) -> ToolConcurrencyConfigBuilder:
        self._values["max_calls"] = value
        return self

    def mixed(self, value: MixedBatches) -> ToolConcurrencyConfigBuilder:
        self._values["mixed"] = value
        return self

    def start(self, value: CallStart) -> ToolConcurrencyConfigBuilder:
        self._values["start"] = value
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
