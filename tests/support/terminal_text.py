"""The corpus of hostile terminal text, and the checks that every rendering of it must pass."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).parent.parent / "corpora" / "terminal_text.json"

_SGR = re.compile("\x1b\\[[0-9;]*m")
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


@dataclass(frozen=True, slots=True)
class TerminalTextCase:
    id: str
    text: str
    must_show: tuple[str, ...]


def cases() -> list[TerminalTextCase]:
    raw = json.loads(CORPUS.read_text(encoding="ascii"))["cases"]
    return [
        TerminalTextCase(
            case["id"],
            base64.b64decode(case["text_b64"]).decode("utf-8", "surrogatepass"),
            tuple(case["must_show"]),
        )
        for case in raw
    ]


def without_sgr(rendered: str) -> str:
    """The text that is left when the colours of the program are taken away."""
    return _SGR.sub("", rendered)


def acts_on_terminal(rendered: str) -> list[str]:
    """Every character that could act on a terminal or hide in it, colours apart."""
    return _FORBIDDEN.findall(without_sgr(rendered))


def shows(rendered: str, wanted: Iterable[str]) -> bool:
    """Whether all wanted strings are there, in this order, wherever rows were broken."""
    text = re.sub(r"\s+", "", without_sgr(rendered))
    position = 0
    for part in wanted:
        found = text.find(re.sub(r"\s+", "", part), position)
        if found < 0:
            return False
        position = found + 1
    return True
