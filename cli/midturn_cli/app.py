"""The full parser: help, the commands beside the input line, and every complaint about usage.

Built with Typer from the table in ``options.py``; it only parses, ``main.py`` acts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand

from midturn_cli.options import (
    COMMAND_HELP,
    WITH_PROMPT,
    Arguments,
    Command,
    Option,
    OptionValue,
    Shape,
    UsageError,
    options_of,
    split_command,
)

_HELP_NAMES = ("-h", "--help")
_CONTEXT = {"help_option_names": list(_HELP_NAMES)}
_DESCRIPTION = (
    "A coding assistant for the terminal whose input line stays live while the agent works. "
    "Give a first prompt, or just start."
)
_TEXT_HELP = "The text; what is piped in is added to it. Put -- before one that begins with -."
_PROMPT_HELP = "The first prompt; put -- before one that is a command's name."


def parse(argv: Sequence[str]) -> Arguments | None:
    """Understand a whole command line; None when help was asked for and is now on screen.

    Raises:
        UsageError: it cannot be understood; the text says why.
    """
    command, words = split_command(argv)
    if command is Command.START and not _asks_for_help(words):
        app, words = _start_app(), _with_explicit_values(words)
    else:
        app = _commands_app()
        name = [command.value] if command is not Command.START else []
        words = [*name, *_with_explicit_values(words)] if name else ["--help"]
    try:
        result = typer.main.get_command(app).main(words, "midturn", standalone_mode=False)
    except typer.TyperException as error:
        raise UsageError(_sentence(error.format_message())) from error
    return result if isinstance(result, Arguments) else None


def _asks_for_help(words: Sequence[str]) -> bool:
    before_end = words[: words.index("--")] if "--" in words else words
    return any(name in before_end for name in _HELP_NAMES)


def _with_explicit_values(words: Sequence[str]) -> list[str]:
    """Give an option whose value is missing an empty one: Typer knows no optional values."""
    names = {
        name
        for option in options_of(Command.START)
        if option.shape is Shape.OPTIONAL_VALUE
        for name in option.names
    }
    end = words.index("--") if "--" in words else len(words)
    explicit: list[str] = []
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < end else "-"
        bare = index < end and word in names and following.startswith("-") and following != "-"
        at_end = index < end and word in names and index + 1 >= end
        explicit += [f"--{_long(word)}="] if bare or at_end else [word]
    return explicit


def _long(name: str) -> str:
    option = next(option for option in options_of(Command.START) if name in option.names)
    return option.flag.removeprefix("--")


def _sentence(message: str) -> str:
    """Typer's words, with the way out for the commonest mistake."""
    message = message.replace(" Did you mean", "; did you mean").strip().rstrip(".")
    if "unexpected extra argument" in message:
        message += "; put a prompt of several words in quotes"
    return f"{message[:1].lower()}{message[1:]} (midturn --help lists the options)"


class _Word(TyperArgument):
    """An argument whose help is not followed by a type of Python's (``TEXT <str>``)."""

    def display_type_rich(self, ctx: object) -> None:
        return None


class _Command(TyperCommand):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for param in self.params:
            if isinstance(param, TyperArgument):
                param.__class__ = _Word


def _start_app() -> typer.Typer:
    app = _typer()
    app.command(cls=_Command, context_settings=_CONTEXT)(_collector(Command.START))
    return app


def _commands_app() -> typer.Typer:
    app = _typer()
    app.callback(
        invoke_without_command=True,
        help=_DESCRIPTION,
        context_settings=_CONTEXT,
        subcommand_metavar="[PROMPT] | COMMAND",
    )(_collector(Command.START, with_prompt=False))
    for command, text in COMMAND_HELP.items():
        app.command(command.value, cls=_Command, help=text, context_settings=_CONTEXT)(
            _collector(command)
        )
    return app


def _typer() -> typer.Typer:
    return typer.Typer(add_completion=False, rich_markup_mode=None)


def _collector(command: Command, *, with_prompt: bool = True) -> Callable[..., Arguments]:
    """A function with the signature that Typer reads the options of a command from."""
    options = options_of(command)

    def collect(prompt: str = "", **given: OptionValue | list[str] | None) -> Arguments:
        values = {
            name.removeprefix(_PREFIX): tuple(value) if isinstance(value, list) else value
            for name, value in given.items()
            if value is not None and value != []
        }
        return Arguments(command, prompt, values)

    parameters = [_parameter(option) for option in options]
    if with_prompt and command in WITH_PROMPT:
        parameters.append(_prompt_parameter(command))
    signature = inspect.Signature(parameters, return_annotation=Arguments)
    collect.__signature__ = signature  # type: ignore[attr-defined]  # what inspect looks for
    collect.__annotations__ = {item.name: item.annotation for item in parameters}
    return collect


_PREFIX = "option_"
"""Keeps names such as ``print`` and ``continue`` usable as parameters."""


def _parameter(option: Option) -> inspect.Parameter:
    if option.shape in (Shape.WORD, Shape.WORDS):
        return _word_parameter(option)
    names = list(option.names)
    if option.off_name:
        names[-1] = f"{names[-1]}/{option.off_name}"
    info = typer.Option(
        *names, help=option.help, metavar=option.metavar or None, show_default=False
    )
    kinds: dict[Shape, Any] = {
        Shape.SWITCH: bool | None,
        Shape.VALUE: str | None,
        Shape.OPTIONAL_VALUE: str | None,
        Shape.REPEATED: list[str] | None,
    }
    return inspect.Parameter(
        _PREFIX + option.field,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kinds[option.shape], info],
    )


def _word_parameter(option: Option) -> inspect.Parameter:
    info = typer.Argument(help=option.help, metavar=option.metavar, show_default=False)
    kind: Any = str | None if option.shape is Shape.WORD else list[str] | None
    return inspect.Parameter(
        _PREFIX + option.field,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind, info],
    )


def _prompt_parameter(command: Command) -> inspect.Parameter:
    if command is Command.SEND:
        info = typer.Argument(help=_TEXT_HELP, show_default=False, metavar="TEXT")
    else:
        info = typer.Argument(help=_PROMPT_HELP, show_default=False, metavar="PROMPT")
    return inspect.Parameter(
        "prompt", inspect.Parameter.KEYWORD_ONLY, default="", annotation=Annotated[str, info]
    )
