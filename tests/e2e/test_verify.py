"""``midturn verify``: the real command runs batches, and the real command checks what it kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from midturn_core import paths
from midturn_core.model.messages import JsonObject
from midturn_core.session.records import Record, encode, read_log
from tests.support.messages_script import Calls, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment, run_midturn


def said(*arguments: str, cwd: Path) -> tuple[int, str, str]:
    """Exit code, output and complaints of the command."""
    done = run_midturn(*arguments, environ=midturn_environment(), cwd=cwd)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def session_with_a_batch(workspace: Path, home: Path) -> Path:
    """Run one parallel batch of three; returns the log of its session."""
    for name in "abc":
        (workspace / f"{name}.txt").write_text(f"plum {name}\n", encoding="utf-8")
    reads = [Calls("Read", {"file_path": f"{name}.txt"}) for name in "abc"]
    with MessagesServer(Reply(*reads), Reply(Says("Plums."))) as server:
        done = run_midturn(
            "-p",
            "--parallel",
            "read them",
            environ=midturn_environment(**server.environment()),
            cwd=workspace,
        )
        assert done.returncode == 0
    folder = paths.sessions_folder({"XDG_STATE_HOME": str(home / ".local" / "state")})
    (log,) = folder.glob("*.jsonl")
    return log


def falsify(log: Path) -> None:
    """Put another content into a result, with a right checksum."""

    def change(record: Record) -> Record:
        if record.type != "results":
            return record
        data: JsonObject = json.loads(json.dumps(record.data).replace("plum b", "pear b"))
        return replace(record, data=data)

    records = read_log(log.read_bytes()).records
    log.write_bytes(b"".join(encode(change(record)) for record in records))


def test_a_session_with_a_parallel_batch_is_all_right(tmp_path: Path, home: Path) -> None:
    log = session_with_a_batch(tmp_path, home)
    code, out, err = said("verify", "--last", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert out == (
        f"Session {log.stem}: 1 batch, 3 calls; results, order, hashes, times and limits: "
        "all right.\n"
    )
    assert said("verify", log.stem[:-2], cwd=home) == (0, out, "")
    (batch,) = [r for r in read_log(log.read_bytes()).records if r.type == "batch"]
    assert batch.data["segments"] == [[0, 3]]


def test_a_falsified_result_is_named_with_its_batch_and_call(tmp_path: Path, home: Path) -> None:
    log = session_with_a_batch(tmp_path, home)
    falsify(log)
    code, out, err = said("verify", "--last", cwd=tmp_path)
    assert (code, err) == (1, "")
    first, problem = out.splitlines()
    assert first.endswith("limits: 1 problem:")
    assert problem.startswith("  Batch batch-")
    assert problem.endswith(
        ": call 2 (Read): the result in the history is not the one that the call gave "
        "(its SHA-256 differs)."
    )


def test_an_edited_line_and_a_missing_one_are_told(tmp_path: Path, home: Path) -> None:
    log = session_with_a_batch(tmp_path, home)
    lines = log.read_bytes().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if b'"type":"batch"' in line)
    edited = [line.replace(b"Plums.", b"Pears.") for n, line in enumerate(lines) if n != at]
    log.write_bytes(b"".join(edited))
    code, out, _ = said("verify", "--last", cwd=tmp_path)
    assert code == 1
    assert "The file is damaged: 1 unreadable line(s) skipped." in out
    assert f"Records are missing: {at + 1}" in out


def test_what_cannot_be_read_is_said_with_exit_code_2(tmp_path: Path, home: Path) -> None:
    assert said("verify", "--last", cwd=tmp_path)[0] == 2
    log = session_with_a_batch(tmp_path, home)
    log.write_bytes(b"\0\0\0\n")
    for arguments, complaint in (
        (("verify",), "give one of both: midturn verify SESSION, or midturn verify --last"),
        (("verify", "x", "--last"), "give one of both"),
        (("verify", "nowhere"), "no session with an id that begins with 'nowhere'"),
        (("verify", log.stem), f"cannot read the session {log}: there is no record in it"),
        (("verify", "--last"), "there is no session of"),
        (("verify", "a", "b"), "unexpected extra argument"),
    ):
        code, out, err = said(*arguments, cwd=tmp_path)
        assert (code, out) == (2, ""), arguments
        assert complaint in err, arguments
        assert "Traceback" not in err


def test_the_batches_of_subagents_are_in_the_ledger_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("plum\n", encoding="utf-8")
    task = {"description": "find", "prompt": "Which?", "subagent_type": "explore"}
    with MessagesServer(
        Reply(Calls("Task", task)),
        Reply(Calls("Read", {"file_path": "a.txt"})),
        Reply(Says("a.txt")),
        Reply(Says("Found.")),
    ) as server:
        environ = midturn_environment(**server.environment())
        assert run_midturn("-p", "look", environ=environ, cwd=tmp_path).returncode == 0
    code, out, _ = said("verify", "--last", cwd=tmp_path)
    assert code == 0
    first, second = out.splitlines()
    assert ": 1 batch, 1 call; " in first
    assert second.startswith("  1 batch of subagents: only times and limits were checked")


def test_a_session_of_the_demo_is_found_too(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text("plum\n", encoding="utf-8")
    done = run_midturn(
        "demo",
        "-p",
        "--parallel",
        "read and search together",
        environ=midturn_environment(),
        cwd=tmp_path,
    )
    assert done.returncode == 0
    code, out, err = said("verify", "--last", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "1 batch, " in out and out.endswith("all right.\n")
