"""The queue editor as a pure machine: what each key does with the rows, and that no text is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from midturn_cli.terminal.queue_editor import (
    DISCARDED,
    GONE,
    Editing,
    Forget,
    Leave,
    Move,
    OlderLine,
    Remove,
    Row,
    RowKey,
    Save,
    SetTier,
    Take,
    Tell,
    View,
    Warn,
    press,
    rows_changed,
    start,
    start_at,
)

ROWS = (Row("c", "newest", "later"), Row("b", "middle", "next"), Row("a", "oldest", "now"))
NEWEST, MIDDLE, OLDEST = (Editing(row.uuid, row.text) for row in ROWS)


def same(editing: Editing) -> View:
    return View(ROWS, editing.text)


def changed() -> View:
    return View(ROWS, "changed")


def test_it_starts_with_the_newest_row_and_without_rows_with_the_history() -> None:
    assert start(View(ROWS, "")) == (Take("c"),)
    assert start(View((), "")) == (OlderLine(),)


def test_a_command_names_a_row_when_the_input_line_is_free() -> None:
    assert start_at("b", View(ROWS, "")) == (Take("b"),)
    for view, uuid in ((View(ROWS, "a draft"), "b"), (View(ROWS, ""), "gone")):
        (effect,) = start_at(uuid, view)
        assert isinstance(effect, Warn)


def test_enter_saves_only_what_was_changed_and_leaves() -> None:
    assert press(MIDDLE, RowKey.SAVE, same(MIDDLE)) == (Leave(),)
    assert press(MIDDLE, RowKey.SAVE, changed()) == (Save("b", "changed"), Leave())


def test_going_to_another_row_saves_what_was_changed() -> None:
    assert press(MIDDLE, RowKey.OLDER, same(MIDDLE)) == (Take("a"),)
    assert press(MIDDLE, RowKey.OLDER, changed()) == (Save("b", "changed"), Take("a"))
    assert press(MIDDLE, RowKey.NEWER, changed()) == (Save("b", "changed"), Take("c"))


def test_behind_the_oldest_row_is_the_history_and_before_the_newest_an_empty_line() -> None:
    assert press(OLDEST, RowKey.OLDER, same(OLDEST)) == (Forget(), OlderLine())
    assert press(NEWEST, RowKey.NEWER, same(NEWEST)) == (Leave(),)


def test_esc_discards_a_change_and_says_so() -> None:
    assert press(MIDDLE, RowKey.LEAVE, same(MIDDLE)) == (Leave(),)
    assert press(MIDDLE, RowKey.LEAVE, changed()) == (Leave(), Tell(DISCARDED))


def test_removing_goes_to_the_older_row_else_to_the_newer_one_else_leaves() -> None:
    assert press(MIDDLE, RowKey.REMOVE, changed()) == (Remove("b"), Take("a"))
    assert press(OLDEST, RowKey.REMOVE, same(OLDEST)) == (Remove("a"), Take("b"))
    alone = View(ROWS[:1], "newest")
    assert press(NEWEST, RowKey.REMOVE, alone) == (Remove("c"), Leave())


def test_tab_goes_through_the_tiers_and_alt_keys_move() -> None:
    assert press(MIDDLE, RowKey.TIER, changed()) == (SetTier("b", "now"),)
    assert press(OLDEST, RowKey.TIER, same(OLDEST)) == (SetTier("a", "later"),)
    assert press(NEWEST, RowKey.TIER, same(NEWEST)) == (SetTier("c", "next"),)
    assert press(MIDDLE, RowKey.SOONER, same(MIDDLE)) == (Move("b", -1),)
    assert press(MIDDLE, RowKey.AFTER, same(MIDDLE)) == (Move("b", 1),)


def test_a_row_that_vanished_leaves_its_text_as_a_draft() -> None:
    gone = Editing("gone", "text")
    assert rows_changed(gone, changed()) == (Forget(), Warn(GONE))
    assert rows_changed(MIDDLE, changed()) == ()
    for key in RowKey:
        assert press(gone, key, changed()) == (Forget(), Warn(GONE))


@given(st.sampled_from(list(RowKey)), st.sampled_from(ROWS), st.text(max_size=8))
def test_no_key_loses_a_change_in_silence(key: RowKey, row: Row, draft: str) -> None:
    """A changed text is saved, stays in the input line, is told as discarded, or its row goes."""
    effects = press(Editing(row.uuid, row.text), key, View(ROWS, draft))
    leaves = any(isinstance(effect, Leave | Take | OlderLine) for effect in effects)
    accounted = any(
        isinstance(effect, Remove) or effect in (Save(row.uuid, draft), Tell(DISCARDED))
        for effect in effects
    )
    assert not leaves or draft == row.text or accounted
