"""``midturn verify``: check what a session has kept of its tool calls, and say what was checked."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from midturn_cli.launch import workspace
from midturn_cli.options import EXIT_FAILED, Arguments, UsageError
from midturn_cli.render.clean import one_line
from midturn_core import paths
from midturn_core.errors import SessionError
from midturn_core.ledger.check import Verification, verify
from midturn_core.session.evidence import read_evidence
from midturn_core.session.store import SessionStore, SessionSummary


def run(arguments: Arguments) -> int:
    """Print the result; returns the exit code: 1 when something is wrong.

    Raises:
        UsageError: it is not said which session.
        SessionError: the session is not there or cannot be read.
    """
    summary = _session(arguments)
    evidence = read_evidence(summary.path)
    found = verify(evidence.changes, evidence.ledger)
    wrong = [*evidence.damage, *(problem.text for problem in found.problems)]
    verdict = f"{_number(len(wrong), 'problem')}:" if wrong else "all right."
    sys.stdout.write(f"{_checked(summary, found)}: {verdict}\n")
    # Names and ids in them come from the model and from the file.
    sys.stdout.write("".join(f"  {one_line(text)}\n" for text in (*_notes(found), *wrong)))
    return EXIT_FAILED if wrong else 0


def _session(arguments: Arguments) -> SessionSummary:
    """By its id, or the newest of this folder; those of the demo count too."""
    name, last = arguments.text("session"), arguments.is_on("last")
    if bool(name) == last:
        raise UsageError("give one of both: midturn verify SESSION, or midturn verify --last")
    stores = [SessionStore(paths.sessions_folder(os.environ, demo=demo)) for demo in (False, True)]
    if name:
        return _found(stores, name)
    latest = [s for store in stores for s in store.list(workspace()) if s.workspace]
    if not latest:
        raise SessionError(f"there is no session of {workspace()}")
    return max(latest, key=lambda summary: summary.modified)


def _found(stores: list[SessionStore], name: str) -> SessionSummary:
    failures: list[SessionError] = []
    for store in stores:
        try:
            return store.find(name)
        except SessionError as failure:
            failures.append(failure)
    raise failures[0]


def _checked(summary: SessionSummary, found: Verification) -> str:
    batches, calls = _number(found.batches, "batch", "batches"), _number(found.calls, "call")
    return f"Session {summary.id}: {batches}, {calls}; results, order, hashes, times and limits"


def _notes(found: Verification) -> Iterator[str]:
    """What was not checked, or is unusual and yet no problem."""
    if found.subagent_batches:
        yield (
            f"{_number(found.subagent_batches, 'batch', 'batches')} of subagents: only times and "
            "limits were checked, their histories are not kept."
        )
    if found.before_ledger:
        yield (
            f"{_number(found.before_ledger, 'batch', 'batches')} from before the ledger was kept: "
            "only results and order were checked."
        )
    if found.closed:
        yield (
            f"{_number(found.closed, 'call')} closed without a result of their own, because the "
            "turn or Midturn ended."
        )
    if found.open:
        yield f"{_number(found.open, 'call')} at the end without a result: still open, or cut off."


def _number(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
