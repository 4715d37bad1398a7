"""What reaches a real terminal, looked at byte by byte, and the hostile texts to send there.

Apart from the sequences that the program itself writes, nothing may act on the terminal or hide.
"""

from __future__ import annotations

import re

from tests.support.pty_harness import PtySession
from tests.support.terminal_text import acts_on_terminal, cases

ALL = cases()
LINES = "\n\n".join(f"{case.id} {case.text} end." for case in ALL)
ENCODABLE = LINES.encode("utf-8", "replace").decode()
"""Without lone surrogates, which no file name and no command line can hold."""
SHORT = [case for case in ALL if len(case.text) < 300]
IN_ONE_LINE = " ".join(case.text for case in SHORT).replace("\n", " ").replace("\0", "")
TYPED = IN_ONE_LINE.encode("utf-8", "replace").decode()[:1500]

_OWN = re.compile(
    r"\x1b\[\?(?:25|7|2004|2026)[hl]"  # cursor, wrapping, paste marks, frames
    r"|\x1b\[\?1l|\x1b[78]|\x1b\[2?[KJ]|\x1b\[\d*[ABCD]|\x1b\[H|\r"
)
_NEVER = (
    b"\x1b[2J",
    b"\x1b[3J",
    b"\x1b]",
    b"\x1bc",
    b"\x1b[6n",
    b"\x1b[?1049",
    b"\x07",
)
_TITLE = re.compile(rb"\x1b\]2;[^\x00-\x1f\x7f]*\x1b\\|\x1b\[2[23];0t")
_TOLD = re.compile(rb"\x1b\]9;[^\x00-\x1f\x7f]*\x1b\\|\x1b\[\?1004[hl]")


def assert_harmless(live: PtySession) -> None:
    """Titles and OSC 9 notifications are taken as whole sequences, and their texts looked at."""
    written = bytes(live.log.data)
    for own in (_TITLE, _TOLD):
        for sequence in own.findall(written):
            assert acts_on_terminal(sequence.decode().removesuffix("\x1b\\").lstrip("\x1b")) == []
        written = own.sub(b"", written)
    # A screen clearing of ours would be allowed below, so that of a text is looked for first.
    for never in _NEVER:
        assert never not in written
    assert acts_on_terminal(_OWN.sub("", written.decode("utf-8"))) == []


def file_names() -> list[bytes]:
    """Every case as the name of a file, cut where a name ends."""
    names: dict[bytes, None] = {}
    for case in ALL:
        text = case.text.replace("/", "∕").replace("\0", "").strip(".")
        data = text.encode("utf-8", "surrogateescape" if _escapes(text) else "replace")
        if name := data[:200]:
            names[name] = None
    return list(names)


def _escapes(text: str) -> bool:
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True
