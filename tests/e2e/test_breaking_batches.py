"""Batches at their worst: as large and as wrong as a model can write them, and cut by the terminal."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import pytest

from midturn_core.model.messages import JsonObject
from tests.support.live_midturn import Start, live_midturn, write_config
from tests.support.messages_connection import RecordedRequest
from tests.support.messages_script import Answer, Calls, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment, run_midturn
from tests.support.processes import until, until_session_is_empty

pytestmark = pytest.mark.slow

SEGMENTS = '[parallel]\nenabled = true\nmixed = "segments"\nstart = "streaming"\n'


def read(number: int, id: str = "") -> Calls:
    return Calls("Read", {"file_path": f"{number}.txt"}, id=id)


def plums(workspace: Path) -> None:
    for number in range(60):
        (workspace / f"{number}.txt").write_text(f"plum {number}\n", encoding="utf-8")


def verified(workspace: Path) -> str:
    done = run_midturn("verify", "--last", environ=midturn_environment(), cwd=workspace)
    assert done.returncode == 0, done.stdout
    return done.stdout.decode()


@pytest.mark.parametrize(
    ("config", "count"),
    [("", 51), ("[parallel]\nenabled = true\n", 50), (SEGMENTS, 51)],
    ids=["off", "on", "streaming"],
)
def test_a_large_batch_full_of_mistakes_is_answered_call_by_call(
    tmp_path: Path, config: str, count: int
) -> None:
    """An unknown tool, input that is no JSON, an id used twice, and one call too many."""
    plums(tmp_path)
    calls: dict[int, Calls] = {number: read(number) for number in range(count)}
    calls[7] = Calls("Raed", {"file_path": "7.txt"})
    calls[9] = Calls("Read", None, '{"file_path": "9.t')
    calls[20] = read(20, id="twice")
    calls[30] = read(30, id="twice")
    calls[40] = Calls("Read", {"file": 4})
    with MessagesServer(Reply(*calls.values()), Reply(Says("done"))) as server:
        write_config(config)
        environ = midturn_environment(**server.environment())
        done = run_midturn("-p", "go", environ=environ, cwd=tmp_path)
        assert done.stdout.decode().strip() == "done", done.stderr
        assert server.violations == []
        results = server.requests[1].results
    wrong = {7, 9, 40, *range(50, count)}
    assert len(results) == count
    for number, result in enumerate(results):
        assert bool(result.get("is_error")) is (number in wrong), result
        if number not in wrong:
            assert f"plum {number}" in str(result["content"])
    assert "at most 50 calls" in str(results[-1]["content"]) or count == 50
    assert "all right" in verified(tmp_path)


def test_ten_subagents_of_ten_calls_each_share_two_places(tmp_path: Path) -> None:
    plums(tmp_path)

    def answer(request: RecordedRequest) -> Answer:
        tools = json.dumps(request.body["tools"])
        if '"name": "Task"' not in tools:
            return (
                Reply(Says("plum"))
                if request.results
                else Reply(*(read(number) for number in range(10)))
            )
        if request.results:
            return Reply(Says("all ten"))
        task: JsonObject = {"description": "d", "prompt": "p", "subagent_type": "explore"}
        return Reply(*[Calls("Task", task)] * 10)

    with MessagesServer() as server:
        server.always(answer)
        write_config(
            "[parallel]\nenabled = true\nmax_concurrency = 2\n[subagents]\nparallel = true\n"
        )
        environ = midturn_environment(**server.environment())
        done = run_midturn("-p", "go", environ=environ, cwd=tmp_path)
        assert done.stdout.decode().strip() == "all ten", done.stderr
        assert server.violations == []
        assert [result["content"] for result in server.requests[-1].results] == ["plum"] * 10
        assert len(server.requests) == 22
    assert "10 batches of subagents" in verified(tmp_path)


def test_nothing_is_left_running_when_the_terminal_is_closed_in_the_middle_of_a_batch(
    tmp_path: Path,
) -> None:
    """A child that ignores the polite signals, in the batch of a subagent, beside others."""
    script = "trap '' TERM HUP INT; echo $PPID > session; echo begun; sleep 600"
    (tmp_path / "wait.sh").write_text(script + "\n", encoding="utf-8")
    plums(tmp_path)
    task: JsonObject = {"description": "d", "prompt": "p", "subagent_type": "general"}
    with (
        MessagesServer(
            Reply(read(1), Calls("Task", task), read(2)),
            Reply(read(3), Calls("Bash", {"command": "sh wait.sh"})),
        ) as server,
        live_midturn(
            server, tmp_path, Start(["--allow", "Bash(sh wait.sh)"], config=SEGMENTS)
        ) as live,
    ):
        live.enter("go")
        file = tmp_path / "session"
        asyncio.run(until(lambda: file.exists() and file.read_text() != "", "the child runs"))
        live.signal(signal.SIGHUP)
        assert live.wait_exit(30) == 129
        asyncio.run(until_session_is_empty(int(file.read_text())))
