"""One turn from the first key to the answer, through the real command."""

from __future__ import annotations

from pathlib import Path

from tests.support.live_midturn import live_midturn
from tests.support.messages_script import Calls, Reply, Says
from tests.support.messages_server import MessagesServer


def test_a_prompt_is_answered_after_the_tools_it_took(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the hidden word is plum\n", encoding="utf-8")
    with (
        MessagesServer(
            Reply(Says("I look into it."), Calls("Read", {"file_path": "a.txt"})),
            Reply(Says("The word is plum.")),
        ) as server,
        live_midturn(server, tmp_path) as live,
    ):
        live.enter("what is the word?")
        live.see("The word is plum")
        first, second = server.wait_for_requests(2)
    assert first.texts[-1] == "what is the word?"
    assert "plum" in str(second.results[0]["content"])
