"""What the requests of a session said, as a person would tell it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from tests.support.messages_connection import RecordedRequest

_REMINDER = re.compile(
    r'<(?P<tag>system-reminder-[0-9a-f]+) key="(?P<key>[^"]+)">\n(?P<text>.*)\n</(?P=tag)>', re.S
)


@dataclass(frozen=True, slots=True)
class Said:
    """A text of the user's message. ``key`` is the reminder's, empty for plain text."""

    text: str
    key: str = ""


def typed(text: str) -> Said:
    """What a user says at the start of a turn or where the model wanted to stop."""
    return Said(text)


def injected(text: str) -> Said:
    """What a user said in the middle of a turn."""
    return Said(text, "mid-turn-input")


def said_in(request: RecordedRequest) -> list[Said]:
    """The texts of the last message; tool results are not among them."""
    return [_said(text) for text in request.texts]


def notes_in(request: RecordedRequest) -> list[str]:
    """What the turn loop told the model in the last message."""
    return [said.text for said in said_in(request) if said.key == "turn-note"]


def words_in(request: RecordedRequest) -> list[Said]:
    """Like ``said_in`` without the notes of the turn loop."""
    return [said for said in said_in(request) if said.key != "turn-note"]


def kinds_in(request: RecordedRequest) -> list[str]:
    """The types of the blocks of the last message."""
    return [str(block["type"]) for block in request.last_content]


def times_said(text: str, request: RecordedRequest) -> int:
    """How often a text occurs in the whole history of a request."""
    return json.dumps(list(map(dict, request.messages)), ensure_ascii=False).count(text)


def never_said(text: str, requests: Iterable[RecordedRequest]) -> bool:
    return all(times_said(text, request) == 0 for request in requests)


def _said(text: str) -> Said:
    match = _REMINDER.fullmatch(text)
    return Said(match["text"], match["key"]) if match else Said(text)
