"""All slash commands by name, and how a line is recognised as one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from midturn_cli.commands.command import Command

MAX_NAME = 40
"""Letters of an unknown name that are told."""

_COMMAND_LINE = re.compile(r"/(?P<name>[A-Za-z][A-Za-z0-9-]*|)(?:\s+(?P<arguments>.*))?", re.DOTALL)


def split_command(text: str) -> tuple[str, str] | None:
    """Name and arguments of a command line; None for anything else.

    ``/etc/hosts is odd``, ``/* a comment */`` and ``//x`` are prompts: a command's name is one
    word of letters, digits and hyphens.
    """
    match = _COMMAND_LINE.fullmatch(text.strip())
    if match is None:
        return None
    return match["name"], (match["arguments"] or "").strip()


class CommandRegistry:
    """Commands by name and alias.

    Raises:
        ValueError: two commands share a name.
    """

    def __init__(self, commands: Iterable[Command]) -> None:
        self._by_name: dict[str, Command] = {}
        self._commands = tuple(commands)
        for command in self._commands:
            for name in (command.name, *command.aliases):
                if name in self._by_name:
                    raise ValueError(f"two commands are named /{name}")
                self._by_name[name] = command

    def all(self) -> Sequence[Command]:
        return self._commands

    def find(self, name: str) -> Command | None:
        return self._by_name.get(name)

    def nearest(self, name: str) -> list[str]:
        """At most three names that a mistyped one may have meant."""
        known = list(self._by_name)
        close = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)
        begins = [other for other in known if name and other.startswith(name.lower())]
        return list(dict.fromkeys([*begins, *close]))[:3]

    def unknown(self, name: str) -> str:
        """The sentence for a command that does not exist."""
        if not name:
            return "A / alone is no command: put its name after it, or enter /help for the list"
        if len(name) > MAX_NAME:
            return f"There is no command /{name[:MAX_NAME]}…; /help lists them"
        near = self.nearest(name)
        meant = f"; did you mean {' or '.join('/' + other for other in near)}?" if near else ""
        hint = "" if near else "; /help lists them"
        return f"There is no command /{name}{meant}{hint}"
