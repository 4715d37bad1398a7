"""What a queued input is: its identity, its defaults, its builder."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime

import pytest

from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.types import (
    HELD_KEY,
    KIND_KEY,
    QueuedInput,
    QueuedInputPriority,
    QueueFilter,
)

MAIN = AgentRuntimeId("s1", "main")
FITS = QueueFilter(
    MAIN,
    QueuedInputPriority.NEXT,
    "sub-1",
    {"origin": "outside"},
    exclude_held=False,
    uuids=frozenset({"u1"}),
)
START = datetime(2026, 1, 1, tzinfo=UTC)


def test_an_input_is_next_has_an_identity_of_its_own_and_no_source() -> None:
    one, other = QueuedInput("a", MAIN), QueuedInput("a", MAIN)
    assert one.priority is QueuedInputPriority.NEXT
    assert (one.source_agent_id, dict(one.metadata)) == (None, {})
    assert one.uuid != other.uuid
    assert one.enqueued_at.tzinfo is not None


def test_the_uuid_alone_decides_equality_and_hash() -> None:
    one = QueuedInput("a", MAIN, uuid="u1")
    same = QueuedInput("b", MAIN, QueuedInputPriority.NOW, uuid="u1")
    assert one == same
    assert hash(one) == hash(same)
    assert one != QueuedInput("a", MAIN, uuid="u2")
    assert one != "u1"


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_input_needs_text(text: str) -> None:
    with pytest.raises(ValueError, match="needs text"):
        QueuedInput(text, MAIN)
    assert QueuedInput(" a \n", MAIN).input_text == " a \n"


def test_an_input_and_its_tags_cannot_be_changed() -> None:
    tags = {"origin": "repl"}
    item = QueuedInput("a", MAIN, metadata=tags)
    tags["origin"] = "changed"
    assert dict(item.metadata) == {"origin": "repl"}
    with pytest.raises(FrozenInstanceError):
        setattr(item, "input_text", "b")  # noqa: B010  # what the type forbids
    with pytest.raises(TypeError):
        item.metadata["origin"] = "x"  # type: ignore[index]  # pyright: ignore[reportIndexIssue]  # what the type forbids


def test_the_tiers_have_their_fixed_order() -> None:
    assert [(tier.name, int(tier)) for tier in QueuedInputPriority] == [
        ("NOW", 0),
        ("NEXT", 1),
        ("LATER", 2),
    ]


def test_a_builder_makes_the_same_input_as_the_constructor() -> None:
    built = (
        QueuedInput.builder()
        .input_text("look")
        .context_id(MAIN)
        .priority(QueuedInputPriority.LATER)
        .uuid("u1")
        .source_agent_id("sub-1")
        .enqueued_at(START)
        .metadata("origin", "repl")
        .metadata("kind", "prompt")
        .build()
    )
    tags = {"origin": "repl", "kind": "prompt"}
    plain = QueuedInput("look", MAIN, QueuedInputPriority.LATER, "u1", "sub-1", START, tags)
    names = [field.name for field in fields(QueuedInput)]
    assert [getattr(built, name) for name in names] == [getattr(plain, name) for name in names]


def test_a_builder_keeps_the_defaults_and_its_inputs_apart() -> None:
    builder = QueuedInput.builder().input_text("a").context_id(MAIN).metadata("origin", "repl")
    first = builder.build()
    second = builder.metadata("origin", "changed").build()
    assert first.priority is QueuedInputPriority.NEXT
    assert dict(first.metadata) == {"origin": "repl"}
    assert first != second


def test_a_builder_says_what_is_missing() -> None:
    with pytest.raises(ValueError, match="input_text and context_id"):
        QueuedInput.builder().build()


@pytest.mark.parametrize(
    "selection",
    [
        replace(FITS, context_id=AgentRuntimeId("s1", "sub-1")),
        replace(FITS, max_priority=QueuedInputPriority.NOW),
        replace(FITS, source_agent_id="sub-2"),
        replace(FITS, metadata={"origin": "repl"}),
        replace(FITS, exclude_held=True),
        replace(FITS, prompts_only=True),
        replace(FITS, uuids=frozenset({"u2"})),
    ],
)
def test_a_filter_is_a_predicate_and_each_of_its_parts_can_exclude(selection: QueueFilter) -> None:
    tags = {"origin": "outside", HELD_KEY: "1", KIND_KEY: "command"}
    item = QueuedInput("a", MAIN, uuid="u1", source_agent_id="sub-1", metadata=tags)
    assert FITS(item)
    assert not selection(item)
