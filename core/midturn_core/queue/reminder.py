"""How text reaches the model beside a tool result: as a system reminder (S2.14, D13)."""

from __future__ import annotations

import re
import secrets

MID_TURN_INJECTION_KEY = "mid-turn-input"
"""The key of what the user typed while the agent was at work."""

_NONCE = re.compile(r"[0-9A-Za-z]{8,64}")
_KEY = re.compile(r"[a-z][a-z0-9-]*")


class SystemReminderFormatter:
    """Wraps text in a tag that carries a nonce of the session.

    The text stands verbatim: nothing in it is escaped or refused. A tag without the nonce, in
    typed or foreign text, is therefore only text. The system prompt tells the model ``tag``.

    Args:
        nonce: 8 to 64 letters and digits, secret to the session; see ``new_nonce``.

    Raises:
        ValueError: the nonce has another form.
    """

    def __init__(self, nonce: str) -> None:
        if not _NONCE.fullmatch(nonce):
            raise ValueError("a nonce is 8 to 64 letters and digits")
        self._tag = f"system-reminder-{nonce}"

    @staticmethod
    def new_nonce() -> str:
        return secrets.token_hex(8)

    @property
    def tag(self) -> str:
        """The name of the element, such as ``system-reminder-3f9a0c1b2d4e5f60``."""
        return self._tag

    def wrap(self, key: str, text: str) -> str:
        """The text as a reminder of this kind.

        Raises:
            ValueError: the key is not lower-case words joined by hyphens.
        """
        if not _KEY.fullmatch(key):
            raise ValueError(f"not a reminder key: {key!r}")
        return f'<{self._tag} key="{key}">\n{text}\n</{self._tag}>'

    def unwrap(self, text: str) -> str:
        """What was wrapped; any other text as it is. For showing a history to the user."""
        return "\n".join(text.split("\n")[1:-1]) if self.key_of(text) else text

    def key_of(self, text: str) -> str:
        """The key with which a text was wrapped; empty for one that was not."""
        first, _, rest = text.partition("\n")
        head = re.fullmatch(rf'<{self._tag} key="({_KEY.pattern})">', first)
        return head[1] if head and rest.endswith(f"\n</{self._tag}>") else ""
