"""Streams that are faster than the terminal, and work that wants the processors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.live_midturn import Start, live_midturn
from tests.support.messages_script import Calls, Reply, Says
from tests.support.messages_server import MessagesServer

SLOW_TERMINAL = 15_000
"""Bytes per second, as over a bad connection."""
GREPS = 8
TREE_FILES = 100
FILE_BYTES = 500_000
NOT_THERE = r"(\w+\s+)+\d{7}"


@pytest.mark.slow
def test_a_slow_terminal_shows_every_row_and_misses_no_key(tmp_path: Path) -> None:
    rows = [f"L{number:05} row" for number in range(400)]
    tokens = [token for row in rows for token in (row[:6], row[6:], "\n\n")]
    with (
        MessagesServer(Reply(Says(*tokens, "All of it."), pace=1 / 500)) as server,
        live_midturn(server, tmp_path, Start(read_rate=SLOW_TERMINAL)) as live,
    ):
        live.enter("go")
        live.see("L0001")
        latency = live.echo(20, interval=0.05)
        live.see_anywhere(r"All of it\.")
        shown = live.see_idle()
    assert latency.missed == 0
    assert re.findall(r"^L\d{5} row", shown.text, re.M) == rows


@pytest.mark.slow
def test_no_key_is_missed_while_eight_greps_search_a_large_tree(tmp_path: Path) -> None:
    grow_tree(tmp_path)
    greps = [Calls("Grep", {"pattern": NOT_THERE, "path": "."}) for _ in range(GREPS)]
    with (
        MessagesServer(
            Reply(Says("word " * 50), *greps, pace=0.01),
            Reply(Says("word " * 50), *greps, pace=0.01),
            Reply(Says("All searched.")),
        ) as server,
        live_midturn(
            server, tmp_path, Start(["--parallel", "--max-concurrency", str(GREPS)])
        ) as live,
    ):
        live.enter("search")
        live.see("Grep")
        latency = live.echo(60)
        live.see_anywhere(r"All searched\.")
    assert latency.missed == 0


def grow_tree(folder: Path) -> None:
    line = "plain words of a file that is searched from its beginning to its end 12345\n"
    text = line * (FILE_BYTES // len(line))
    for number in range(TREE_FILES):
        (folder / f"part-{number:03}.txt").write_text(text, encoding="utf-8")
