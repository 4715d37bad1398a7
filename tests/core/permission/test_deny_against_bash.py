"""Deny rules against what bash really runs: no form of a denied command gets through unasked."""

from __future__ import annotations

import os
import random
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from midturn_core.permission.access import CommandAccess
from midturn_core.permission.decision import PermissionMode, Verdict
from midturn_core.permission.policy import PermissionPolicy
from midturn_core.permission.rules import RuleSet
from tests.support.services import require

RUNS_IT = [
    "rm x", "rm", "'rm' x", "\\rm x", "r''m x", 'r"m" x', ">y rm x", "2>&1 rm x", "A='b c' rm x", "env rm x",
    "env -i PATH=$PATH MARK=$MARK rm x", "timeout -s KILL 5 rm x", "nice -n 3 rm x", "echo x | xargs -n 1 rm",
    "exec -a q rm x", "command -- rm x", "builtin command rm x", "r\\\nm x", "sh -c 'rm x'",
    'bash -xc "rm x"', "eval 'rm x'", "$'rm' x", "$'\\x72m' x", "bash <<<'rm x'", "bash <<E\nrm x\nE",
    "echo rm x | sh", "time -p rm x", "a=rm; $a x", "$(echo rm) x", "`echo rm` x", "{rm,x}",
    "env -S 'rm x'", "coproc rm x; wait", "A=(1 2) rm x", "a[0]=1 rm x", "trap 'rm x' EXIT",
    "echo 'rm x' > s; . ./s", "bash -s <<<'rm x'", 'set -- rm x; "$@"', "IFS=,; a=rm,x; $a",
    "mapfile -C 'rm #' -c 1 L <<<x", "printf -v 'a[$(rm x)]' y", "test -v 'a[$(rm x)]'",
    "[[ 'a[$(rm x)]' -eq 1 ]]", "let 'a[$(rm x)]=1'", "declare -i 'a=b[$(rm x)]'",
    "read 'a[$(rm x)]' <<<y", "((a[$(rm x)]))", "x='$(rm x)'; echo \"${x@P}\"", "PS4='$(rm x)'; set -x; :",
    "function g { rm x; }; g", "g() { rm x; } > y; g", "command_not_found_handle() { rm x; }; nosuch",
]  # fmt: skip
HARMLESS = [
    "true", "echo 'it is'", "echo \"it's\"", "echo a\\'b", 'echo "a\\"b"', "echo $((1+2))", "echo ${#PATH}",
    "echo a#b", "x='a;b'", "echo $'a\\'b'", "[[ a == a ]]", "echo a # it's $( \n", "echo >&2 b",
    "cat <<E\nit's \" ( \nE\n", "cat <<'E'\n`$( \" '\nE\n", "cat <<-E\n\tfoo)\n\tE\n", "echo '\\'",
    "case x in y) :;; esac", "case x in (y|z) :;; w) :;; esac", "cat <<A <<B\na'\nA\nb\"\nB\n", "echo rm x",
    "echo $(case a in a) echo b;; esac)", 'echo "$(echo ")")"', "echo `echo \\`echo b\\``", "cat <<\\E\n'\nE\n",
]  # fmt: skip
HARMLESS_BUT_NOT_UNDERSTOOD = [
    "echo ${x:-'a b'}", "echo \"${x:-a 'b}\"", "echo \"${x/a/'}\" '", "echo ${x//[\"']/}",
    "case x in *) :;; esac", "echo $(echo a # b')\n)",
]  # fmt: skip
SEPARATORS = ["; ", " && true; ", "\n", " & ", " | cat; ", " || :; "]
AROUND: Sequence[Callable[[str], str]] = [
    lambda it: f"true && {it}", lambda it: f"true | {it}", lambda it: f"{{ {it}\n}}", lambda it: f"( {it}\n)",
    lambda it: f"if {it}\nthen :; fi", lambda it: f"while {it}\ndo break; done", lambda it: f"! {it}",
    lambda it: f"for i in 1; do {it}\ndone", lambda it: f"case a in a) {it}\n;; esac",
    lambda it: f"f() {{ {it}\n}}; f", lambda it: f"echo $({it}\n)", lambda it: f'echo "$({it}\n)"',
    lambda it: f"cat <({it}\n)", lambda it: f"cat <<Z\n$({it}\n)\nZ\n", lambda it: f"time {{ {it}\n}}",
    lambda it: f'echo "${{x:-"$({it}\n)"}}"', lambda it: f"bash -c {shlex.quote(it)}",
    lambda it: f"eval {shlex.quote(it)}", lambda it: f"env sh -c {shlex.quote(it)}",
    lambda it: "echo `" + it.replace("\\", "\\\\").replace("`", "\\`").replace("$", "\\$") + "\n`",
    lambda it: f"echo $(( $({it}\necho 1) + 1 ))", lambda it: f"echo $(! case q in q) {it}\n;; esac)",
    lambda it: f"bash <<'Q'\n{it}\nQ\n", lambda it: f"coproc {{ {it}\n}}; wait",
]  # fmt: skip


@dataclass(frozen=True)
class Cage:
    """A throw-away folder in which ``rm`` only leaves a mark and nothing else is on the path."""

    folder: Path

    def build(self) -> None:
        programs = self.folder / "bin"
        programs.mkdir()
        (programs / "rm").write_text(f'#!{require("bash")}\n: > "$MARK"\n')
        (programs / "rm").chmod(0o755)
        for name in ("env", "cat", "xargs", "timeout", "nice", "true", "bash", "sh"):
            (programs / name).symlink_to(require(name))

    def runs_rm(self, command: str) -> bool:
        mark = self.folder / "mark"
        environment = {"PATH": str(self.folder / "bin"), "MARK": str(mark)}
        subprocess.run(
            [require("bash"), "--norc", "--noprofile", "-c", command],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        found = mark.exists()
        mark.unlink(missing_ok=True)
        return found


@pytest.fixture
def cage(tmp_path: Path) -> Cage:
    made = Cage(tmp_path)
    made.build()
    return made


def verdict_on(command: str) -> Verdict:
    rules = RuleSet.parse(deny=["Bash(rm:*)"])
    policy = PermissionPolicy(Path("/w"), rules, PermissionMode.YOLO, Path("/home/someone"))
    return policy.decide("Bash", [CommandAccess(command, Path("/w"))]).verdict


@pytest.mark.parametrize("command", RUNS_IT)
def test_every_known_way_to_run_it_is_denied_or_asked(command: str, cage: Cage) -> None:
    assert cage.runs_rm(command), "the test itself is wrong"
    assert verdict_on(command) is not Verdict.ALLOW


@pytest.mark.parametrize("seed", range(4))
def test_no_combination_of_shell_syntax_hides_a_denied_command(seed: int, cage: Cage) -> None:
    rng = random.Random(seed)
    for _ in range(500):
        command = rng.choice(RUNS_IT)
        for _ in range(rng.randrange(4)):
            if rng.random() < 0.4:
                before = rng.choice((*HARMLESS, *HARMLESS_BUT_NOT_UNDERSTOOD))
                command = before + rng.choice(SEPARATORS) + command
            else:
                command = rng.choice(AROUND)(command)
        if verdict_on(command) is Verdict.ALLOW:
            assert not cage.runs_rm(command), command


@pytest.mark.parametrize("command", HARMLESS)
def test_ordinary_syntax_runs_freely_beside_a_deny_rule(command: str, cage: Cage) -> None:
    assert not cage.runs_rm(command)
    assert verdict_on(command) is Verdict.ALLOW


@pytest.mark.parametrize("command", HARMLESS_BUT_NOT_UNDERSTOOD)
def test_what_is_not_understood_is_at_most_asked_about(command: str) -> None:
    assert verdict_on(command) is not Verdict.DENY


def test_the_cage_is_closed(cage: Cage) -> None:
    cage.runs_rm("echo $PATH > seen")
    assert (cage.folder / "seen").read_text().strip() == os.fspath(cage.folder / "bin")
