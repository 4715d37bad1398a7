"""The one table of options, and the quick parser that takes the short way to the input line.

``app.py`` builds the full parser from the same table; where both understand a command line they
agree, and what the quick one does not understand it leaves to the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from midturn_core.errors import MidturnError

EXIT_FAILED = 1
EXIT_USAGE = 2

OptionValue: TypeAlias = bool | str | tuple[str, ...]


class UsageError(MidturnError):
    """The command line cannot be understood (exit code 2)."""


class Command(Enum):
    """What to do. ``START`` has no name: it is what ``midturn`` does by itself."""

    START = ""
    DEMO = "demo"
    DOCTOR = "doctor"
    CONFIG = "config"
    VERIFY = "verify"
    SEND = "send"
    QUEUE = "queue"
    SESSIONS = "sessions"


COMMAND_HELP: Mapping[Command, str] = {
    Command.DEMO: "Try it with a demo model, without a key.",
    Command.DOCTOR: "Check the set-up; say how to fix it.",
    Command.CONFIG: "Show each setting and what set it.",
    Command.VERIFY: "Check the tool calls of a session.",
    Command.SEND: "Send text to a running session.",
    Command.QUEUE: "See and change what waits in a session.",
    Command.SESSIONS: "List the sessions that run.",
}
WITH_PROMPT = frozenset({Command.START, Command.DEMO, Command.SEND})
"""What takes a text."""
_BY_NAME = {command.value: command for command in COMMAND_HELP}


class Shape(Enum):
    """How an option is written."""

    SWITCH = "switch"
    VALUE = "value"
    OPTIONAL_VALUE = "optional value"
    """Its value may be missing, which is the same as an empty one."""
    REPEATED = "repeated"
    WORD = "word"
    """By itself, without a name before it."""
    WORDS = "words"
    """Any number of those."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option. ``key`` is the configuration key it sets; ``field`` its name in ``Arguments``."""

    field: str
    names: tuple[str, ...]
    shape: Shape
    help: str
    metavar: str = ""
    off_name: str = ""
    """The name that turns a switch off."""
    key: str = ""
    commands: frozenset[Command] = frozenset({Command.START, Command.DEMO})

    @property
    def flag(self) -> str:
        """The long name, as errors and origins show it."""
        return self.names[-1]


_OUTSIDE = frozenset({Command.SEND, Command.QUEUE, Command.SESSIONS})
"""What acts on other sessions."""
_EVERYWHERE = (frozenset(_BY_NAME.values()) | {Command.START}) - _OUTSIDE - {Command.VERIFY}
"""Where the configuration of a session is read."""

OPTIONS: tuple[Option, ...] = (
    Option(
        "print",
        ("-p", "--print"),
        Shape.SWITCH,
        "Run one turn, print the answer and leave; text piped in is added to the prompt.",
    ),
    Option(
        "output_format",
        ("--output-format",),
        Shape.VALUE,
        "With --print: text, json or stream-json.",
        "FORMAT",
    ),
    Option(
        "continue",
        ("-c", "--continue"),
        Shape.SWITCH,
        "Go on with the latest session of this folder.",
    ),
    Option(
        "resume",
        ("-r", "--resume"),
        Shape.OPTIONAL_VALUE,
        "Go on with a session; without ID choose one.",
        "[ID]",
    ),
    Option(
        "model",
        ("--model",),
        Shape.VALUE,
        "The model to talk to.",
        "NAME",
        key="model.name",
        commands=_EVERYWHERE,
    ),
    Option(
        "parallel",
        ("--parallel",),
        Shape.SWITCH,
        "Run independent safe tool uses together, or one after another.",
        off_name="--no-parallel",
        key="parallel.enabled",
        commands=_EVERYWHERE,
    ),
    Option(
        "max_concurrency",
        ("--max-concurrency",),
        Shape.VALUE,
        "Tools that run at once, 1 to 10.",
        "N",
        key="parallel.max_concurrency",
        commands=_EVERYWHERE,
    ),
    Option(
        "per_batch_max",
        ("--per-batch-max",),
        Shape.VALUE,
        "Slots of one batch, 1 to max-concurrency.",
        "N",
        key="parallel.per_batch_max",
        commands=_EVERYWHERE,
    ),
    Option(
        "permission_mode",
        ("--permission-mode",),
        Shape.VALUE,
        "default, accept-edits, plan or yolo.",
        "MODE",
        key="permissions.mode",
        commands=_EVERYWHERE,
    ),
    *(
        Option(
            name,
            (f"--{name}",),
            Shape.REPEATED,
            f"A rule for what is {meaning}; may be repeated.",
            "RULE",
            key=f"permissions.{name}",
            commands=_EVERYWHERE,
        )
        for name, meaning in (
            ("allow", "done without asking"),
            ("ask", "always asked"),
            ("deny", "never done"),
        )
    ),
    Option("max_steps", ("--max-steps",), Shape.VALUE, "Most steps of a turn, 1 to 100.", "N"),
    Option(
        "config",
        ("--config",),
        Shape.VALUE,
        "Read this configuration file in place of the user's.",
        "PATH",
        commands=_EVERYWHERE | _OUTSIDE,
    ),
    Option(
        "log_file",
        ("--log-file",),
        Shape.VALUE,
        "Write the log to this file.",
        "PATH",
        key="log.file",
        commands=_EVERYWHERE,
    ),
    Option(
        "plain",
        ("--plain",),
        Shape.SWITCH,
        "Plain lines: no live region, no colours.",
        key="ui.plain",
        commands=_EVERYWHERE,
    ),
    Option(
        "online",
        ("--online",),
        Shape.SWITCH,
        "Also send one small request to the model's service.",
        commands=frozenset({Command.DOCTOR}),
    ),
    Option(
        "session",
        (),
        Shape.WORD,
        "The session's ID, or its beginning.",
        "SESSION",
        commands=frozenset({Command.VERIFY}),
    ),
    Option(
        "last",
        ("--last",),
        Shape.SWITCH,
        "The latest session of this folder.",
        commands=frozenset({Command.VERIFY, Command.SEND, Command.QUEUE}),
    ),
    Option(
        "to",
        ("--to",),
        Shape.VALUE,
        "The session with this ID, or the beginning of one; else the one that runs here.",
        "SESSION",
        commands=frozenset({Command.SEND, Command.QUEUE}),
    ),
    *(
        Option(
            tier,
            (f"--{tier}",),
            Shape.SWITCH,
            meaning,
            commands=frozenset({Command.SEND}),
        )
        for tier, meaning in (
            ("now", "Redirect the turn at once."),
            ("next", "Deliver it after the step that runs (as without any of these)."),
            ("later", "Make it a turn of its own after this one."),
        )
    ),
    Option(
        "sender",
        ("--from",),
        Shape.VALUE,
        "Who sends it, as the session shows it.",
        "NAME",
        commands=frozenset({Command.SEND}),
    ),
    Option(
        "json",
        ("--json",),
        Shape.SWITCH,
        "Print JSON.",
        commands=frozenset({Command.QUEUE, Command.SESSIONS}),
    ),
    Option(
        "words",
        (),
        Shape.WORDS,
        "ls (or nothing), rm N, mv N M, now N, next N, later N, clear.",
        "WHAT",
        commands=frozenset({Command.QUEUE}),
    ),
    Option(
        "version",
        ("--version",),
        Shape.SWITCH,
        "Show the version and leave.",
        commands=frozenset({Command.START}),
    ),
)


@dataclass(frozen=True, slots=True)
class Arguments:
    """A command line that was understood; ``values`` has only the options that were given."""

    command: Command
    prompt: str = ""
    values: Mapping[str, OptionValue] = field(default_factory=dict[str, OptionValue])

    def is_on(self, name: str) -> bool:
        return self.values.get(name) is True

    def text(self, name: str) -> str | None:
        """The value of an option, None when it was not given."""
        value = self.values.get(name)
        return value if isinstance(value, str) else None


def options_of(command: Command) -> tuple[Option, ...]:
    return tuple(option for option in OPTIONS if command in option.commands)


def names_of(command: Command) -> dict[str, Option]:
    options = options_of(command)
    return {
        name: option
        for option in options
        for name in (*option.names, *filter(None, [option.off_name]))
    }


def split_command(argv: Sequence[str]) -> tuple[Command, list[str]]:
    """Take the command's name out of a command line: its first word that is no option.

    After ``--`` there is no command, so that ``midturn -- doctor`` is a prompt.
    """
    every_name = {name: option for option in OPTIONS for name in _all_names(option)}
    index = 0
    while index < len(argv) and argv[index] != "--":
        word = argv[index]
        if not _is_option(word):
            command = _BY_NAME.get(word, Command.START)
            rest = argv if command is Command.START else [*argv[:index], *argv[index + 1 :]]
            return command, list(rest)
        option = every_name.get(word)
        index += 2 if option is not None and _takes_next(option, argv, index) else 1
    return Command.START, list(argv)


def parse_quickly(argv: Sequence[str]) -> Arguments | None:
    """Parse a command line that leads to the input line or to one turn; None for all others."""
    command, words = split_command(argv)
    if command not in (Command.START, Command.DEMO):
        return None
    known = names_of(command)
    values: dict[str, OptionValue] = {}
    prompts: list[str] = []
    index = 0
    while index < len(words):
        word = words[index]
        if word == "--":
            prompts += words[index + 1 :]
            break
        index += 1
        if not _is_option(word):
            prompts.append(word)
            continue
        name, equals, value = word.partition("=")
        option = known.get(name)
        if option is None or (equals and option.shape is Shape.SWITCH):
            return None
        if not equals and _takes_next(option, words, index - 1):
            if index == len(words) or _is_option(words[index]):
                return None
            value = words[index]
            index += 1
        values[option.field] = _joined(option, name, value, values.get(option.field))
    if len(prompts) > 1:
        return None
    return Arguments(command, "".join(prompts), values)


def _all_names(option: Option) -> tuple[str, ...]:
    return (*option.names, option.off_name) if option.off_name else option.names


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _takes_next(option: Option, words: Sequence[str], index: int) -> bool:
    """Whether the word after an option belongs to it."""
    match option.shape:
        case Shape.SWITCH | Shape.WORD | Shape.WORDS:
            return False
        case Shape.VALUE | Shape.REPEATED:
            return True
        case Shape.OPTIONAL_VALUE:
            return index + 1 < len(words) and not _is_option(words[index + 1])


def _joined(option: Option, name: str, value: str, before: OptionValue | None) -> OptionValue:
    match option.shape:
        case Shape.SWITCH:
            return name != option.off_name
        case Shape.VALUE | Shape.OPTIONAL_VALUE | Shape.WORD:
            return value
        case Shape.REPEATED | Shape.WORDS:
            return (*(before if isinstance(before, tuple) else ()), value)
