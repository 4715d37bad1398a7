"""Faults with files and searches that people have reported about programs of this kind."""

from __future__ import annotations

import asyncio
import os
import resource
from operator import itemgetter
from pathlib import Path

import pytest

from midturn_core.interrupt import CancelReason, SignalSource
from midturn_tools._ripgrep import find_ripgrep
from midturn_tools._search import FindRipgrep
from midturn_tools.glob import GlobTool
from tests.support.live_midturn import Start, live_midturn, write_config
from tests.support.messages_script import Calls, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment, run_midturn
from tests.support.own_search_midturn import no_ripgrep
from tests.support.tool_context import make_tool_context

pytestmark = pytest.mark.slow

YOLO = ("--permission-mode", "yolo")


def edit(name: str, old: str, new: str) -> Calls:
    return Calls("Edit", {"file_path": name, "old_string": old, "new_string": new})


def test_a_configured_encoding_is_read_and_kept_by_every_tool(tmp_path: Path) -> None:
    """MB-0406: the whole way from the configuration to the bytes on the disk."""
    (tmp_path / "k.txt").write_bytes("이름=홍길동\n값=1\n".encode("cp949"))
    calls = (
        Calls("Read", {"file_path": "k.txt"}),
        edit("k.txt", "값=1", "값=2"),
        edit("k.txt", "홍길동", "김철수"),
    )
    write = Calls("Write", {"file_path": "k.txt", "content": "모두 새로\n"})
    write_config('[files]\nencodings = ["cp949", "latin-1"]\n')
    with MessagesServer(
        Reply(*calls), Reply(Says("done")), Reply(write), Reply(Says("done"))
    ) as server:
        environ = midturn_environment(**server.environment())
        run_midturn("-p", "go", *YOLO, environ=environ, cwd=tmp_path)
        read, *_ = (str(result["content"]) for result in server.wait_for_requests(2)[1].results)
        assert "이름=홍길동" in read and "encoded as cp949" in read
        assert (tmp_path / "k.txt").read_bytes().decode("cp949") == "이름=김철수\n값=2\n"
        run_midturn("-p", "go", "-c", *YOLO, environ=environ, cwd=tmp_path)
    assert (tmp_path / "k.txt").read_bytes().decode("cp949") == "모두 새로\n"


def test_a_line_of_a_megabyte_is_a_few_rows_on_the_screen(tmp_path: Path) -> None:
    """MB-0511: whichever tool shows it, and keys are not kept waiting."""
    line = "x" * 500_000 + "needle" + "x" * 500_000
    (tmp_path / "long.txt").write_text(f"{line}\n")
    calls = (
        Calls("Read", {"file_path": "long.txt"}),
        Calls("Grep", {"pattern": "needle", "path": "long.txt"}),
        Calls("Bash", {"command": "cat long.txt"}),
        edit("long.txt", "needle", "thread"),
    )
    with (
        MessagesServer(*map(Reply, calls), Reply(Says("All of it."))) as server,
        live_midturn(server, tmp_path, Start(YOLO, cols=80)) as live,
    ):
        live.enter("go")
        latency = live.echo(10, interval=0.05)
        live.see_anywhere(r"All of it\.")
        shown = live.see_idle()
        results = [request.results[-1] for request in server.requests[1:]]
    assert latency.missed == 0
    assert [bool(result.get("is_error")) for result in results] == [False] * len(calls)
    assert all(len(str(result["content"])) < 40_000 for result in results)
    text = "\n".join(shown.lines)
    tools = text[text.index("go") : text.index("All of it.")]
    assert tools.count("\n") < 12 * len(calls)


def spent() -> float:
    """Seconds of processor time of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.mark.parametrize("find", [find_ripgrep, no_ripgrep])
async def test_a_search_for_names_does_not_enter_what_is_ignored(
    tmp_path: Path, find: FindRipgrep
) -> None:
    """MB-0506: of 200,000 ignored files none is looked at, and one that looks can be stopped."""
    (tmp_path / ".gitignore").write_text("node_modules/\n")
    (tmp_path / "a.py").touch()
    source = SignalSource()
    context = make_tool_context(tmp_path, signal=source)
    glob = GlobTool(find)

    async def timed() -> tuple[str, float]:
        begun = spent()
        result = await glob.run({"pattern": "**/*.py"}, context)
        return result.output or str(result.error), spent() - begun

    without = min([await timed() for _ in range(3)], key=itemgetter(1))
    for folder in range(200):
        os.makedirs(path := f"{tmp_path}/node_modules/p{folder}")
        for number in range(1_000):
            os.close(os.open(f"{path}/{number}.py", os.O_CREAT))
    beside = min([await timed() for _ in range(3)], key=itemgetter(1))
    assert beside[0] == without[0] and without[0].startswith("1 file:\na.py\n")
    assert beside[1] < 4 * max(without[1], 0.05)
    asyncio.get_running_loop().call_later(0.05, source.trip, CancelReason.INTERRUPT)
    assert (await glob.run({"pattern": "**/*.py", "ignored": True}, context)).stopped
