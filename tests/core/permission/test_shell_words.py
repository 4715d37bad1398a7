"""A plain list of words, read like bash reads it, and nothing else."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from midturn_core.permission.shell_words import UnreadableCommandError, plain_words
from tests.support.services import require


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("git status", ("git", "status")),
        ("  git\tstatus \n", ("git", "status")),
        ("echo 'a  b' \"c $(\"", None),
        ("echo 'a | b' \"c;d\" e\\&f", ("echo", "a | b", "c;d", "e&f")),
        ('echo "\\$5 \\" \\\\ \\x"', ("echo", '$5 " \\ \\x')),
        ("echo '' \"\"", ("echo", "", "")),
        ("git log HEAD~1", ("git", "log", "HEAD~1")),
        ("echo a # b; c", ("echo", "a")),
        ("echo a#b", ("echo", "a#b")),
        ("git commit -m 'one\ntwo'", ("git", "commit", "-m", "one\ntwo")),
    ],
)
def test_words_are_read_like_a_shell_reads_them(
    command: str, words: tuple[str, ...] | None
) -> None:
    if words is None:
        with pytest.raises(UnreadableCommandError):
            plain_words(command)
    else:
        assert plain_words(command) == words


@pytest.mark.parametrize(
    "command",
    [
        "", " ", "a;b", "a\nb", "a|b", "a&", "a>b", "a<b", "(a)", "a $b", "a `b`", "a *", "a ?", "a [b]",
        "a {b,c}", "a ~", "a ~/b", "a b=~/c", "a $'b'", 'a "$b"', 'a "`b`"', "a 'b", 'a "b', "a \\",
        "a \\\nb", 'a "b\\\nc"', "A=1 b", "'a' b", "\\a b", 'a"b" c', "if a", "! a", "time a", "[[ a",
        "a # b\nc", "a \u200b", "a \u202e", "a \x1b[2K", "a \x00", "a\u00a0b", "a \r", "a \ud800",
    ],
)  # fmt: skip
def test_everything_else_is_refused(command: str) -> None:
    with pytest.raises(UnreadableCommandError):
        plain_words(command)


# The words cannot run anything: in the check they are operands of one builtin.
_PIECES = st.sampled_from(
    ["a", "b", " ", "\t", "'", '"', "\\", "#", "=", "-", ":", "/", ".", ",", "~", "!", "^", "%", "@",
     "\n", "$", "`", "*", "?", "[", "]", "{", "}", "(", ")", "&", "|", ";", "<", ">", "é", "한"]
)  # fmt: skip


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_PIECES, max_size=14).map("".join))
def test_what_is_accepted_means_the_same_to_bash(tmp_path: Path, rest: str) -> None:
    command = "a " + rest
    try:
        words = plain_words(command)
    except UnreadableCommandError:
        return
    script = f"set -f; args() {{ printf '%s\\0' \"$@\"; }}; args {command.strip()}"
    run = subprocess.run(
        [require("bash"), "--norc", "--noprofile", "-c", script],
        capture_output=True,
        cwd=tmp_path,
        timeout=60,
        check=True,
    )
    assert run.stdout.decode().split("\0")[:-1] == list(words)


@pytest.mark.parametrize(
    ("command", "operator"),
    [("a && b", "&&"), ("a & b", "&"), ("a || b", "||"), ("a\nb", "line break")],
)
def test_an_operator_is_named_as_a_person_calls_it(command: str, operator: str) -> None:
    with pytest.raises(UnreadableCommandError, match=f"operator {re.escape(operator)}$"):
        plain_words(command)
