"""Whether the times in a ledger keep the rules: starts, order of segments, and the limits. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from midturn_core.ledger.entries import LedgerBatch, LedgerLimits
from midturn_core.model.messages import Outcome

_NEVER_RAN = frozenset({Outcome.SKIPPED, Outcome.DENIED})
_RAN = frozenset({Outcome.SUCCEEDED, Outcome.STOPPED})


@dataclass(frozen=True, slots=True)
class Problem:
    """A sentence that names the batch, the call and what is wrong. Names in it are untrusted."""

    text: str


class Named(Protocol):
    """What a call has in the history and in the ledger."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class _Span:
    """The time in which the tool of a call ran."""

    batch: LedgerBatch
    index: int
    start: float
    end: float

    @property
    def name(self) -> str:
        return call_name(self.index + 1, self.batch.calls[self.index])


def call_name(number: int, call: Named) -> str:
    """How a call is spoken of; ``number`` counts from 1."""
    return f"call {number} ({call.name})"


def check_times(ledger: Sequence[LedgerBatch]) -> list[Problem]:
    """Everything that is wrong, batch by batch, and then between batches."""
    problems: list[Problem] = []
    for batch in ledger:
        problems += _own_times(batch)
        problems += _segments(batch)
        problems += _too_many([batch], "per_batch_max", lambda limits: limits.per_batch_max)
    for batches in _grouped(ledger, lambda batch: (batch.run,)):
        problems += _too_many(batches, "max_concurrency", lambda limits: limits.max_concurrency)
    for batches in _grouped(ledger, lambda batch: (batch.run, batch.context_id)):
        problems += _sequence(batches)
        problems += _too_many(batches, "per_context_max", lambda limits: limits.per_context_max)
    return problems


def _grouped(
    ledger: Sequence[LedgerBatch], key: Callable[[LedgerBatch], tuple[str, ...]]
) -> Iterable[list[LedgerBatch]]:
    groups: dict[tuple[str, ...], list[LedgerBatch]] = {}
    for batch in ledger:
        groups.setdefault(key(batch), []).append(batch)
    return groups.values()


def _own_times(batch: LedgerBatch) -> Iterator[Problem]:
    for number, call in enumerate(batch.calls, start=1):
        said = f"Batch {batch.batch_id}: {call_name(number, call)}"
        if (call.started is None) != (call.ended is None):
            yield Problem(f"{said} has only one of its two times.")
        elif call.started is None or call.ended is None:
            if call.outcome in _RAN:
                yield Problem(f'{said} has "{call.outcome.value}" and never ran.')
        elif call.outcome in _NEVER_RAN:
            yield Problem(f'{said} has "{call.outcome.value}" and yet it ran.')
        elif call.ended < call.started:
            early = call.started - call.ended
            yield Problem(f"{said} had its result {early:.3f} s before it started.")


def _segments(batch: LedgerBatch) -> Iterator[Problem]:
    """A segment begins when all before it are over (D23); a sequential batch is all segments."""
    said = f"Batch {batch.batch_id}"
    spans = {span.index: span for span in _spans([batch])}
    planned = {index for segment in batch.segments for index in segment}
    for index in sorted(spans.keys() - planned):
        yield Problem(f"{said}: {spans[index].name} ran without a place in the batch.")
    latest: _Span | None = None
    for segment in batch.segments:
        running = [spans[index] for index in segment if index in spans]
        for span in running:
            if latest is not None and span.start < latest.end:
                gap = latest.end - span.start
                yield Problem(
                    f"{said}: {span.name} began {gap:.3f} s before {latest.name} had ended; "
                    "these two may not overlap."
                )
        latest = _last_to_end(running, latest)


def _too_many(
    batches: Sequence[LedgerBatch], limit: str, limit_of: Callable[[LedgerLimits], int]
) -> Iterator[Problem]:
    """A cap over several batches. One that changed meanwhile counts as the larger one: what runs
    already is not cut.
    """
    for crowd in _crowds(_pooled(batches)):
        allowed = max(limit_of(span.batch.limits) for span in crowd)
        if len(crowd) > allowed:
            names = ", ".join(f"{span.name} of batch {span.batch.batch_id}" for span in crowd)
            yield Problem(
                f"Run {batches[0].run}: {len(crowd)} calls ran at once, where {limit} allows "
                f"{allowed}: {names}."
            )
            return


def _sequence(batches: Sequence[LedgerBatch]) -> Iterator[Problem]:
    """A context asks for its next batch when it has the results of the one before."""
    latest: _Span | None = None
    for batch in batches:
        spans = list(_spans([batch]))
        first = min(spans, key=lambda span: span.start, default=None)
        if first is not None and latest is not None and first.start < latest.end:
            yield Problem(
                f"Batch {batch.batch_id}: {first.name} began before {latest.name} of batch "
                f"{latest.batch.batch_id} had ended, which is of the same conversation."
            )
        latest = _last_to_end(spans, latest)


def _last_to_end(spans: Iterable[_Span], before: _Span | None) -> _Span | None:
    for span in spans:
        if before is None or span.end > before.end:
            before = span
    return before


def _spans(batches: Iterable[LedgerBatch]) -> Iterator[_Span]:
    for batch in batches:
        for index, call in enumerate(batch.calls):
            if call.started is not None and call.ended is not None:
                yield _Span(batch, index, call.started, call.ended)


def _pooled(batches: Iterable[LedgerBatch]) -> Iterator[_Span]:
    return (span for span in _spans(batches) if span.batch.calls[span.index].pooled)


def _crowds(spans: Iterable[_Span]) -> Iterator[list[_Span]]:
    """Who runs at once, each time that somebody starts."""
    running: list[_Span] = []
    for span in sorted(spans, key=lambda span: span.start):
        running = [other for other in running if other.end > span.start]
        if span.end > span.start:
            running.append(span)
            yield list(running)
