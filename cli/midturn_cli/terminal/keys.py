"""What each key does. Decisions are in ``controls.py``; here is only which key reaches what."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from prompt_toolkit.application.current import get_app
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import (
    Always,
    Condition,
    Filter,
    emacs_mode,
    has_focus,
    is_searching,
    vi_insert_mode,
    vi_navigation_mode,
)
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Window
from prompt_toolkit.search import SearchDirection, do_incremental_search, start_search

from midturn_cli.terminal.ask_panel import QUESTION_KEYS
from midturn_cli.terminal.controls import Controls
from midturn_cli.terminal.modes import FOCUS_GAINED, FOCUS_LOST
from midturn_cli.terminal.notices import describe
from midturn_cli.terminal.queue_editor import RowKey

if TYPE_CHECKING:
    from midturn_core.config import KeysConfig

for _sequence in (FOCUS_GAINED, FOCUS_LOST):
    # Otherwise a report would be read as Esc and two letters; nobody has to have asked for it.
    ANSI_SEQUENCES.setdefault(_sequence, Keys.Ignore)

Handler = Callable[[KeyPressEvent], None]


@dataclass(frozen=True, slots=True)
class Focuses:
    """The windows that can have the keyboard."""

    input_window: Window
    reason_window: Window


class _Binder:
    """Adds handlers that never raise: an exception becomes a notice and the session goes on."""

    def __init__(self, bindings: KeyBindings, complain: Callable[[str], None]) -> None:
        self._bindings = bindings
        self._complain = complain

    def add(
        self,
        *keys: Keys | str,
        to: Handler,
        when: Filter | bool = True,
        eager: bool = False,
        changes: bool = True,
    ) -> None:
        """``changes``: undo may come back to how the draft was before this key."""

        def guarded(event: KeyPressEvent) -> None:
            try:
                to(event)
            except Exception as error:
                # Isolation wall: prompt_toolkit would drop all waiting keys.
                self._complain(f"A key could not be handled ({describe(error)}).")

        self._bindings.add(*keys, filter=when, eager=eager, save_before=lambda _: changes)(guarded)


@dataclass(frozen=True, slots=True)
class Action:
    """What the keys of one entry of ``[keys]`` do, and where."""

    to: Handler
    when: Filter
    eager: bool = False
    changes: bool = True


def build_bindings(
    controls: Controls, focuses: Focuses, key_map: KeysConfig, complain: Callable[[str], None]
) -> KeyBindings:
    """The bindings on top of prompt_toolkit's emacs or vi ones."""
    bindings = KeyBindings()
    binder = _Binder(bindings, complain)
    in_input = has_focus(focuses.input_window)
    _unbind_what_drops_text(binder)
    _bind_actions(binder, key_map, actions(controls, in_input))
    _bind_fixed(binder, controls, in_input)
    _bind_reason(binder, controls, has_focus(focuses.reason_window))
    _bind_question(binder, controls, in_input)
    binder.add(Keys.Ignore, to=lambda event: controls.focus_reported(event.data))
    return bindings


def actions(controls: Controls, in_input: Filter) -> dict[str, Action]:
    """What each key of ``[keys]`` that a person chooses does."""
    draft = controls.draft
    empty = Condition(lambda: draft.empty and not controls.rows.active)
    return {
        "submit": Action(lambda event: _submit(controls, event), in_input),
        "newline": Action(lambda _: controls.newline(), in_input),
        "cycle": Action(lambda _: controls.tab(), in_input),
        "mode": Action(lambda _: controls.next_mode(), in_input & ~is_searching, changes=False),
        "cancel": Action(lambda _: controls.escape(), in_input),
        "leave": Action(lambda _: controls.end_of_file(), in_input & empty, eager=True),
        "stash": Action(lambda _: controls.stash(), in_input),
        "undo": Action(lambda _: draft.buffer.undo(), in_input, changes=False),
        "redo": Action(lambda _: draft.buffer.redo(), in_input, changes=False),
        "search": Action(_search, (in_input & ~vi_navigation_mode) | is_searching),
        "expand": Action(lambda _: controls.expand(), in_input & ~is_searching),
        "editor": Action(lambda _: controls.edit_externally(), in_input & ~is_searching),
        "picture": Action(
            lambda _: controls.attach_picture(), in_input & ~is_searching, changes=False
        ),
        "repaint": Action(lambda _: controls.repaint(), Always()),
        "suspend": Action(lambda _: controls.suspend(), Always()),
        **_row_actions(controls, in_input),
    }


def _row_actions(controls: Controls, in_input: Filter) -> dict[str, Action]:
    """In the queue editor. Alt keys do nothing elsewhere: they must not be read as Esc."""

    def row(key: RowKey) -> Handler:
        return lambda _: controls.rows.press(key) if controls.row_has_keys else None

    selected = in_input & Condition(lambda: controls.row_has_keys)
    return {
        "remove_row": Action(row(RowKey.REMOVE), selected & ~is_searching, changes=False),
        "row_up": Action(row(RowKey.SOONER), in_input, changes=False),
        "row_down": Action(row(RowKey.AFTER), in_input, changes=False),
    }


def _bind_actions(binder: _Binder, key_map: KeysConfig, table: dict[str, Action]) -> None:
    for field in fields(key_map):
        action = table[field.name]
        chosen: tuple[str, ...] = getattr(key_map, field.name)
        for keys in chosen:
            when = action.when & _VI_FIRST.get(keys, Always())
            binder.add(
                *keys.split(" "),
                to=action.to,
                when=when,
                eager=action.eager,
                changes=action.changes,
            )


def _submit(controls: Controls, event: KeyPressEvent) -> None:
    """Only Enter can stand for a line end in an unmarked paste."""
    by_enter = event.key_sequence[-1].key == Keys.ControlM
    controls.enter(_waiting_keys(event) if by_enter else [])
    if controls.draft.empty:
        event.app.vi_state.input_mode = InputMode.INSERT


def _search(event: KeyPressEvent) -> None:
    if event.app.layout.is_searching:
        do_incremental_search(SearchDirection.BACKWARD)
    else:
        start_search(direction=SearchDirection.BACKWARD)


def _unbind_what_drops_text(binder: _Binder) -> None:
    """Emacs keys that accept a line behind our back: its text would be gone, sent to nobody."""
    for keys in (("c-o",), ("escape", "#")):
        binder.add(*keys, to=lambda _: None, when=emacs_mode, changes=False)


def _bind_fixed(binder: _Binder, controls: Controls, in_input: Filter) -> None:
    """What no configuration changes."""
    for key in ("c-c", "<sigint>"):
        binder.add(key, to=lambda _: controls.interrupt(), eager=True)
    binder.add(Keys.BracketedPaste, to=lambda event: controls.paste(event.data), when=in_input)
    # Colour codes that are typed, as by a paste without marks, are taken for reports of the mouse,
    # which nobody asked for and prompt_toolkit then fails to read.
    binder.add(Keys.Vt100MouseEvent, to=lambda _: None, changes=False)
    _bind_rows(binder, controls, in_input & ~is_searching)
    vi_normal = in_input & vi_navigation_mode
    binder.add("c-r", to=lambda _: controls.draft.buffer.redo(), when=vi_normal, changes=False)


def _bind_rows(binder: _Binder, controls: Controls, in_input: Filter) -> None:
    """Going to the rows of the queue, and from row to row; history otherwise."""
    up = in_input & Condition(lambda: controls.rows_take_up)
    down = in_input & Condition(lambda: controls.rows_take_down)
    selected = up & Condition(lambda: controls.rows.active)
    binder.add("up", to=lambda _: controls.row_up(), when=up, changes=False)
    for key, when in (("c-p", selected), ("k", selected & vi_navigation_mode)):
        binder.add(key, to=lambda _: controls.row_up(), when=when, changes=False)
    for key, when in (("down", down), ("c-n", down), ("j", down & vi_navigation_mode)):
        binder.add(key, to=lambda _: controls.rows.press(RowKey.NEWER), when=when, changes=False)


def _bind_reason(binder: _Binder, controls: Controls, in_reason: Filter) -> None:
    binder.add("enter", to=lambda _: controls.give_reason(), when=in_reason)
    binder.add("escape", to=lambda _: controls.leave_reason(), when=in_reason)
    binder.add("c-j", to=lambda _: None, when=in_reason)
    binder.add("tab", to=lambda _: None, when=in_reason)
    binder.add(
        Keys.BracketedPaste, to=lambda event: controls.paste_reason(event.data), when=in_reason
    )


def _bind_question(binder: _Binder, controls: Controls, in_input: Filter) -> None:
    """The keys that an open question takes from the draft, while it may."""
    for key in QUESTION_KEYS:
        _bind_answer(binder, controls, in_input, key)
    focused = in_input & Condition(lambda: controls.ask.focused)
    for swallowed in (Keys.Any, "backspace"):
        binder.add(swallowed, to=lambda _: None, when=focused)


def _bind_answer(binder: _Binder, controls: Controls, in_input: Filter, key: str) -> None:
    takes = Condition(lambda: controls.question_takes(key, _queue()))
    # Esc is not eager: it may be the start of an Alt key, which answers nothing.
    eager = key != "escape"
    binder.add(key, to=lambda _: controls.answer(key), when=in_input & takes, eager=eager)


def _queue() -> list[str]:
    return _names(get_app().key_processor.input_queue)


def _waiting_keys(event: KeyPressEvent) -> list[str]:
    """The keys of the same read that come after this one."""
    return _names(event.key_processor.input_queue)


def _names(presses: Iterable[KeyPress]) -> list[str]:
    return [str(press.key.value if isinstance(press.key, Keys) else press.key) for press in presses]


@Condition
def _escape_is_ours() -> bool:
    """In vi mode Esc first leaves insert mode, a selection or a command that waits for more."""
    app = get_app()
    vi = app.vi_state
    return app.editing_mode != EditingMode.VI or (
        vi.input_mode == InputMode.NAVIGATION
        and vi.operator_func is None
        and app.current_buffer.selection_state is None
    )


_VI_FIRST: dict[str, Filter] = {"escape": _escape_is_ours, "c-v": emacs_mode | vi_insert_mode}
"""Keys that vi needs first: Esc to leave insert mode, Ctrl-V to select a block in normal mode."""
