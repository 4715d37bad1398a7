"""/copy: an answer, or a code block of one, to the clipboard."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

from midturn_cli.answers import answers, code_blocks
from midturn_cli.commands.arguments import unknown_word, whole_number
from midturn_cli.commands.command import Command, CommandError, Form, Use
from midturn_cli.render.clean import clean, one_line
from midturn_cli.terminal.osc52 import MAX_BYTES
from midturn_cli.ui_events import ClipboardText
from midturn_tools.clipboard_program import ClipboardProgramError, clipboard_programs

BEGINNING = 60
"""Characters of the first line that are shown, so that one sees what it was."""


PROGRAMS = ("wl-copy", "xclip", "xsel", "pbcopy", "clip.exe")


@dataclass(frozen=True, slots=True)
class _Chosen:
    what: str
    text: str


async def copy(use: Use) -> None:
    chosen = await asyncio.to_thread(_choose, use)
    # As on the screen: what hides in a text, or ends a paste early, must not get into a shell.
    text = clean(chosen.text, expand_tabs=False)
    way = await _put(use, text)
    use.say(f"Copied {chosen.what} ({_size(text)}) {way}. It begins: {_beginning(text)}")


def _choose(use: Use) -> _Chosen:
    match use.words:
        case []:
            return _answer(use, 1)
        case ["code"]:
            return _code(use, 1)
        case ["code", number]:
            return _code(use, whole_number(number, "the number after /copy code", "/copy code 2"))
        case ["code", *_]:
            raise CommandError("/copy code takes one number (example: /copy code 2)")
        case [number] if number[:1].isdecimal():
            return _answer(use, whole_number(number, "the number after /copy", "/copy 2"))
        case [word]:
            raise unknown_word("/copy", word, ("a number", "code"), "/copy code")
        case _:
            raise CommandError("/copy takes one number (example: /copy 2)")


def _answer(use: Use, number: int) -> _Chosen:
    found = answers(use.engine.conversation.messages)
    if not found:
        raise CommandError("There is nothing to copy: the model has not answered yet")
    if number > len(found):
        raise CommandError(
            f"There is no answer number {number}: counted from the newest there are {len(found)}"
        )
    what = "the last answer" if number == 1 else f"answer {number}, counted from the newest"
    return _Chosen(what, found[number - 1])


def _code(use: Use, number: int) -> _Chosen:
    found = code_blocks(answers(use.engine.conversation.messages))
    if not found:
        raise CommandError("There is no code block in the answers; /copy takes the last answer")
    if number > len(found):
        raise CommandError(
            f"There is no code block number {number}: counted from the newest there are "
            f"{len(found)}"
        )
    block = found[number - 1]
    which = "the last code block" if number == 1 else f"code block {number} from the end"
    language = one_line(block.language)
    return _Chosen(f"{which}, {language}" if language else which, block.code)


async def _put(use: Use, text: str) -> str:
    """Put it into the clipboard by the first way that works; the way in words."""
    problems: list[str] = []
    for program in clipboard_programs(use.engine.workspace, os.environ):
        try:
            await asyncio.to_thread(program.copy, text)
        except ClipboardProgramError as error:
            problems.append(str(error))
        else:
            return f"with {program.name}"
    return _ask_terminal(use, text, problems)


def _ask_terminal(use: Use, text: str, problems: list[str]) -> str:
    why = "; ".join(problems) or f"there is no {', '.join(PROGRAMS[:-1])} or {PROGRAMS[-1]} to use"
    if not use.engine.front.terminal_clipboard:
        raise CommandError(f"Nothing was copied: plain mode needs a clipboard program, but {why}")
    size = len(text.encode(errors="replace"))
    if size > MAX_BYTES:
        raise CommandError(
            f"Nothing was copied: {size:,} bytes are more than the {MAX_BYTES:,} that a terminal "
            f"takes, and {why}; /export writes a file"
        )
    use.engine.emit(ClipboardText(text))
    in_tmux = "; tmux passes it on with set-clipboard on" if os.environ.get("TMUX") else ""
    return f"by asking the terminal (OSC 52), which must allow it{in_tmux}"


def _size(text: str) -> str:
    lines = text.count("\n") + 1
    return f"{lines:,} line{'' if lines == 1 else 's'}, {len(text):,} characters"


def _beginning(text: str) -> str:
    line = one_line(text.strip().partition("\n")[0])
    return line if len(line) <= BEGINNING else f"{line[: BEGINNING - 1]}…"


COPY = Command(
    "copy",
    "copy an answer or a code block",
    "[N | code [N]]",
    beside=copy,
    forms=(
        Form("/copy", "copy the last answer to the clipboard, as Markdown"),
        Form("/copy N", "copy the N-th newest answer"),
        Form("/copy code", "copy the last code block of all answers"),
        Form("/copy code N", "copy the N-th code block, counted from the newest"),
    ),
)
