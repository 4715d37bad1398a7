"""From arguments to a ``Launch``."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from midturn_cli.launch import LARGEST_INPUT, SessionStart, prepare, with_piped_text
from midturn_cli.options import Arguments, Command, UsageError, parse_quickly
from midturn_core.errors import ConfigError, MidturnError


def arguments(*words: str) -> Arguments:
    parsed = parse_quickly(words)
    assert parsed is not None
    return parsed


class Pipe(io.TextIOWrapper):
    """Standard input that is no terminal."""

    def __init__(self, data: bytes):
        super().__init__(io.BytesIO(data), encoding="utf-8")


@pytest.fixture(autouse=True)
def no_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Pipe(b""))


def test_a_bare_start_has_the_built_in_choices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    monkeypatch.chdir(link)
    launch = prepare(arguments(), os.environ)
    assert launch.workspace == tmp_path.resolve()
    assert (launch.prompt, launch.demo, launch.print_mode) == ("", False, False)
    assert (launch.session, launch.max_steps) == (SessionStart.NEW, 100)


def test_flags_are_the_topmost_layer_of_the_configuration() -> None:
    line = "--parallel --max-concurrency 8 --per-batch-max 2 --model m --plain --permission-mode"
    environ = {**os.environ, "MIDTURN_MODEL_NAME": "from-environment"}
    launch = prepare(arguments(*line.split(), "plan"), environ)
    parallel = launch.config.parallel
    assert (parallel.enabled, parallel.max_concurrency, parallel.batch_slots) == (True, 8, 2)
    assert launch.config.model.name == "m"
    assert launch.config.ui.plain
    assert launch.config.permissions.mode == "plan"
    assert str(launch.loaded.origins["model.name"][0]) == "--model"


def test_no_parallel_wins_over_the_environment() -> None:
    environ = {**os.environ, "MIDTURN_PARALLEL_ENABLED": "1"}
    launch = prepare(arguments("--no-parallel"), environ)
    assert launch.config.parallel.enabled is False
    assert str(launch.loaded.origins["parallel.enabled"][0]) == "--no-parallel"


@pytest.mark.parametrize(
    ("line", "session", "session_id"),
    [
        ("-c", SessionStart.LATEST, ""),
        ("-r", SessionStart.CHOOSE, ""),
        ("-r s-1", SessionStart.NAMED, "s-1"),
        ("-p -c x", SessionStart.LATEST, ""),
    ],
)
def test_a_session_can_be_continued(line: str, session: SessionStart, session_id: str) -> None:
    launch = prepare(arguments(*line.split()), os.environ)
    assert (launch.session, launch.session_id) == (session, session_id)


def test_demo_is_a_start_with_the_demo_model() -> None:
    launch = prepare(arguments("demo", "tour", "--max-steps", "7"), os.environ)
    assert (launch.demo, launch.prompt, launch.max_steps) == (True, "tour", 7)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("-c -r", "cannot be used together"),
        ("-p -r x -c", "cannot be used together"),
        ("-p -r -- x", "--resume needs the ID"),
        ("--output-format json", "needs --print"),
        ("-p x --output-format xml", "must be text, json or stream-json"),
        ("-p", "--print needs a prompt"),
        ("--max-steps 0", "from 1 to 100"),
        ("--max-steps 101", "from 1 to 100"),
        ("--max-steps many", "from 1 to 100"),
        ("--config=", "needs a path"),
        ("--config /no/such.toml", "no such configuration file"),
        ("--max-concurrency 11", "--max-concurrency must be a whole number from 1 to 10"),
        ("--max-concurrency 2 --per-batch-max 3", "--per-batch-max"),
        ("--permission-mode sudo", "--permission-mode must be one of"),
    ],
)
def test_options_that_do_not_fit_are_an_error_that_names_them(line: str, words: str) -> None:
    with pytest.raises(MidturnError) as caught:
        prepare(arguments(*line.split()), os.environ)
    assert isinstance(caught.value, UsageError | ConfigError)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("prompt", "piped", "joined"),
    [
        ("sum up", b"", "sum up"),
        ("", b"plan\n", "plan"),
        ("sum up", b"  one\ntwo\n", "sum up\n\n  one\ntwo"),
        ("sum up", b" \n", "sum up"),
        ("sum up", b"\xff\n", "sum up\n\n\ufffd"),
    ],
)
def test_piped_text_is_added_to_the_prompt_once(
    prompt: str, piped: bytes, joined: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Pipe(piped))
    assert with_piped_text(prompt) == joined


def test_too_much_piped_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Pipe(b"x" * (LARGEST_INPUT + 1)))
    with pytest.raises(UsageError, match="larger than"):
        with_piped_text("sum up")


def test_a_closed_standard_input_is_no_piped_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert with_piped_text("hello") == "hello"


def test_the_repl_leaves_standard_input_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = Pipe(b"typed later\n")
    monkeypatch.setattr(sys, "stdin", pipe)
    assert prepare(arguments("hello"), os.environ).prompt == "hello"
    assert pipe.read() == "typed later\n"


def test_bytes_that_are_no_text_do_not_reach_a_request() -> None:
    launch = prepare(Arguments(Command.START, "a\udcff\uac00"), os.environ)
    assert launch.prompt == "a\ufffd\uac00"


def test_a_folder_that_is_gone_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(UsageError, match="not there any more"):
        prepare(arguments(), os.environ)
