"""What a line is, typed or sent: a prompt, a slash command or a ``!`` line (D3)."""

from __future__ import annotations

from midturn_cli.commands.command import When
from midturn_cli.commands.registry import CommandRegistry, split_command
from midturn_cli.shell_line import shell_command
from midturn_core.controller import LineKind


def line_problem(registry: CommandRegistry, text: str) -> str:
    """Why a line cannot be taken, such as an unknown command; empty when it can."""
    if text.strip() == "!":
        return "A ! line needs a shell command: !git status"
    split = split_command(text)
    if split is None:
        return ""
    command = registry.find(split[0])
    if command is None:
        return registry.unknown(split[0])
    return command.check(split[1]) if command.check is not None else ""


def line_kind(registry: CommandRegistry, text: str) -> LineKind:
    """What it is, if ``line_problem`` has nothing against it."""
    if shell_command(text):
        return LineKind.SHELL
    split = split_command(text)
    command = registry.find(split[0]) if split is not None else None
    if split is None or command is None:
        return LineKind.PROMPT
    at_once = command.when(split[1]) is When.AT_ONCE
    return LineKind.IMMEDIATE if at_once else LineKind.COMMAND
