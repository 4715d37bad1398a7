"""The list of all slash commands."""

from __future__ import annotations

from midturn_cli.commands.command import Command, Use


def all_commands() -> list[Command]:
    """In the order in which /help lists them."""
    return [
        Command("exit", "leave Midturn", now=leave, aliases=("quit",)),
    ]


def leave(use: Use) -> None:
    use.host.request_exit()
