"""The settings of parallel execution, and the verdict on a batch."""

from __future__ import annotations

import math

import pytest

from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.gate import describe_tools, explain, judge
from midturn_core.dispatch.types import GateVerdict, SequentialCause
from midturn_core.tool import ConcurrencyBehavior, InterruptBehavior, ToolRegistry
from tests.core.dispatch.kit import Bench, ProbeTool, reader, safe, shell, uses_of, writer

ON = ToolConcurrencyConfig.on(4)
OFF = ToolConcurrencyConfig.off()
THREADED = ProbeTool("Threaded", interrupt=InterruptBehavior.THREAD_INTERRUPT)
TERMINATED = ProbeTool("Terminated", interrupt=InterruptBehavior.EXTERNALLY_TERMINATED)
REGISTRY = ToolRegistry(
    [safe("Grep"), reader("Read"), writer("Edit"), shell("Bash"), THREADED, TERMINATED]
)


def verdict(*names: str, config: ToolConcurrencyConfig = ON, closed: bool = False) -> GateVerdict:
    return judge(uses_of(*names), REGISTRY, config, closed)


def test_parallel_is_off_unless_it_is_switched_on() -> None:
    assert ToolConcurrencyConfig().enabled is False
    assert ToolConcurrencyConfig() == ToolConcurrencyConfig.off()
    assert Bench(config=ToolConcurrencyConfig()).dispatcher.config.enabled is False


def test_the_builder_and_the_factory_are_equivalent() -> None:
    built = ToolConcurrencyConfig.builder().enabled(True).max_concurrency(8).per_batch_max(2)
    assert built.build() == ToolConcurrencyConfig.on(8, 2)
    assert ToolConcurrencyConfig.on(8, 2) == ToolConcurrencyConfig(
        enabled=True, max_concurrency=8, per_batch_max=2
    )
    assert ToolConcurrencyConfig.builder().build() == ToolConcurrencyConfig()


def test_the_builder_sets_every_value() -> None:
    built = (
        ToolConcurrencyConfig.builder()
        .per_context_max(3)
        .max_calls(12)
        .mixed("segments")
        .start("streaming")
        .fail_fast(True)
        .retry_failed(True)
        .timeout_per_call(8.0)
        .timeout_per_batch(60.0)
        .build()
    )
    assert built == ToolConcurrencyConfig(
        per_context_max=3,
        max_calls=12,
        mixed="segments",
        start="streaming",
        fail_fast=True,
        retry_failed=True,
        timeout_per_call=8.0,
        timeout_per_batch=60.0,
    )


def test_the_share_of_a_batch_is_the_whole_cap_by_default() -> None:
    assert ToolConcurrencyConfig.on(7).batch_slots == 7
    assert ToolConcurrencyConfig.on(7, 3).batch_slots == 3
    assert ToolConcurrencyConfig.on().max_concurrency == 4


def test_the_share_of_a_context_is_the_whole_cap_by_default() -> None:
    assert ToolConcurrencyConfig.on(7).context_slots == 7
    assert ToolConcurrencyConfig(max_concurrency=7, per_context_max=3).context_slots == 3


@pytest.mark.parametrize("value", [0, -1, 11])
def test_a_cap_out_of_range_is_an_error_that_names_key_and_range(value: int) -> None:
    with pytest.raises(ValueError, match=rf"max_concurrency must be 1\.\.10, not {value}"):
        ToolConcurrencyConfig.on(value)


@pytest.mark.parametrize("value", [0, -1, 5])
def test_a_share_out_of_range_is_an_error_at_build_time(value: int) -> None:
    with pytest.raises(ValueError, match=rf"per_batch_max must be 1\.\.4 .*, not {value}"):
        ToolConcurrencyConfig.on(4, value)
    with pytest.raises(ValueError, match="per_batch_max"):
        ToolConcurrencyConfig.builder().max_concurrency(4).per_batch_max(value).build()
    with pytest.raises(ValueError, match=rf"per_context_max must be 1\.\.4 .*, not {value}"):
        ToolConcurrencyConfig(max_concurrency=4, per_context_max=value)


@pytest.mark.parametrize("value", [0, -1, 51])
def test_a_number_of_calls_out_of_range_is_an_error(value: int) -> None:
    with pytest.raises(ValueError, match=rf"max_calls must be 1\.\.50, not {value}"):
        ToolConcurrencyConfig(max_calls=value)


def test_an_early_start_needs_segments_and_the_error_names_both_keys() -> None:
    with pytest.raises(ValueError, match='^start = "streaming" needs mixed = "segments"'):
        ToolConcurrencyConfig(start="streaming")
    with pytest.raises(ValueError, match="mixed"):
        ToolConcurrencyConfig.builder().start("streaming").build()
    assert not ToolConcurrencyConfig(mixed="segments", start="streaming").starts_early
    assert ToolConcurrencyConfig(True, mixed="segments", start="streaming").starts_early


@pytest.mark.parametrize("key", ["mixed", "start"])
def test_an_unknown_mode_is_an_error_that_lists_the_known_ones(key: str) -> None:
    with pytest.raises(ValueError, match=rf'^{key} must be "\w+" or "\w+", not \'never\''):
        ToolConcurrencyConfig(**{key: "never"})  # type: ignore[arg-type]  # what a caller gets wrong


@pytest.mark.parametrize("key", ["timeout_per_call", "timeout_per_batch"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_a_time_limit_must_be_a_positive_number_of_seconds(key: str, value: float) -> None:
    with pytest.raises(ValueError, match=key):
        ToolConcurrencyConfig(**{key: value})  # type: ignore[arg-type]  # both keys are floats


def test_several_safe_calls_pass() -> None:
    passed = verdict("Read", "Grep", "Read")
    together = (range(3),)
    assert passed == GateVerdict(
        parallel=True, would_pass=True, segments=together, planned=together
    )
    assert not passed.partly
    assert "run together" in explain(passed)


@pytest.mark.parametrize(
    ("names", "closed", "cause", "index", "words"),
    [
        (("Grep",), False, SequentialCause.SINGLE_CALL, None, "one call only"),
        (("Read", "Edit"), False, SequentialCause.SEQUENTIAL_TOOL, 1, "Edit (call 2)"),
        (("Bash", "Read"), False, SequentialCause.SEQUENTIAL_TOOL, 0, "Bash (call 1)"),
        (("Grep", "Threaded"), False, SequentialCause.INTERRUPT_BEHAVIOR, 1, "Threaded (call 2)"),
        (("Terminated", "Grep"), False, SequentialCause.INTERRUPT_BEHAVIOR, 0, "from outside"),
        (("Grep", "Grop"), False, SequentialCause.UNKNOWN_TOOL, 1, "no tool named Grop (call 2)"),
        (("Grep", "Read"), True, SequentialCause.CLOSED, None, "closed"),
    ],
)
def test_each_cause_is_named_and_explained(
    names: tuple[str, ...],
    closed: bool,
    cause: SequentialCause,
    index: int | None,
    words: str,
) -> None:
    found = verdict(*names, closed=closed)
    assert (found.parallel, found.cause, found.call_index) == (False, cause, index)
    assert not found.would_pass
    assert words in explain(found)
    assert explain(found).count(".") == 1
    off = verdict(*names, config=OFF, closed=closed)
    assert (off.cause, off.next_cause) == (SequentialCause.DISABLED, cause)
    assert words in explain(off)
    assert "would not change this batch" in explain(off)


def test_a_batch_that_only_the_switch_holds_back_says_how_to_switch_it_on() -> None:
    found = verdict("Read", "Grep", config=OFF)
    assert found == GateVerdict(
        False,
        SequentialCause.DISABLED,
        would_pass=True,
        segments=(range(1), range(1, 2)),
        planned=(range(2),),
    )
    assert "/parallel on" in explain(found)


MIXED = ToolConcurrencyConfig(enabled=True, mixed="segments")


@pytest.mark.parametrize(
    ("names", "segments", "decided_by"),
    [
        (("Read", "Grep", "Edit"), [(0, 2), (2, 3)], 2),
        (("Edit", "Read", "Grep", "Read"), [(0, 1), (1, 4)], 0),
        (("Read", "Grep", "Edit", "Bash", "Read", "Read"), [(0, 2), (2, 3), (3, 4), (4, 6)], 2),
        (("Read", "Read", "Grop", "Read"), [(0, 2), (2, 3), (3, 4)], 2),
        (("Threaded", "Read", "Read"), [(0, 1), (1, 3)], 0),
    ],
)
def test_in_segments_safe_neighbours_run_together_and_each_other_call_is_a_barrier(
    names: tuple[str, ...], segments: list[tuple[int, int]], decided_by: int
) -> None:
    found = verdict(*names, config=MIXED)
    assert found.parallel
    assert found.partly
    assert found.would_pass
    assert found.segments == tuple(range(*pair) for pair in segments)
    assert (found.call_index, found.tool_name) == (decided_by, names[decided_by])
    assert "side by side run together, in their order: " in explain(found)
    assert f"{names[decided_by]} (call {decided_by + 1})" in explain(found)
    sequential = verdict(*names)
    assert not sequential.parallel
    assert sequential.segments == tuple(range(n, n + 1) for n in range(len(names)))
    assert (sequential.cause, sequential.call_index) == (found.cause, decided_by)
    off = verdict(*names, config=ToolConcurrencyConfig(mixed="segments"))
    assert (off.parallel, off.would_pass, off.next_cause) == (False, True, None)
    assert off.planned == found.segments
    assert "/parallel on to run these together" in explain(off)


@pytest.mark.parametrize("names", [("Read", "Edit", "Grep"), ("Edit", "Bash"), ("Read", "Grop")])
def test_segments_without_safe_neighbours_are_a_sequential_batch_with_its_cause(
    names: tuple[str, ...],
) -> None:
    assert verdict(*names, config=MIXED) == verdict(*names)
    assert verdict(*names).cause is not None
    assert "segments" not in explain(verdict(*names))


def test_all_safe_calls_are_one_segment_and_one_call_alone_is_no_parallel_batch() -> None:
    assert verdict("Read", "Grep", config=MIXED) == verdict("Read", "Grep")
    assert verdict("Read", config=MIXED).cause is SequentialCause.SINGLE_CALL
    closed = verdict("Read", "Grep", "Edit", config=MIXED, closed=True)
    assert (closed.parallel, closed.cause) == (False, SequentialCause.CLOSED)
    assert len(closed.segments) == 3


def test_a_sequential_batch_that_segments_would_help_says_so() -> None:
    assert "/parallel mixed segments" in explain(verdict("Read", "Grep", "Edit"))
    assert "/parallel mixed segments" in explain(verdict("Read", "Read", "Terminated"))


def test_the_tools_that_stay_one_at_a_time_are_named() -> None:
    assert describe_tools(REGISTRY) == (
        "May run together: Grep, Read. One at a time, with everything asked for beside them: "
        "Edit, Bash, Threaded, Terminated."
    )
    assert "none" in describe_tools(ToolRegistry())


def test_the_first_doubtful_call_decides() -> None:
    assert verdict("Grep", "Grop", "Edit").tool_name == "Grop"
    assert verdict("Grep", "Edit", "Grop").tool_name == "Edit"


def test_a_tool_that_says_nothing_special_is_sequential() -> None:
    plain = ProbeTool("Plain", concurrency=ConcurrencyBehavior("sequential"))
    found = judge(uses_of("Plain", "Plain"), ToolRegistry([plain]), ON, closed=False)
    assert found.cause is SequentialCause.SEQUENTIAL_TOOL
