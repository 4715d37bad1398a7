"""The checker: a true ledger passes, and every way to falsify one is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from midturn_core.conversation import (
    AssistantAdded,
    Compacted,
    ConversationChange,
    ResultsAdded,
    UserTextAdded,
)
from midturn_core.ledger.check import verify
from midturn_core.ledger.entries import LedgerBatch, LedgerCall, LedgerLimits, content_hash
from midturn_core.model.messages import Outcome, TextBlock, ToolUse, ToolUseResult

TWO_AT_ONCE = LedgerLimits(max_concurrency=3, per_batch_max=2, per_context_max=3)


@dataclass
class Story:
    """A history and its ledger, to be falsified."""

    changes: list[ConversationChange] = field(default_factory=list[ConversationChange])
    ledger: list[LedgerBatch] = field(default_factory=list[LedgerBatch])

    def problems(self) -> list[str]:
        return [problem.text for problem in verify(self.changes, self.ledger).problems]

    def call(self, batch: int, index: int, **fields: object) -> None:
        calls = list(self.ledger[batch].calls)
        calls[index] = replace(calls[index], **fields)  # type: ignore[arg-type]  # each test names real fields
        self.ledger[batch] = replace(self.ledger[batch], calls=tuple(calls))

    def results(self, at: int, change: Callable[[list[ToolUseResult]], object]) -> None:
        recorded = self.changes[at]
        assert isinstance(recorded, ResultsAdded)
        results = list(recorded.results)
        change(results)
        self.changes[at] = ResultsAdded(tuple(results))


def result(use: ToolUse, outcome: Outcome = Outcome.SUCCEEDED) -> ToolUseResult:
    return ToolUseResult(use.id, use.name, outcome, f"output of {use.id}", 1.0)


def listed(use: ToolUse, started: float | None, ended: float | None, pooled: bool) -> LedgerCall:
    digest = content_hash(result(use).content)
    return LedgerCall(use.id, use.name, Outcome.SUCCEEDED, digest, started, ended, pooled)


def entry(
    batch_id: str,
    uses: Sequence[ToolUse],
    times: Sequence[tuple[float, float]],
    segments: tuple[range, ...],
    agent: str = "main",
) -> LedgerBatch:
    pooled = any(len(segment) > 1 for segment in segments)
    calls = tuple(
        listed(use, *time, pooled and use.name == "Read")
        for use, time in zip(uses, times, strict=True)
    )
    return LedgerBatch(batch_id, f"s/{agent}", 1, "run-1", TWO_AT_ONCE, calls, segments)


def uses_of(names: str, first: int = 1) -> tuple[ToolUse, ...]:
    full = {"r": "Read", "e": "Edit"}
    return tuple(ToolUse(f"t{n}", full[name]) for n, name in enumerate(names, start=first))


def good() -> Story:
    """A parallel batch, a sequential one, and one of segments."""
    parallel, in_order, mixed = uses_of("rrr"), uses_of("re", 4), uses_of("rrer", 6)
    story = Story([UserTextAdded(("go",))])
    for uses in (parallel, in_order, mixed):
        story.changes.append(AssistantAdded((TextBlock("so"), *uses)))
        story.changes.append(ResultsAdded(tuple(map(result, uses)), ("and now",)))
    story.changes.append(AssistantAdded((TextBlock("done"),)))
    story.ledger = [
        entry("b1", parallel, [(0.0, 2.0), (0.0, 1.0), (1.0, 3.0)], (range(3),)),
        entry("b2", in_order, [(3.0, 4.0), (4.0, 5.0)], (range(1), range(1, 2))),
        entry(
            "b3",
            mixed,
            [(5.0, 6.0), (5.5, 6.5), (6.5, 7.0), (7.0, 8.0)],
            (range(2), range(2, 3), range(3, 4)),
        ),
    ]
    return story


def test_a_true_story_has_no_problems() -> None:
    found = verify(good().changes, good().ledger)
    assert found.problems == ()
    assert (found.batches, found.calls, found.subagent_batches) == (3, 9, 0)
    assert (found.before_ledger, found.closed, found.open) == (0, 0, 0)


def swap_results(story: Story) -> None:
    story.results(2, lambda results: results.reverse())


def drop_a_result(story: Story) -> None:
    story.results(2, lambda results: results.pop(1))


def give_two_results(story: Story) -> None:
    story.results(2, lambda results: results.append(results[0]))


def add_a_stranger(story: Story) -> None:
    story.results(2, lambda results: results.append(result(ToolUse("t99", "Read"))))


def change_a_content(story: Story) -> None:
    def change(results: list[ToolUseResult]) -> None:
        results[1] = replace(results[1], content="something nicer")

    story.results(2, change)


def change_an_outcome(story: Story) -> None:
    def change(results: list[ToolUseResult]) -> None:
        results[1] = replace(results[1], outcome=Outcome.FAILED)

    story.results(2, change)


def split_the_results(story: Story) -> None:
    recorded = story.changes[2]
    assert isinstance(recorded, ResultsAdded)
    first, *rest = recorded.results
    story.changes[2:3] = [ResultsAdded((first,)), ResultsAdded(tuple(rest))]


def lose_the_results(story: Story) -> None:
    story.changes[2] = UserTextAdded(("what?",))


def lose_a_message(story: Story) -> None:
    del story.changes[3]


def lose_a_batch_of_the_ledger(story: Story) -> None:
    del story.ledger[1]


def lose_a_batch_of_the_history(story: Story) -> None:
    del story.changes[3:5]


def ask_for_less(story: Story) -> None:
    story.changes[1] = AssistantAdded(uses_of("rr"))
    story.results(2, lambda results: results.pop())


def call_it_otherwise(story: Story) -> None:
    story.call(0, 2, name="Grep")


def end_before_the_start(story: Story) -> None:
    story.call(0, 0, started=2.5)


def forget_an_end(story: Story) -> None:
    story.call(0, 0, ended=None)


def never_run(story: Story) -> None:
    story.call(0, 0, started=None, ended=None)


def run_what_was_denied(story: Story) -> None:
    story.call(0, 0, outcome=Outcome.DENIED)


def overlap_in_order(story: Story) -> None:
    story.call(1, 1, started=3.75)


def pass_a_barrier(story: Story) -> None:
    story.call(2, 2, started=6.25)


def come_before_a_barrier(story: Story) -> None:
    story.call(2, 3, started=6.75)


def run_three_of_two(story: Story) -> None:
    story.call(0, 2, started=0.5)


def run_without_a_place(story: Story) -> None:
    story.ledger[0] = replace(story.ledger[0], segments=(range(2),))


def overlap_the_next_batch(story: Story) -> None:
    story.call(1, 0, started=2.5)


def crowd_the_pool(story: Story) -> None:
    others = uses_of("rr", 50)
    times = [(0.25, 0.75), (0.25, 0.75)]
    story.ledger.append(entry("b9", others, times, (range(2),), "sub-1"))


CASES: list[tuple[Callable[[Story], None], str]] = [
    (
        swap_results,
        "Batch b1: the results are not in the order of the calls, they stand as t3, t2, t1.",
    ),
    (drop_a_result, "Batch b1: call 2 (Read) has no result."),
    (give_two_results, "Batch b1: call 1 (Read) has two results."),
    (add_a_stranger, "Batch b1: there is a result for t99, which no call of it has."),
    (
        change_a_content,
        "Batch b1: call 2 (Read): the result in the history is not the one that the call gave "
        "(its SHA-256 differs).",
    ),
    (
        change_an_outcome,
        'Batch b1: call 2 (Read): it has "failed" in the history and has "succeeded" in the '
        "ledger.",
    ),
    (split_the_results, "History: results for t2, t3 stand where no call waits for one."),
    (lose_the_results, "Batch of t1, t2, t3: the history goes on without its results."),
    (lose_a_message, "History: results for t4, t5 stand where no call waits for one."),
    (lose_a_batch_of_the_ledger, "Batch of t4, t5: the ledger does not have it."),
    (lose_a_batch_of_the_history, "Batch b2: no message of the history asks for t4, t5."),
    (ask_for_less, "Batch b1: the message asks for t1, t2, the ledger has t1, t2, t3."),
    (call_it_otherwise, "Batch b1: call 3 (Read) is a call of Grep in the ledger."),
    (
        end_before_the_start,
        "Batch b1: call 1 (Read) had its result 0.500 s before it started.",
    ),
    (forget_an_end, "Batch b1: call 1 (Read) has only one of its two times."),
    (never_run, 'Batch b1: call 1 (Read) has "succeeded" and never ran.'),
    (run_what_was_denied, 'Batch b1: call 1 (Read) has "denied" and yet it ran.'),
    (
        overlap_in_order,
        "Batch b2: call 2 (Edit) began 0.250 s before call 1 (Read) had ended; these two may not "
        "overlap.",
    ),
    (
        pass_a_barrier,
        "Batch b3: call 3 (Edit) began 0.250 s before call 2 (Read) had ended; these two may not "
        "overlap.",
    ),
    (
        come_before_a_barrier,
        "Batch b3: call 4 (Read) began 0.250 s before call 3 (Edit) had ended; these two may not "
        "overlap.",
    ),
    (
        run_three_of_two,
        "Run run-1: 3 calls ran at once, where per_batch_max allows 2: call 1 (Read) of batch b1, "
        "call 2 (Read) of batch b1, call 3 (Read) of batch b1.",
    ),
    (run_without_a_place, "Batch b1: call 3 (Read) ran without a place in the batch."),
    (
        overlap_the_next_batch,
        "Batch b2: call 1 (Read) began before call 3 (Read) of batch b1 had ended, which is of "
        "the same conversation.",
    ),
    (
        crowd_the_pool,
        "Run run-1: 4 calls ran at once, where max_concurrency allows 3: call 1 (Read) of batch "
        "b1, call 2 (Read) of batch b1, call 1 (Read) of batch b9, call 2 (Read) of batch b9.",
    ),
]


@pytest.mark.parametrize(
    ("falsify", "problem"), CASES, ids=lambda case: getattr(case, "__name__", "")
)
def test_what_was_falsified_is_named(falsify: Callable[[Story], None], problem: str) -> None:
    story = good()
    falsify(story)
    assert problem in story.problems()


def test_a_context_has_no_more_than_its_share() -> None:
    story = good()
    story.ledger[0] = replace(story.ledger[0], limits=replace(TWO_AT_ONCE, per_context_max=1))
    (problem,) = story.problems()
    assert "where per_context_max allows 1" in problem


def test_calls_that_took_no_time_are_no_crowd() -> None:
    story = good()
    for index in range(3):
        story.call(0, index, started=1.0, ended=1.0)
    assert story.problems() == []


def test_clocks_of_different_runs_are_not_compared() -> None:
    story = good()
    early = tuple(replace(call, started=0.25, ended=0.5) for call in story.ledger[1].calls[:1])
    late = tuple(replace(call, started=0.5, ended=0.75) for call in story.ledger[1].calls[1:])
    story.ledger[1] = replace(story.ledger[1], run="run-2", calls=(*early, *late))
    assert story.problems() == []


def test_a_history_from_before_the_ledger_is_checked_as_far_as_it_goes() -> None:
    story = good()
    found = verify(story.changes, [])
    assert (found.problems, found.before_ledger) == ((), 3)
    found = verify(story.changes, story.ledger[2:])
    assert (found.problems, found.before_ledger) == ((), 2)
    swap_results(story)
    (problem,) = verify(story.changes, story.ledger[2:]).problems
    assert problem.text.startswith("Batch of t1, t2, t3: the results are not in the order")


def test_a_ledger_that_ends_early_is_no_old_history() -> None:
    story = good()
    del story.ledger[1:]
    assert len(story.problems()) == 2


def test_calls_that_the_turn_loop_answered_need_no_batch() -> None:
    story, (use,) = good(), uses_of("r", 20)
    skipped = ToolUseResult(use.id, use.name, Outcome.SKIPPED, "skipped: the user interrupted")
    story.changes += [UserTextAdded(("x",)), AssistantAdded((use,)), ResultsAdded((skipped,))]
    found = verify(story.changes, story.ledger)
    assert (found.problems, found.closed) == ((), 1)


def test_a_result_that_was_lost_with_the_program_is_no_forgery() -> None:
    story, (use,) = good(), uses_of("r", 20)
    lost = ToolUseResult(use.id, use.name, Outcome.STOPPED, "stopped: the program ended")
    story.changes += [UserTextAdded(("x",)), AssistantAdded((use,)), ResultsAdded((lost,))]
    story.ledger.append(entry("b4", (use,), [(9.0, 9.5)], (range(1),)))
    found = verify(story.changes, story.ledger)
    assert (found.problems, found.closed) == ((), 1)


def test_calls_may_be_open_at_the_end_alone() -> None:
    story, uses = good(), uses_of("rr", 20)
    story.changes += [UserTextAdded(("x",)), AssistantAdded(uses)]
    found = verify(story.changes, story.ledger)
    assert (found.problems, found.open) == ((), 2)
    story.changes.append(Compacted(("a summary",)))
    assert story.problems() == ["Batch of t20, t21: the history goes on without its results."]


def test_batches_of_subagents_are_checked_for_their_times() -> None:
    story, uses = good(), uses_of("re", 30)
    story.ledger.append(entry("b4", uses, [(1.0, 2.0), (2.0, 2.5)], one_each(2), "sub-1"))
    assert verify(story.changes, story.ledger).subagent_batches == 1
    assert story.problems() == []
    story.call(3, 1, started=1.5)
    (problem,) = story.problems()
    assert problem.startswith("Batch b4: call 2 (Edit) began 0.500 s before")


def one_each(count: int) -> tuple[range, ...]:
    return tuple(range(n, n + 1) for n in range(count))
