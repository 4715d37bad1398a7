"""Permission rules that people have seen dodged in programs of this kind, in the real command.

Nobody can be asked in print mode: what would be asked is denied with words that say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.messages_script import Calls, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment, run_midturn

pytestmark = pytest.mark.slow

ASKED = "Error: Permission is needed, but nobody can be asked"
DENIED = "Error: Permission denied: the rule"


def outcomes(workspace: Path, flags: Sequence[str], calls: Sequence[Calls]) -> list[str]:
    """What the model hears of each call, all in one message."""
    with MessagesServer(Reply(*calls), Reply(Says("done"))) as server:
        done = run_midturn(
            "-p",
            "go",
            *flags,
            environ=midturn_environment(**server.environment()),
            cwd=workspace,
        )
        assert done.returncode == 0
        return [str(result["content"]) for result in server.requests[1].results]


def bash(workspace: Path, flags: Sequence[str], commands: Sequence[str]) -> list[str]:
    return outcomes(workspace, flags, [Calls("Bash", {"command": line}) for line in commands])


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def test_an_allowed_program_lets_no_second_one_run(tmp_path: Path) -> None:
    """MB-0307."""
    told = bash(
        tmp_path,
        ["--allow", "Bash(git *)"],
        [
            "git log && touch p1",
            "git log; touch p2",
            "git log | tee p3",
            "git log || touch p4",
            "git log & touch p5",
        ],
    )
    assert [text.startswith(ASKED) for text in told] == [True] * 5
    assert names(tmp_path) == set()


def test_a_denied_command_is_found_in_what_wraps_it(tmp_path: Path) -> None:
    """MB-0308."""
    (tmp_path / "sub" / "d").mkdir(parents=True)
    (tmp_path / "d").mkdir()
    (tmp_path / "list").write_text("list\n", encoding="utf-8")
    told = bash(
        tmp_path,
        ["--deny", "Bash(rm *)", "--allow", "Bash"],
        [
            "cd sub && rm -rf d",
            "(rm -rf d)",
            "env rm -rf d",
            "sh -c 'rm -rf d'",
            "xargs rm < list",
            "/bin/rm -rf d",
            "\\rm d",
            "rm -rf d",
        ],
    )
    assert [text.startswith((ASKED, DENIED)) for text in told] == [True] * 8
    assert told[-1].startswith(DENIED)
    assert names(tmp_path) == {"sub", "d", "list"}
    assert names(tmp_path / "sub") == {"d"}


def test_a_substitution_in_an_allowed_command_is_asked(tmp_path: Path) -> None:
    """MB-0309."""
    told = bash(
        tmp_path,
        ["--allow", "Bash(git *)"],
        ["git log $(touch p1)", "git log `touch p2`", "git diff <(touch p3)"],
    )
    assert [text.startswith(ASKED) for text in told] == [True] * 3
    assert names(tmp_path) == set()


def test_an_ask_rule_sees_the_program_behind_assignments_and_shells(tmp_path: Path) -> None:
    """MB-0310."""
    told = bash(
        tmp_path,
        ["--ask", "Bash(kubectl *)", "--allow", "Bash(*)"],
        ["KUBECONFIG=k kubectl x", "bash -c 'kubectl x'", 'eval "kubectl x"', "echo fine"],
    )
    assert [text.startswith(ASKED) for text in told] == [True, True, True, False]


@pytest.mark.parametrize("mode", ["default", "yolo"])
def test_a_here_document_is_one_command_and_its_lines_are_no_programs(
    tmp_path: Path, mode: str
) -> None:
    """MB-0311: one question, or none where nothing is asked; no line of the body meets a rule."""
    told = bash(
        tmp_path,
        ["--allow", "Bash(python3 *)", "--deny", "Bash(print *)", "--permission-mode", mode],
        ["python3 - <<'X'\nfor i in range(2):\n  print(i)\nX"],
    )
    if mode == "yolo":
        assert told == ["0\n1"]
    else:
        assert told[0].startswith(ASKED)


def test_a_denied_folder_is_denied_by_every_spelling(tmp_path: Path) -> None:
    """MB-0314."""
    for name in ("work", "protected"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("protected")
    paths = [
        "work/../protected/f",
        "link/f",
        str(tmp_path / "protected" / "f"),
        "link/new/f",
        "protected/f",
    ]
    calls = [Calls("Write", {"file_path": path, "content": "x\n"}) for path in paths]
    told = outcomes(tmp_path, ["--deny", "Write(protected/**)", "--allow", "Edit"], calls)
    assert [text.startswith(DENIED) for text in told] == [True] * len(paths)
    assert names(tmp_path / "protected") == set()


@pytest.mark.parametrize("rule", ["Edit(protected/**)", "Edit(./protected)"])
def test_a_deny_rule_for_edit_holds_for_write(tmp_path: Path, rule: str) -> None:
    """MB-0315."""
    call = Calls("Write", {"file_path": "protected/new.txt", "content": "x\n"})
    told = outcomes(tmp_path, ["--deny", rule, "--allow", "Write"], [call])
    assert told[0].startswith(DENIED)
    assert names(tmp_path) == set()
