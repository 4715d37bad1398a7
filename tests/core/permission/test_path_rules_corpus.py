"""The cases of tests/corpora/path_rules.json that the policy decides.

Errors and races are matters of opening the file, which the tools do; here the policy sees the
path as tools hand it over: as written, and with all links followed.
"""

from __future__ import annotations

import base64
import os
import socket
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from midturn_core.permission.access import PathAccess
from midturn_core.permission.decision import PermissionMode, Verdict
from midturn_core.permission.policy import PermissionPolicy
from midturn_core.permission.rules import RuleSet
from tests.support.file_cases import Case, case_id, load_cases, text_of

DECIDED = [
    case
    for case in load_cases("path_rules.json")
    if case["expected"] in ("allow", "ask", "deny") and "after_check" not in case
]


@pytest.fixture
def base() -> Iterator[Path]:
    # Not tmp_path: sockets have short names, and a test's folder has a long one.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "repo").mkdir()
        (folder / "home").mkdir()
        yield folder


def set_up(steps: Sequence[Case], base: Path) -> None:
    for step in steps:
        path = Path(step.get("path", "{base}").replace("{base}", str(base)))
        path.parent.mkdir(parents=True, exist_ok=True)
        match step["op"]:
            case "file":
                path.write_text(step["text"])
            case "file_b64name":
                folder = os.fsencode(step["dir"].replace("{base}", str(base)))
                with open(folder + b"/" + base64.b64decode(step["name_b64"]), "w") as file:
                    file.write(step["text"])
            case "dir":
                path.mkdir(parents=True)
            case "symlink":
                path.symlink_to(step["to"].replace("{base}", str(base)))
            case "hardlink":
                path.hardlink_to(step["to"].replace("{base}", str(base)))
            case "fifo":
                os.mkfifo(path)
            case "socket":
                with socket.socket(socket.AF_UNIX) as server:
                    server.bind(str(path))
            case other:
                raise AssertionError(f"unknown set-up step {other}")


def access_to(case: Case, base: Path) -> PathAccess:
    home = str(base / "home")
    text = text_of(case, "path").replace("{base}", str(base))
    if text.startswith("~/"):
        text = home + text[1:]
    absolute = os.path.join(base / "repo", text)
    return PathAccess(
        Path(os.path.normpath(absolute)), Path(os.path.realpath(absolute)), case["tool"] != "Read"
    )


@pytest.mark.parametrize("case", DECIDED, ids=case_id)
def test_a_path_gets_the_verdict_that_is_due(case: Case, base: Path) -> None:
    set_up(case["setup"], base)
    rules = {
        effect: [text.replace("{base}", str(base)) for text in texts]
        for effect, texts in case.get("rules", {}).items()
    }
    policy = PermissionPolicy(
        base / "repo",
        RuleSet.parse(**rules),
        PermissionMode.ACCEPT_EDITS,
        home=base / "home",
        own_folders=(base / "home/.config/midturn",),
    )
    decision = policy.decide(case["tool"], [access_to(case, base)])
    words = {case["expected"], *case.get("also_ok", ())}
    accepted = {Verdict[word.upper()] for word in words - {"error"}}
    assert decision.verdict in accepted, (case["reason"], decision)
