"""``verify``: whether a history and the ledger of its batches tell the same story.

Pure. Every tool use has exactly one result, in order, in the very next user message; each result
is the one that its call gave; every batch of the history is in the ledger and every batch of the
ledger in the history; and the times in the ledger keep the limits (``ledger_times``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from midturn_core.conversation import (
    AssistantAdded,
    Cleared,
    Compacted,
    ConversationChange,
    ResultsAdded,
    UserTextAdded,
)
from midturn_core.ids import AgentRuntimeId
from midturn_core.ledger.entries import LedgerBatch, LedgerCall, content_hash
from midturn_core.ledger.times import Problem, call_name, check_times
from midturn_core.model.messages import Outcome, ToolUse, ToolUseResult


@dataclass(frozen=True, slots=True)
class Verification:
    """What was looked at, and what is wrong."""

    batches: int
    calls: int
    """Those of the history; subagents have histories of their own."""
    subagent_batches: int
    """Batches of the ledger whose history is not here: only their times were looked at."""
    problems: tuple[Problem, ...]
    before_ledger: int
    """Batches from before the ledger was kept; nothing is known of their calls."""
    closed: int
    """Calls whose result is a stand-in, because the turn or the program ended."""
    open: int
    """Calls at the end that have no result yet, or never got one."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """The tool uses of one message, and what answers them; None: nothing does."""

    uses: tuple[ToolUse, ...]
    results: tuple[ToolUseResult, ...] | None


_HOW_MANY = {0: "no result", 2: "two results"}
_Pair: TypeAlias = tuple[_Asked | None, LedgerBatch | None]


@dataclass(slots=True)
class _Findings:
    problems: list[Problem] = field(default_factory=list[Problem])
    ledger_began: bool = False
    before_ledger: int = 0
    closed: int = 0

    def add(self, batch: str, text: str) -> None:
        self.problems.append(Problem(f"{batch}: {text}."))


def verify(
    changes: Sequence[ConversationChange], ledger: Sequence[LedgerBatch], agent: str = "main"
) -> Verification:
    """Check the recorded changes of a history against the ledger. ``agent`` is whose history it
    is; the batches of others are checked for their times only.
    """
    found = _Findings()
    asked, open_calls = _asked(changes, found)
    own = [batch for batch in ledger if _agent_of(batch) == agent]
    for one, batch in _paired(asked, own):
        _check_pair(one, batch, found)
    return Verification(
        batches=len(asked),
        calls=sum(len(one.uses) for one in asked),
        subagent_batches=len(ledger) - len(own),
        problems=(*found.problems, *check_times(ledger)),
        before_ledger=found.before_ledger,
        closed=found.closed,
        open=open_calls,
    )


def _asked(changes: Sequence[ConversationChange], found: _Findings) -> tuple[list[_Asked], int]:
    """Every message with tool uses and what answers it; how many calls are open at the end."""
    asked: list[_Asked] = []
    waiting: tuple[ToolUse, ...] = ()
    for change in changes:
        match change:
            case ResultsAdded(results) if waiting:
                asked.append(_Asked(waiting, results))
                waiting = ()
            case ResultsAdded(results):
                ids = ", ".join(result.tool_use_id for result in results)
                found.add("History", f"results for {ids} stand where no call waits for one")
            case UserTextAdded() | AssistantAdded() | Compacted() | Cleared():
                if waiting:
                    found.add(_name_of(waiting), "the history goes on without its results")
                    asked.append(_Asked(waiting, None))
                waiting = _uses(change)
            case _:
                assert_never(change)
    if waiting:
        asked.append(_Asked(waiting, None))
    return asked, len(waiting)


def _uses(change: ConversationChange) -> tuple[ToolUse, ...]:
    if not isinstance(change, AssistantAdded):
        return ()
    return tuple(block for block in change.blocks if isinstance(block, ToolUse))


def _paired(asked: Sequence[_Asked], ledger: Sequence[LedgerBatch]) -> Iterator[_Pair]:
    """Both in their order, matched by the ids of their calls; what has no partner is alone."""
    ids = [{call.tool_use_id for call in batch.calls} for batch in ledger]
    position = 0
    for one in asked:
        wanted = {use.id for use in one.uses}
        at = next((at for at in range(position, len(ids)) if ids[at] & wanted), None)
        if at is None:
            yield one, None
            continue
        yield from ((None, batch) for batch in ledger[position:at])
        yield one, ledger[at]
        position = at + 1
    yield from ((None, batch) for batch in ledger[position:])


def _check_pair(asked: _Asked | None, batch: LedgerBatch | None, found: _Findings) -> None:
    found.ledger_began |= batch is not None
    if asked is None:
        assert batch is not None
        ids = ", ".join(call.tool_use_id for call in batch.calls)
        found.add(f"Batch {batch.batch_id}", f"no message of the history asks for {ids}")
        return
    name = f"Batch {batch.batch_id}" if batch is not None else _name_of(asked.uses)
    if asked.results is not None:
        _check_answers(name, asked.uses, asked.results, found)
    if batch is None:
        _note_unlisted(asked, found)
        return
    _check_calls(name, asked, batch, found)


def _check_answers(
    name: str, uses: Sequence[ToolUse], results: Sequence[ToolUseResult], found: _Findings
) -> None:
    """One result for each, in order."""
    wanted = [use.id for use in uses]
    given = [result.tool_use_id for result in results]
    for number, use in enumerate(uses, start=1):
        count = given.count(use.id)
        if count != 1:
            found.add(
                name, f"{call_name(number, use)} has {_HOW_MANY.get(count, f'{count} results')}"
            )
    for stranger in dict.fromkeys(given):
        if stranger not in wanted:
            found.add(name, f"there is a result for {stranger}, which no call of it has")
    if given != wanted and sorted(given) == sorted(wanted):
        order = ", ".join(given)
        found.add(name, f"the results are not in the order of the calls, they stand as {order}")


def _check_calls(name: str, asked: _Asked, batch: LedgerBatch, found: _Findings) -> None:
    wanted = [use.id for use in asked.uses]
    listed = [call.tool_use_id for call in batch.calls]
    if wanted != listed:
        text = f"the message asks for {', '.join(wanted)}, the ledger has {', '.join(listed)}"
        found.add(name, text)
    results = {result.tool_use_id: result for result in asked.results or ()}
    calls = {call.tool_use_id: call for call in batch.calls}
    for number, use in enumerate(asked.uses, start=1):
        call = calls.get(use.id)
        if call is None:
            continue
        said = call_name(number, use)
        if call.name != use.name:
            found.add(name, f"{said} is a call of {call.name} in the ledger")
        if use.id in results:
            _check_result(f"{name}: {said}", results[use.id], call, found)


def _check_result(said: str, result: ToolUseResult, call: LedgerCall, found: _Findings) -> None:
    if content_hash(result.content) != call.result_hash:
        if _is_stand_in(result):
            found.closed += 1
        else:
            text = "the result in the history is not the one that the call gave"
            found.problems.append(Problem(f"{said}: {text} (its SHA-256 differs)."))
    elif result.outcome is not call.outcome:
        text = f"it {_ended_as(result.outcome)} in the history and {_ended_as(call.outcome)}"
        found.problems.append(Problem(f"{said}: {text} in the ledger."))


def _note_unlisted(asked: _Asked, found: _Findings) -> None:
    """A message that was answered without a batch is none of the ledger's business."""
    if asked.results is None:
        return
    if all(map(_is_stand_in, asked.results)):
        found.closed += len(asked.results)
    elif found.ledger_began:
        found.add(_name_of(asked.uses), "the ledger does not have it")
    else:
        found.before_ledger += 1


def _is_stand_in(result: ToolUseResult) -> bool:
    """The turn loop or the recovery of a session answered in the place of the call."""
    return (
        result.outcome in (Outcome.SKIPPED, Outcome.STOPPED)
        and result.duration_ms == 0
        and result.content.startswith(("skipped: ", "stopped: "))
    )


def _name_of(uses: Sequence[ToolUse]) -> str:
    return f"Batch of {', '.join(use.id for use in uses)}"


def _ended_as(outcome: Outcome) -> str:
    return f'has "{outcome.value}"'


def _agent_of(batch: LedgerBatch) -> str:
    return AgentRuntimeId.parse(batch.context_id).agent
