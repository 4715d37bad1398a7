"""The row of the search in earlier lines: what is looked for, and that nothing has it."""

from __future__ import annotations

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.search import SearchState
from prompt_toolkit.widgets import SearchToolbar

from midturn_cli.terminal.hidden_letters import HiddenLetters


def search_row(draft: Buffer) -> SearchToolbar:
    """Searches the lines before this draft, and in it; capitals and small letters are the same."""

    def label(searching: str, nothing: str) -> str:
        return searching if _found(draft, row) else nothing

    row = SearchToolbar(
        backward_search_prompt=lambda: label("search earlier lines: ", "no earlier line has: "),
        forward_search_prompt=lambda: label("search: ", "not found: "),
        ignore_case=True,
    )
    row.control.input_processors = [HiddenLetters(), *(row.control.input_processors or ())]
    return row


def _found(draft: Buffer, row: SearchToolbar) -> bool:
    typed, state = row.search_buffer.text, row.control.searcher_search_state
    # What is being typed is not in the state of the last search yet.
    search = SearchState(typed, state.direction, ignore_case=state.ignore_case())
    shown = draft.document_for_search(search)
    there = shown.text[shown.cursor_position :][: len(typed)]
    return there.casefold() == typed.casefold()
