"""Faults with shell commands that people have reported about programs of this kind."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.live_midturn import GLYPH, Start, live_midturn
from tests.support.messages_script import Calls, Latch, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment, run_midturn
from tests.support.processes import until
from tests.support.services import require

pytestmark = pytest.mark.slow

YOLO = ("--permission-mode", "yolo")
KEY = "test-key-that-nobody-may-see"


def bash(command: str, **more: int) -> Calls:
    return Calls("Bash", {"command": command, **more})


def runs(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def results(server: MessagesServer, number: int) -> list[str]:
    """Of request ``number``, from 1; the service must have had nothing to refuse until then."""
    found = server.wait_for_requests(number)[number - 1].results
    assert server.violations == []
    return [str(result["content"]) for result in found]


@pytest.mark.parametrize(
    "command",
    [
        "head -c1 </dev/tty | xxd",
        "ssh-keygen -y -f locked </dev/tty",
        "ssh-keygen -y -f locked",
        "stty -echo; read -rs x; echo got:$x",
    ],
)
def test_no_command_takes_a_key_or_draws_on_the_screen(tmp_path: Path, command: str) -> None:
    """MB-0705, MB-0706: a password is asked in vain, and what is typed stays in the draft."""
    make = [require("ssh-keygen"), "-q", "-t", "ed25519", "-N", "secret", "-f", "locked"]
    subprocess.run(make, cwd=tmp_path, check=True)
    with (
        MessagesServer(
            Reply(bash(f"{command}; sleep 1; echo over")), Reply(Says("Fine."))
        ) as server,
        live_midturn(server, tmp_path, Start(YOLO)) as live,
    ):
        live.enter("go")
        live.see("Bash")
        live.type("hello")
        live.see(r"Fine\.")
        shown = live.see_idle()
        [said] = results(server, 2)
    assert [row for row in shown.screen if row.startswith(GLYPH)] == [f"{GLYPH} hello"]
    assert said.rstrip().endswith("over")


def test_bytes_that_are_no_text_hurt_no_later_turn(tmp_path: Path) -> None:
    """MB-0708."""
    require("iconv")
    commands = [r"printf '\xf0\xff ok\n'", "printf 안녕 | iconv -t cp949", "head -c 2000 /bin/ls"]
    with (
        MessagesServer(
            Reply(*map(bash, commands)), Reply(Says("Odd.")), Reply(Says("And on."))
        ) as server,
        live_midturn(server, tmp_path, Start(YOLO)) as live,
    ):
        live.enter("go")
        live.see(r"Odd\.")
        live.enter("again")
        live.see(r"And on\.")
        first, second, third = results(server, 2)
    assert "\ufffd ok" in first and "\ufffd" in second and "ELF" in third


@pytest.mark.parametrize("flags", [("--allow", "Bash(rm:*)", "--allow", "Bash"), YOLO])
def test_removing_home_is_asked_though_rm_is_allowed(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """MB-0710: the home of this test, with nothing in it that anybody needs."""
    home = Path(os.environ["HOME"])
    (home / "precious").touch()
    words = ('"$HOME"', "~", "~/*", str(home))
    removals = [bash(f"rm -rf {word}") for word in words]
    with MessagesServer(Reply(*removals), Reply(Says("done"))) as server:
        environ = midturn_environment(**server.environment())
        run_midturn("-p", "go", *flags, environ=environ, cwd=tmp_path)
        said = results(server, 2)
    assert ["Permission is needed" in text for text in said] == [True] * len(words)
    assert (home / "precious").exists()


def test_an_interrupt_of_the_answer_leaves_background_jobs_alone(tmp_path: Path) -> None:
    """MB-0712, MB-0701: the server that was started goes on, and ends with Midturn."""
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    serve = f"{sys.executable} -m http.server {port} --bind 127.0.0.1"
    answers = f"until (: </dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.1; done"
    begun = f"{serve} >/dev/null 2>&1 & echo $! > pid; {answers}; echo started"
    streaming = Latch()
    with MessagesServer(
        Reply(bash(begun), bash(f"{serve[:-9]}127.0.0.2 & echo second")),
        Reply(Says("A long answer ", streaming)),
        Reply(bash(f"{answers}; echo still there")),
        Reply(Says("Good.")),
    ) as server:
        with live_midturn(server, tmp_path, Start(YOLO)) as live:
            live.enter("go")
            live.see("A long answer")
            first, second = results(server, 2)
            live.key("ctrl-c")
            live.see("Interrupted after")
            live.enter("look")
            live.see(r"Good\.")
            [third] = results(server, 4)
            job = int((tmp_path / "pid").read_text())
            assert runs(job)
        asyncio.run(until(lambda: not runs(job), "the server has ended with Midturn"))
    assert "started" in first and f"Still running in the background: process {job}" in first
    assert "second" in second and "Still running" in second
    assert "still there" in third


@pytest.mark.parametrize("flood", ["yes", "cat /dev/zero", "seq 1 100000000"])
def test_a_flood_of_output_costs_neither_memory_nor_keys(tmp_path: Path, flood: str) -> None:
    """MB-0713."""
    with (
        MessagesServer(Reply(bash(f"{flood}; echo", timeout=3)), Reply(Says("Enough."))) as server,
        live_midturn(server, tmp_path, Start(YOLO)) as live,
    ):
        before = live.memory_mb()
        live.enter("go")
        live.see("Bash")
        latency = live.echo(10, interval=0.05)
        live.see(r"Enough\.")
        grown = live.memory_mb() - before
        [said] = results(server, 2)
    assert latency.missed == 0
    assert grown < 100
    assert len(said) < 40_000 and "left out ..." in said


def test_the_key_is_in_nothing_that_a_command_can_look_at(tmp_path: Path) -> None:
    """MB-0714: neither in its variables nor in those of its parent; so it is kept nowhere."""
    commands = [
        "env | sort",
        r"tr '\0' '\n' </proc/$PPID/environ",
        r"cat /proc/$PPID/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep -a KEY",
    ]
    with MessagesServer(Reply(*map(bash, commands)), Reply(Says("done"))) as server:
        environ = midturn_environment(**{**server.environment(), "ANTHROPIC_API_KEY": KEY})
        done = run_midturn("-p", "go", *YOLO, environ=environ, cwd=tmp_path)
        said = results(server, 2)
    assert "PATH=" in said[0] and "PATH=" in said[1]
    kept = b"".join(p.read_bytes() for p in Path(os.environ["HOME"]).rglob("*") if p.is_file())
    assert KEY not in str(said)
    assert KEY.encode() not in done.stdout + done.stderr + kept
    assert b"PATH=" in kept
