"""Faults with several calls of one response that people have reported about such programs."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from midturn_core.conversation import Conversation
from midturn_core.model.messages import ToolUse
from midturn_core.paths import sessions_folder
from midturn_core.session.store import SessionStore
from tests.support.fifo_latch import FifoLatch
from tests.support.gated_site import GatedSite, gated_site
from tests.support.live_midturn import Start, live_midturn, write_config
from tests.support.messages_script import Calls, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment, run_midturn
from tests.support.request_texts import kinds_in

pytestmark = pytest.mark.slow

ARMED = r"^y once"
CONTINUE = Start(arguments=("-c",))
EITHER_WAY = pytest.mark.parametrize("switch", ["--parallel", "--no-parallel"])


def read(name: str) -> Calls:
    return Calls("Read", {"file_path": name})


def fetch(site: GatedSite, number: int) -> Calls:
    return Calls("WebFetch", {"url": site.url(number)})


def run_prompt(
    server: MessagesServer, workspace: Path, *arguments: str
) -> subprocess.CompletedProcess[bytes]:
    """``midturn -p``; the service must have had nothing to refuse."""
    environ = midturn_environment(**server.environment())
    done = run_midturn("-p", "go", *arguments, environ=environ, cwd=workspace)
    assert server.violations == []
    assert done.returncode == 0, done.stderr
    return done


def answers(server: MessagesServer, number: int) -> list[tuple[bool, str]]:
    """Of the results in request ``number``, from 1: whether each is an error, and its text."""
    return [
        (bool(result.get("is_error")), str(result["content"]))
        for result in server.wait_for_requests(number)[number - 1].results
    ]


def allow_site(site: GatedSite, more: str = "") -> None:
    write_config(f'[web]\nallow_hosts = ["{site.host}"]\n{more}')


@EITHER_WAY
def test_only_the_calls_that_fail_are_errors(tmp_path: Path, switch: str) -> None:
    """MB-0201."""
    (tmp_path / "a.txt").write_text("x marks it\n", encoding="utf-8")
    with (
        gated_site(0) as site,
        MessagesServer(
            Reply(
                read("a.txt"), read("none.txt"), Calls("Grep", {"pattern": "marks"}), fetch(site, 7)
            ),
            Reply(Says("done")),
        ) as server,
    ):
        allow_site(site)
        run_prompt(server, tmp_path, switch, "--allow", "WebFetch(domain:127.0.0.1)")
        found = answers(server, 2)
    assert [error for error, _ in found] == [False, True, False, True]
    expected = ("x marks it", "File not found", "a.txt", "404")
    assert all(words in text for words, (_, text) in zip(expected, found, strict=True))


@EITHER_WAY
def test_a_search_without_a_match_sinks_no_other_call(tmp_path: Path, switch: str) -> None:
    """MB-0202."""
    names = [f"{number}.txt" for number in range(26)]
    for name in names:
        (tmp_path / name).write_text(f"this is {name}\n", encoding="utf-8")
    search = Calls("Grep", {"pattern": "nowhere-at-all"})
    calls = [*map(read, names[:2]), search, *map(read, names[2:])]
    with MessagesServer(Reply(*calls), Reply(Says("done"))) as server:
        write_config("[parallel]\nfail_fast = true\n")
        run_prompt(server, tmp_path, switch)
        found = answers(server, 2)
    assert [error for error, _ in found] == [False] * 27
    texts = [text for _, text in found]
    assert "No matches" in texts.pop(2)
    assert all(f"this is {name}" in text for name, text in zip(names, texts, strict=True))


def test_after_an_interrupt_every_call_has_its_result_before_the_next_words(tmp_path: Path) -> None:
    """MB-0203."""
    gate = FifoLatch(tmp_path)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("plum\n", encoding="utf-8")
    with (
        MessagesServer(
            Reply(Calls("Bash", {"command": gate.command}), read("a.txt"), read("b.txt")),
            Reply(Says("on we go")),
        ) as server,
        live_midturn(server, tmp_path, Start(["--allow", "Bash(cat:*)"])) as live,
    ):
        live.enter("do all three")
        gate.reached()
        live.key("ctrl-c")
        live.see("Interrupted after")
        live.enter("go on")
        live.see("on we go")
        assert server.violations == []
        assert kinds_in(server.requests[1])[:4] == ["tool_result"] * 3 + ["text"]
        (_, stopped), *skipped = answers(server, 2)
        assert "the user interrupted the turn" in stopped and stopped.startswith("stopped")
        assert [text for _, text in skipped] == ["skipped: the user interrupted the turn"] * 2


def test_a_session_that_ends_in_a_call_goes_on(tmp_path: Path) -> None:
    """MB-0204."""
    session = SessionStore(sessions_folder(os.environ)).create(tmp_path)
    conversation = Conversation(session.record_change)
    conversation.add_user_text("read it")
    conversation.add_assistant([ToolUse("toolu_1", "Read", {"file_path": "a.txt"})])
    session.close()
    with MessagesServer(Reply(Says("hello"))) as server:
        done = run_prompt(server, tmp_path, "-c")
        [(_, text)] = answers(server, 1)
    assert "stopped" in text
    assert done.stderr.decode().count("Resuming the session") == 1


def test_a_session_killed_in_the_middle_of_a_batch_goes_on_for_two_turns(tmp_path: Path) -> None:
    """MB-0205."""
    gate = FifoLatch(tmp_path)
    (tmp_path / "a.txt").write_text("plum\n", encoding="utf-8")
    with (
        MessagesServer(Reply(Calls("Bash", {"command": gate.command}), read("a.txt"))) as server,
        live_midturn(server, tmp_path, Start(["--allow", "Bash(cat:*)"])) as live,
    ):
        live.enter("run it")
        gate.reached()
        live.signal(signal.SIGKILL)
        live.wait_exit(30)
        gate.open()
    with (
        MessagesServer(Reply(Says("first answer")), Reply(Says("second answer"))) as server,
        live_midturn(server, tmp_path, CONTINUE) as live,
    ):
        for words in ("first", "second"):
            live.enter(f"{words} question")
            live.see(f"{words} answer")
        assert server.violations == []
        assert len(answers(server, 1)) == 2


@pytest.mark.slow
def test_no_compaction_parts_a_call_from_its_result(tmp_path: Path) -> None:
    """MB-0206."""
    (tmp_path / "a.txt").write_text("plum\n", encoding="utf-8")
    turn = (Reply(read("a.txt"), read("a.txt"), read("a.txt")), Reply(Says("it says plum")))
    lengths = (1, 2, 3, 5)
    script = [reply for length in lengths for reply in (*turn * length, Reply(Says("A summary.")))]
    with (
        MessagesServer(*script, *turn) as server,
        live_midturn(server, tmp_path, Start(["--parallel"])) as live,
    ):
        seen = 0
        for number, length in enumerate(lengths, start=1):
            for _ in range(length):
                seen += 1
                live.enter(f"turn {seen}")
                live.see_times("it says plum", seen)
                live.see_idle()
            live.enter("/compact")
            live.see_times("Compacted", number)
            live.see_idle()
        live.enter("the last one")
        live.see_times("it says plum", seen + 1)
        assert server.violations == []


@EITHER_WAY
def test_of_two_edits_of_one_file_in_a_response_none_is_lost(tmp_path: Path, switch: str) -> None:
    """MB-0207."""
    file = tmp_path / "n.txt"
    lines = [str(number) for number in range(1, 91)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def edit(old: str, new: str) -> Calls:
        return Calls("Edit", {"file_path": "n.txt", "old_string": old, "new_string": new})

    with MessagesServer(
        Reply(read("n.txt")),
        Reply(edit("20\n", "TWENTY\n"), edit("80\n", "EIGHTY\n")),
        Reply(Says("done")),
    ) as server:
        run_prompt(server, tmp_path, switch, "--permission-mode", "accept-edits")
        assert [error for error, _ in answers(server, 3)] == [False, False]
    lines[19], lines[79] = "TWENTY", "EIGHTY"
    assert file.read_text(encoding="utf-8").split() == lines


def test_a_page_that_never_comes_holds_back_no_other_result(tmp_path: Path) -> None:
    """MB-0605, MB-0208."""
    (tmp_path / "a.txt").write_text("plum\n", encoding="utf-8")
    with (
        gated_site(1) as silent,
        MessagesServer(
            Reply(fetch(silent, 0), read("a.txt"), Calls("Grep", {"pattern": "plum"})),
            Reply(Says("went on")),
        ) as server,
        live_midturn(
            server,
            tmp_path,
            Start(
                ["--parallel", "--allow", "WebFetch(domain:127.0.0.1)"],
                config=f'[web]\nallow_hosts = ["{silent.host}"]\n'
                "[parallel]\ntimeout_per_call = 3.0\n",
            ),
        ) as live,
    ):
        live.enter("look")
        silent.wait_for_arrivals(1)
        shown = live.see(r"✓ \[3/3\] Grep")
        assert "✓ [2/3] Read" in shown.text and len(server.requests) == 1
        live.see("went on")
        (late, why), *others = answers(server, 2)
        assert late and "Tool execution timeout" in why and "3 s" in why
        assert all(not error and "plum" in text for error, text in others)


def test_an_allow_rule_holds_for_every_call_of_every_batch(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """MB-0209. Without a terminal a question is a no, and the call an error."""
    outside = tmp_path_factory.mktemp("outside")
    folders = [outside / f"part-{number}" for number in range(8)]
    for folder in folders:
        folder.mkdir()
        (folder / "a.txt").write_text("plum\n", encoding="utf-8")
    batch = Reply(*(Calls("Grep", {"pattern": "plum", "path": str(path)}) for path in folders))
    with MessagesServer(*[batch] * 30, Reply(Says("done"))) as server:
        write_config(f'[permissions]\nallow = ["Grep(/{outside}/**)", "Read(/{outside}/**)"]\n')
        run_prompt(server, tmp_path, "--parallel")
        errors = [error for number in range(2, 32) for error, _ in answers(server, number)]
    assert errors == [False] * 240


@pytest.mark.parametrize(("key", "questions"), [("s", 1), ("y", 3)])
def test_an_answer_for_the_session_covers_what_waits_and_one_for_once_does_not(
    tmp_path: Path, key: str, questions: int
) -> None:
    """MB-0210."""
    with (
        gated_site(3) as site,
        MessagesServer(
            Reply(*(fetch(site, number) for number in range(3))), Reply(Says("all three"))
        ) as server,
        live_midturn(
            server,
            tmp_path,
            Start(["--parallel"], config=f'[web]\nallow_hosts = ["{site.host}"]\n'),
        ) as live,
    ):
        site.open_all()
        live.enter("fetch them")
        for number in range(1, questions + 1):
            live.see(rf"\({number} of 3")
            live.see(ARMED)
            live.send(key)
            live.see_not(rf"\({number} of 3")
        shown = live.see("all three")
        assert "Total: 3/3 succeeded" in shown.text


@pytest.mark.parametrize("key", ["", "ctrl-c"])
def test_a_batch_that_was_cut_leaves_nothing_to_the_calls_after_it(
    tmp_path: Path, key: str
) -> None:
    """MB-0211. Cut by a failing call, and by a person."""
    (tmp_path / "a.txt").write_text("plum\n", encoding="utf-8")
    with (
        gated_site(1) as site,
        MessagesServer(
            Reply(fetch(site, 0), *([] if key else [read("none.txt")]), read("a.txt")),
            *[Reply(read("a.txt"))] * 4,
            Reply(Says("all done")),
        ) as server,
        live_midturn(
            server,
            tmp_path,
            Start(
                ["--parallel", "--allow", "WebFetch(domain:127.0.0.1)"],
                config=f'[web]\nallow_hosts = ["{site.host}"]\n[parallel]\nfail_fast = true\n',
            ),
        ) as live,
    ):
        live.enter("begin")
        if key:
            site.wait_for_arrivals(1)
            live.key(key)
            live.see("Interrupted after")
            live.enter("go on")
        live.see("all done")
        assert server.violations == []
        assert answers(server, 2)[0][1].lower().startswith(("stopped", "skipped"))
        for number in range(3, 7):
            [(error, text)] = answers(server, number)
            assert not error and "plum" in text
