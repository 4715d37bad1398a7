"""OSC 52: the one sequence with which a terminal is asked to fill the clipboard."""

from __future__ import annotations

import binascii

MAX_BYTES = 74_994
"""Of the text as UTF-8: the sequence is then at most 100,000 characters long. Terminals cut or
ignore more, and do not say so."""


def osc52(text: str) -> str:
    """The sequence that asks the terminal to put ``text`` into its clipboard.

    Nothing of the text itself reaches the terminal, whatever is in it: Base64 has no control
    characters.

    Raises:
        ValueError: the text has more than ``MAX_BYTES``.
    """
    data = text.encode("utf-8", errors="replace")
    if len(data) > MAX_BYTES:
        raise ValueError(f"{len(data):,} bytes are more than the {MAX_BYTES:,} of a clipboard text")
    return f"\x1b]52;c;{binascii.b2a_base64(data, newline=False).decode('ascii')}\x07"
