"""/speedup: what running calls together has saved in this session, and what it would have (S4.2)."""

from __future__ import annotations

from midturn_cli.commands.arguments import no_arguments
from midturn_cli.commands.command import Command, Use
from midturn_cli.render.words import duration, plural, tokens
from midturn_core.dispatch.speedup import RoundTrips, Speedup

TITLE = "Speed-up of this session"
HEADER = ("", "calls", "one after another", "together", "saving")


def speedup(use: Use) -> None:
    no_arguments(use, "/speedup")
    meter = use.engine.speedup
    totals, trips = meter.totals, meter.round_trips
    if not totals.batches:
        use.say("No tool has run in this session yet: there is nothing to compare.")
        return
    use.say(_in_words(totals, on=use.engine.parallel.enabled))
    rows = [
        _row(name, tool.calls, tool.sequential_ms, tool.parallel_ms)
        for name, tool in totals.tools.items()
    ]
    rows.append(_row("all tools", totals.calls, totals.sequential_ms, totals.parallel_ms))
    if (inner := meter.subagents).calls:
        rows.append(_row("subagents' own", inner.calls, inner.sequential_ms, inner.parallel_ms))
    if trips.count:
        both_ways = totals.one_by_one_ms(trips), totals.batched_ms(trips)
        rows.append(_row("with the model ~", totals.calls, *both_ways))
    use.table(TITLE, HEADER, rows, _estimates(totals, trips))


def _in_words(totals: Speedup, *, on: bool) -> str:
    batches = plural(totals.batches, "batch", "batches")
    lines = [
        f"{plural(totals.calls, 'call')} in {batches}; {totals.together} of the "
        f"{totals.several} with several calls ran together. "
        f"The tools took {duration(totals.took_ms)}."
    ]
    if totals.together:
        lines.append(f"Running calls together saved {duration(totals.saved_ms)}.")
    if totals.overlap_ms:
        early = duration(totals.overlap_ms)
        lines.append(f"Early starts hid {early} of that behind answers that were still coming.")
    if totals.held_back:
        held_back = plural(totals.held_back, "batch", "batches")
        way = "" if on else ": /parallel on"
        lines.append(
            f"{held_back} that only the switch held back would have taken "
            f"{duration(totals.missed_ms)} less together{way}."
        )
    return "\n".join(lines)


def _row(name: str, calls: int, one_by_one: float, together: float) -> tuple[str, ...]:
    saving = max(one_by_one - together, 0.0)
    factor = f" ({one_by_one / together:.1f}x)" if together > 0 else ""
    return (
        name,
        str(calls),
        duration(one_by_one),
        duration(together),
        f"{duration(saving)}{factor}",
    )


def _estimates(totals: Speedup, trips: RoundTrips) -> str:
    """What fewer requests saved besides: whoever asks for several calls at once spares them."""
    parts = ["together: every batch that may, replayed with the limits it had"]
    if trips.count and totals.round_trips_spared:
        spared = plural(totals.round_trips_spared, "request")
        waited = duration(totals.round_trips_spared * trips.mean_ms)
        parts.append(
            f"~ an estimate: {spared} to the model spared by asking for several calls in one "
            f"response, about {waited} ({duration(trips.mean_ms)} each on average) and "
            f"{tokens(totals.tokens_spared)} not sent again"
        )
    return "; ".join(parts)


SPEEDUP = Command("speedup", "see what running together saves", now=speedup)
