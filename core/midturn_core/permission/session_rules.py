"""What the user has allowed for the rest of the session (D40)."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from midturn_core.permission.rules import Rule


class SessionRules:
    """Allow rules that a person's answers add to, exactly as they were shown. Thread-safe."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._lock = threading.Lock()
        self._rules: dict[str, Rule] = {rule.text: rule for rule in rules}

    def add(self, rule: Rule) -> None:
        with self._lock:
            self._rules[rule.text] = rule

    def remove(self, text: str) -> bool:
        """Take a rule back by its text; False when there is none."""
        with self._lock:
            return self._rules.pop(text, None) is not None

    def clear(self) -> None:
        with self._lock:
            self._rules.clear()

    def rules(self) -> tuple[Rule, ...]:
        """In the order in which they were allowed."""
        with self._lock:
            return tuple(self._rules.values())
