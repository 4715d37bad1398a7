"""What each key does. Decisions are in ``controls.py``; here is only which key reaches what."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prompt_toolkit.application.current import get_app
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, Filter, has_focus, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Window

from midturn_cli.terminal.controls import Controls
from midturn_cli.terminal.notices import describe

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
    ) -> None:
        def guarded(event: KeyPressEvent) -> None:
            try:
                to(event)
            except Exception as error:
                # Isolation wall: prompt_toolkit would drop all waiting keys.
                self._complain(f"A key could not be handled ({describe(error)}).")

        self._bindings.add(*keys, filter=when, eager=eager)(guarded)


def build_bindings(
    controls: Controls, focuses: Focuses, complain: Callable[[str], None]
) -> KeyBindings:
    """The bindings on top of prompt_toolkit's emacs or vi ones."""
    bindings = KeyBindings()
    binder = _Binder(bindings, complain)
    in_input = has_focus(focuses.input_window)
    _bind_draft(binder, controls, in_input)
    _bind_session(binder, controls, in_input)
    _bind_reason(binder, controls, has_focus(focuses.reason_window))
    _bind_question(binder, controls, in_input)
    return bindings


def _bind_draft(binder: _Binder, controls: Controls, in_input: Filter) -> None:
    draft_empty = Condition(lambda: controls.draft.empty)
    binder.add("enter", to=lambda event: controls.enter(_waiting_keys(event)), when=in_input)
    binder.add("c-j", to=lambda _: controls.newline(), when=in_input)
    binder.add("escape", "enter", to=lambda _: controls.newline(), when=in_input)
    binder.add("tab", to=lambda _: controls.tab(), when=in_input)
    binder.add(Keys.BracketedPaste, to=lambda event: controls.paste(event.data), when=in_input)
    binder.add("c-d", to=lambda _: controls.end_of_file(), when=in_input & draft_empty, eager=True)


def _bind_session(binder: _Binder, controls: Controls, in_input: Filter) -> None:
    for key in ("c-c", "<sigint>"):
        binder.add(key, to=lambda _: controls.interrupt(), eager=True)
    binder.add("escape", to=lambda _: controls.escape(), when=in_input & _escape_is_ours)
    binder.add("c-z", to=lambda _: controls.suspend())
    binder.add("c-l", to=lambda _: controls.repaint())
    binder.add("c-g", to=lambda _: controls.edit_externally(), when=in_input & ~is_searching)


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
    for key in ("y", "s", "n", "r", "space", "enter", "escape"):
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
    """In vi mode Esc first leaves insert mode."""
    app = get_app()
    return app.editing_mode != EditingMode.VI or app.vi_state.input_mode == InputMode.NAVIGATION
