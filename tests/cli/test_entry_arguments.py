"""The command line: the quick parser, the full one, and that they agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midturn_cli.app import parse
from midturn_cli.options import (
    OPTIONS,
    Arguments,
    Command,
    UsageError,
    parse_quickly,
    split_command,
)

LINES = [
    "",
    "hello",
    "demo",
    "demo hello",
    "-p hello",
    "hello -p",
    "--print --output-format json hello",
    "--output-format=json -p",
    "-c",
    "--continue",
    "-r",
    "-r s-1",
    "-r s-1 hello",
    "--resume=s-1 hello",
    "--resume= hello",
    "-r -p hello",
    "--resume -- hello",
    "-r demo",
    "--parallel --no-parallel",
    "--no-parallel --parallel",
    "--model a --model b",
    "--allow A --deny B --allow C",
    "--max-steps 3 demo --plain",
    "--config demo demo",
    "--model doctor",
    "-- doctor",
    "-- -x",
    "--plain -- demo",
    "-",
    "--version",
]
HARD_LINES = [
    "hello demo",
    "- hello",
    "a b",
    "demo a b",
    "-- a b",
    "--bad",
    "-x",
    "--model",
    "--model -x hello",
    "--parallel=1",
    "--online",
    "--par",
    "-pc hello",
    "-cr s-1",
    "-rs-1",
    "doctor",
    "doctor x",
    "doctor --online --config x",
    "config --parallel",
    "--config x config",
    "demo --version",
    "verify",
    "verify s-1",
    "verify --last",
    "--last verify",
    "send hello",
    "--to s-1 send",
    "queue mv 2 1",
    "sessions --json",
]


@pytest.mark.parametrize("line", LINES)
def test_the_quick_and_the_full_parser_agree(line: str) -> None:
    words = line.split()
    assert parse_quickly(words) is not None
    assert parse_quickly(words) == parse(words)


@pytest.mark.parametrize("line", HARD_LINES)
def test_the_quick_parser_leaves_the_rest_to_the_full_one(line: str) -> None:
    assert parse_quickly(line.split()) is None


WORDS = st.sampled_from(
    [name for option in OPTIONS for name in (*option.names, option.off_name) if name]
    + ["", "-", "--", "a", "b c", "demo", "doctor", "config", "3", "--model=x", "--resume=", "-pc"]
    + ["--parallel=yes", "--unknown", "-x"]
)


@given(st.lists(WORDS, max_size=6))
def test_whatever_the_quick_parser_understands_the_full_one_understands_alike(
    words: list[str],
) -> None:
    quick = parse_quickly(words)
    if quick is not None:
        assert quick == parse(words)


@pytest.mark.parametrize(
    "name", ["demo", "doctor", "config", "verify", "send", "queue", "sessions"]
)
def test_a_first_prompt_may_be_a_commands_name(name: str) -> None:
    assert parse_quickly(["--", name]) == Arguments(Command.START, name)


def test_the_command_is_the_first_word_that_belongs_to_no_option() -> None:
    assert split_command(["--model", "doctor", "-c", "config", "--plain"]) == (
        Command.CONFIG,
        ["--model", "doctor", "-c", "--plain"],
    )
    assert split_command(["hello", "doctor"])[0] is Command.START


def test_options_may_stand_before_and_after_the_command() -> None:
    after = parse(["doctor", "--online", "--config", "x"])
    assert after == parse(["--config", "x", "--online", "doctor"])
    assert after == Arguments(Command.DOCTOR, "", {"online": True, "config": "x"})


def test_verify_takes_a_session_or_the_last_one() -> None:
    assert parse(["verify", "s-1"]) == Arguments(Command.VERIFY, "", {"session": "s-1"})
    assert parse(["--last", "verify"]) == Arguments(Command.VERIFY, "", {"last": True})


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--paralel", "--parallel"),
        ("--model", "--model"),
        ("a b", "in quotes"),
        ("--online", "--online"),
        ("doctor --print", "--print"),
        ("config x", "(x)"),
        ("verify a b", "(b)"),
        ("verify --parallel", "--parallel"),
        ("--parallel=1", "does not take a value"),
    ],
)
def test_a_mistake_is_one_sentence_with_a_way_out(line: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(line.split())
    assert words in str(caught.value)
    assert "--help" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "--help",
        "-h",
        "--model x -h",
        "demo --help",
        "doctor -h",
        "verify -h",
        "send -h",
        "queue -h",
        "sessions -h",
    ],
)
def test_help_is_readable_in_60_columns(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert parse(line.split()) is None
    shown = capsys.readouterr().out
    assert max(len(row) for row in shown.splitlines()) <= 60
    assert "..." not in shown.replace("[WHAT]...", "")  # of which there may be several
    assert "\x1b" not in shown
    assert "<" not in shown  # a type of Python's


def test_help_names_every_option_and_command(capsys: pytest.CaptureFixture[str]) -> None:
    parse(["--help"])
    shown = capsys.readouterr().out
    for option in OPTIONS:
        if Command.START in option.commands:
            assert all(name in shown for name in (*option.names, option.off_name))
    assert all(command.value in shown for command in Command)


def test_send_and_queue_take_words_before_and_after_their_options() -> None:
    sent = parse(["send", "--to", "s-1", "--now", "stop that"])
    assert sent == parse(["--now", "send", "stop that", "--to", "s-1"])
    assert sent == Arguments(Command.SEND, "stop that", {"to": "s-1", "now": True})
    assert parse(["queue", "mv", "2", "1", "--last"]) == Arguments(
        Command.QUEUE, "", {"words": ("mv", "2", "1"), "last": True}
    )
