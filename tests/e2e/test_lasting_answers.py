"""Answers that last: for the turn, the session and always (D40)."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.live_midturn import LiveMidturn, Start, live_midturn
from tests.support.messages_script import Calls, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import DEADLINE, midturn_environment
from tests.support.pty_harness import PtySession

ARMED = "y once"
RULE = "Bash(git log:*)"


def log(number: int) -> Calls:
    return Calls("Bash", {"command": f"git log -{number}"})


def run(command: str) -> Calls:
    return Calls("Bash", {"command": command})


def answer(live: LiveMidturn, key: str) -> str:
    """Answer the question on screen; returns the screen that it was on."""
    shown = live.see(ARMED).text
    live.send(key)
    return shown


def config_of(home: Path) -> Path:
    return home / ".config" / "midturn" / "config.toml"


def test_this_turn_holds_for_its_subagents_and_ends_with_it(tmp_path: Path) -> None:
    task = Calls("Task", {"description": "look", "prompt": "Look.", "subagent_type": "general"})
    with (
        MessagesServer(
            Reply(log(1)),
            Reply(task),
            Reply(log(2)),
            Reply(Says("The subagent has looked.")),
            Reply(Says("Turn one is over.")),
            Reply(log(3)),
            Reply(Says("Turn two is over.")),
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        assert f"allow {RULE}" in answer(live, "t")
        live.see("Turn one is over")
        live.see_anywhere(f"allowed this turn: {re.escape(RULE)}")
        live.see_idle()
        live.enter("again")
        answer(live, "n")
        live.see("Turn two is over")
        contents = [str(server.requests[at].results[0]["content"]) for at in (1, 3, 6)]
    assert ["declined" in content for content in contents] == [False, False, True]


def test_always_is_stored_in_the_users_file_holds_at_once_and_in_the_next_session(
    tmp_path: Path, home: Path
) -> None:
    start = Start(config='# mine\n[permissions]\ndeny = ["Bash(rm:*)"] # never\n')
    with (
        MessagesServer(Reply(log(1)), Reply(log(2)), Reply(Says("Looked."))) as server,
        live_midturn(server, tmp_path, start) as live,
    ):
        live.enter("go")
        assert f"t, s, a allow {RULE}" in answer(live, "a")
        live.see("Looked")
        live.see_anywhere("Always allowed:")
        live.see_anywhere(f"always allowed: {re.escape(RULE)}")
        shown = live.see_idle()
        assert str(config_of(home)) in "".join(shown.text.split("\n"))
    text = config_of(home).read_text(encoding="utf-8")
    assert text.startswith("# mine\n") and "# never" in text
    assert tomllib.loads(text)["permissions"]["allow"] == [RULE]
    assert list(tmp_path.iterdir()) == []
    with (
        MessagesServer(Reply(log(3)), Reply(Says("Looked again."))) as server,
        live_midturn(server, tmp_path, Start(config=text)) as live,
    ):
        live.enter("go")
        live.see("Looked again")
        assert ARMED.encode() not in live.log.data


@pytest.mark.parametrize("trouble", ["broken", "project"])
def test_a_rule_that_cannot_be_stored_is_told_and_holds_for_the_session(
    tmp_path: Path, home: Path, trouble: str
) -> None:
    start = Start()
    project = tmp_path / "team.toml"
    if trouble == "project":
        project.write_text("[ui]\n", encoding="utf-8")
        start = Start(["--config", str(project)])
    with (
        MessagesServer(Reply(log(1)), Reply(log(2)), Reply(Says("Looked."))) as server,
        live_midturn(server, tmp_path, start) as live,
    ):
        if trouble == "broken":
            config_of(home).parent.mkdir(parents=True, exist_ok=True)
            config_of(home).write_text("[ui\n", encoding="utf-8")
        live.enter("go")
        answer(live, "a")
        live.see("Looked")
        live.see_anywhere("allowed for this session, but was")
        live.see_idle()
    if trouble == "project":
        assert project.read_text(encoding="utf-8") == "[ui]\n"
        assert not config_of(home).exists()
    else:
        assert config_of(home).read_text(encoding="utf-8") == "[ui\n"


def test_always_is_not_offered_for_what_is_dangerous(tmp_path: Path, home: Path) -> None:
    calls = [
        Calls("Bash", {"command": "rm -r build"}),
        Calls("Write", {"file_path": "new.txt", "content": "x\n"}),
    ]
    with (
        MessagesServer(Reply(*calls), Reply(Says("Fine."))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        for number, call in enumerate(calls, start=1):
            live.see(rf"^\? {call.name}.*\({number} of 2")
            shown = live.see(ARMED).text
            assert "t, s allow" in shown and "a always" not in shown
            live.send("a")
            live.see("wait…")
            answer(live, "n")
        live.see(r"Fine\.")
    assert not config_of(home).exists()


def test_a_chain_of_commands_is_allowed_for_the_session_to_the_letter(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    chain = "(cd x && touch made && echo it ran)"
    with (
        MessagesServer(
            *(Reply(run(command)) for command in (chain, chain, f"{chain}; touch other", chain)),
            Reply(Says("Done.")),
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        assert f"t, s allow Bash(exactly: {chain})" in answer(live, "s")
        live.see(re.escape(f"t, s allow Bash(exactly: {chain}; touch other)"))
        answer(live, "n")
        live.see(r"Done\.")
        results = [server.requests[at].results[0] for at in (1, 2, 3, 4)]
    assert ["it ran" in str(result["content"]) for result in results] == [True, True, False, True]
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"]


def test_a_chain_of_commands_is_stored_to_the_letter_and_read_back(
    tmp_path: Path, home: Path
) -> None:
    chain = "ls . | grep -c 'a\\|b' && pwd"
    rule = "Bash(exactly: ls . | grep -c 'a\\\\|b' && pwd)"
    (tmp_path / "a").touch()
    with (
        MessagesServer(Reply(run(chain)), Reply(Says("Looked."))) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("go")
        assert f"t, s, a allow {rule}" in answer(live, "a")
        live.see("Looked")
        live.see_idle()
    text = config_of(home).read_text(encoding="utf-8")
    assert tomllib.loads(text)["permissions"]["allow"] == [rule]
    with (
        MessagesServer(
            Reply(run(chain)), Reply(run(f"{chain} ")), Reply(Says("Looked again."))
        ) as server,
        live_midturn(server, tmp_path, Start(config=text)) as live,
    ):
        live.enter("go")
        shown = answer(live, "n")
        assert "allow Bash" not in shown
        live.see("Looked again")
        first, second = (server.requests[at].results[0] for at in (1, 2))
    assert str(tmp_path) in str(first["content"]) and "declined" in str(second["content"])


def test_plain_mode_takes_the_same_answers_and_no_other(tmp_path: Path, home: Path) -> None:
    with (
        MessagesServer(
            Reply(Calls("Bash", {"command": "touch a > .git/b"})),
            Reply(log(1)),
            Reply(log(2)),
            Reply(Says("Looked.")),
        ) as server,
        PtySession(
            [sys.executable, "-m", "midturn_cli.main", "--plain"],
            env=midturn_environment(**server.environment()),
            cwd=str(tmp_path),
        ) as live,
    ):
        live.send("go\n")
        for line in ("", "s", "yes", "a"):
            live.wait(r"y once, n no, r no with a reason\r\n$", timeout=DEADLINE)
            live.send(f"{line}\n")
            live.wait(r"not an answer; answer y once, n no", timeout=DEADLINE)
        live.send("n\n")
        live.wait(rf"t, s, a allow {re.escape(RULE)}\r\ny once, t this turn", timeout=DEADLINE)
        live.send("a\n")
        live.wait(r"Looked\.", timeout=DEADLINE)
        live.send("\x04")
        assert live.wait_exit(DEADLINE) == 0
    assert tomllib.loads(config_of(home).read_text())["permissions"]["allow"] == [RULE]
