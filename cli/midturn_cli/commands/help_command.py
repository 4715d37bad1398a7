"""/help: the keys, the commands and the prefixes; or one command in detail."""

from __future__ import annotations

from midturn_cli.commands.command import Command, CommandError, Form, Use
from midturn_cli.commands.registry import CommandRegistry
from midturn_cli.delivery_words import LATER_WORDS, NEXT_WORDS, NOW_WITHOUT_HASTE
from midturn_cli.key_labels import key_labels
from midturn_core.config import KeysConfig, QueueConfig
from midturn_core.config_keys import CONFIG_KEYS

USAGE_WIDTH = 18
"""Cells: more would break most rows of a terminal that is 80 wide."""

ANSWERS = (
    ("y, t, s, a", "Answer a question: yes once, this turn, this session, always."),
    ("n, Esc, r", "Answer a question: no; r takes a reason for the model."),
)
PLAIN_KEYS = (
    ("Enter", "Send the line; while a turn runs it is queued. /now, /next, /later: its tier."),
    ("Enter on an empty line", "Send what was held after an interrupt."),
    ("Ctrl-C", "Interrupt the turn. When idle: leave."),
    ("Ctrl-D", "Leave when the turn is over."),
    *((letters.replace("Esc, ", ""), meaning) for letters, meaning in ANSWERS),
)
"""Plain mode reads whole lines."""
FIXED_KEYS = (
    ("Enter on an empty line", "Send what was held after an interrupt."),
    ("Enter after a \\", "Begin a new line."),
    ("Ctrl-C", "Interrupt the turn. When idle: clear the draft; twice within a second: leave."),
    ("Up, Down", "On an empty line: the rows that wait. Else earlier and later lines."),
    *ANSWERS,
)
"""What ``[keys]`` does not change."""
PREFIXES = (
    ("@path", "names a file of the folder; the menu completes it"),
    ("!command", "runs a shell command of yours; the model does not see it"),
    ("/command", "runs a command; a path (/etc/hosts), /* and // begin a prompt"),
)


def show_help(use: Use) -> None:
    if use.arguments:
        # A form such as "queue rm" is told with its command.
        _show_command(use, use.words[0].removeprefix("/"))
        return
    rows = [(_short_usage(command), command.summary, command.timing) for command in use.commands]
    use.table("Commands", ("command", "what it does", "takes effect"), rows)
    keys = [*key_rows(use.engine.config.keys), *FIXED_KEYS]
    use.table("Keys", ("key", "what it does"), keys if use.engine.front.live else PLAIN_KEYS)
    use.table(
        "What you type while a turn runs", ("tier", "delivered"), tier_rows(use.engine.config.queue)
    )
    use.table(
        "Prefixes", ("prefix", "what it does"), PREFIXES, "/help COMMAND tells more about one"
    )


def key_rows(keys: KeysConfig) -> list[tuple[str, str]]:
    """The keys of each action that has any, and what they do."""
    return [
        (key_labels(getattr(keys, key.name)), key.help)
        for key in CONFIG_KEYS
        if key.section == "keys" and getattr(keys, key.name)
    ]


def tier_rows(queue: QueueConfig) -> list[tuple[str, str]]:
    """What each tier does, as the configuration has it; the one that Enter means is marked."""
    hastens = "redirect at once: cuts the answer short, skips calls that have not started"
    meanings = {
        "now": hastens if queue.now_hastens else f"{NOW_WITHOUT_HASTE}, before what is NEXT",
        "next": "steer: after the tool results of this step"
        if queue.next_delivery == "step"
        else f"steer: {NEXT_WORDS[queue.next_delivery]}",
        "later": f"{LATER_WORDS[queue.later]}, as a turn of its own",
    }
    return [
        (tier.upper(), f"{meaning}; what Enter means" if tier == queue.enter else meaning)
        for tier, meaning in meanings.items()
    ]


def _short_usage(command: Command) -> str:
    return command.usage if len(command.usage) <= USAGE_WIDTH else f"/{command.name} ..."


def _show_command(use: Use, name: str) -> None:
    registry = CommandRegistry(use.commands)
    command = registry.find(name)
    if command is None:
        raise CommandError(registry.unknown(name))
    forms = command.forms or (Form(command.usage, command.summary),)
    notes = [f"takes effect {command.timing}"]
    notes += [f"also /{alias}" for alias in command.aliases]
    rows = [(form.text, form.meaning) for form in forms]
    use.table(f"/{command.name}: {command.summary}", ("write", "to"), rows, "; ".join(notes))


HELP = Command(
    "help",
    "show keys, commands and prefixes",
    "[COMMAND]",
    now=show_help,
    forms=(
        Form("/help", "see keys, tiers, commands and prefixes"),
        Form("/help COMMAND", "see all forms of one command"),
    ),
)
