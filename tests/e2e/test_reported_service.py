"""Faults between a session and its service that people have reported about such programs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from midturn_core.conversation import Conversation
from midturn_core.model.messages import Outcome, TextBlock, ToolUse, ToolUseResult
from midturn_core.paths import sessions_folder
from midturn_core.session.store import SessionStore
from tests.support.live_midturn import GLYPH, Start, live_midturn
from tests.support.messages_connection import RecordedRequest, ServerOptions
from tests.support.messages_script import Answer, Calls, Failure, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment, run_midturn
from tests.support.request_texts import notes_in, times_said
from tests.support.web_server import make_certificate

pytestmark = pytest.mark.slow

CONTINUE = Start(arguments=("-c",))
TOO_LONG = "prompt is too long: 250000 tokens > 200000 maximum"


def long_session(workspace: Path, results: int, size: int) -> None:
    """A session whose history is mostly tool results of so many characters."""
    session = SessionStore(sessions_folder(os.environ)).create(workspace)
    conversation = Conversation(session.record_change)
    conversation.add_user_text("the first wish")
    for number in range(results):
        use = ToolUse(f"call-{number}", "Read", {"file_path": f"{number}.txt"})
        conversation.add_assistant([use])
        content = "word " * (size // 5)
        conversation.add_results([ToolUseResult(use.id, "Read", Outcome.SUCCEEDED, content)])
    conversation.add_assistant([TextBlock("the last answer")])
    session.close()


def size_of(request: RecordedRequest) -> int:
    return len(json.dumps(dict(request.body)))


def at_most(size: int, answer: str) -> Callable[[RecordedRequest], Answer]:
    """A service that takes no larger body."""

    def served(request: RecordedRequest) -> Answer:
        if size_of(request) > size:
            return Failure(400, "invalid_request_error", TOO_LONG)
        return Reply(Says(answer))

    return served


@pytest.mark.parametrize("size", [200_000, 40_000, 20_000])
def test_a_compaction_shrinks_its_own_request_until_it_fits(tmp_path: Path, size: int) -> None:
    """MB-0904."""
    long_session(tmp_path, results=60, size=20_000)
    with (
        MessagesServer() as server,
        live_midturn(server, tmp_path, CONTINUE) as live,
    ):
        server.always(at_most(size, "the summary of it"))
        live.see_anywhere("the last answer")
        live.enter("/compact")
        live.see_anywhere("Compacted")
        live.see_idle()
        assert len(server.requests) <= 5
        assert size_of(server.requests[-1]) <= size
        server.always(Reply(Says("It goes on.")))
        live.enter("go on")
        live.see(r"It goes on\.")
        assert times_said("the summary of it", server.requests[-1]) == 1


def test_a_compaction_that_never_fits_ends_with_a_way_out_and_keeps_the_history(
    tmp_path: Path,
) -> None:
    """MB-0904: after a few requests the prompt is back."""
    long_session(tmp_path, results=30, size=20_000)
    with (
        MessagesServer() as server,
        live_midturn(server, tmp_path, CONTINUE) as live,
    ):
        server.always(at_most(1_000, "never"))
        live.see_anywhere("the last answer")
        live.enter("/compact")
        live.see_anywhere("no longer fits into the model's context")
        live.see(rf"^{GLYPH} *$")
        assert len(server.requests) == 5
        server.always(Reply(Says("All there.")))
        live.enter("go on")
        live.see(r"All there\.")
        assert times_said("the first wish", server.requests[-1]) == 1


def test_a_context_that_is_full_from_the_beginning_ends_the_turn_after_one_compaction(
    tmp_path: Path,
) -> None:
    """MB-0905: system prompt and tools alone are too long, or the summary is as well."""
    with MessagesServer() as server, live_midturn(server, tmp_path) as live:
        server.always(at_most(1_000, "never"))
        for number in (1, 2):
            live.enter("hi")
            shown = live.see_times("Failed after", number)
            live.see(rf"^{GLYPH} *$")
            assert "/clear" in shown.text
            assert len(server.requests) == 6 * number

        def summary_alone(request: RecordedRequest) -> Answer:
            asked = "Write a summary" in request.texts[-1]
            return Reply(Says("short")) if asked else at_most(1_000, "never")(request)

        server.always(summary_alone)
        live.enter("hi")
        live.see_times("Failed after", 3)
        live.see(rf"^{GLYPH} *$")
        assert len(server.requests) == 12 + 3


WINDOW = 20_000
CHARACTERS_PER_TOKEN = 4


def window(numbers: bool) -> Callable[[RecordedRequest], Answer]:
    """A service that refuses what is too long together with its answer."""

    def served(request: RecordedRequest) -> Answer:
        asked = request.body["max_tokens"]
        assert isinstance(asked, int)
        tokens = size_of(request) // CHARACTERS_PER_TOKEN
        if tokens + asked > WINDOW:
            said = f": {tokens} + {asked} > {WINDOW}, decrease them" if numbers else ""
            words = f"input length and `max_tokens` exceed context limit{said}"
            return Failure(400, "invalid_request_error", words)
        return Reply(Says("Here it is."))

    return served


@pytest.mark.parametrize("numbers", [True, False], ids=["numbers", "no numbers"])
@pytest.mark.parametrize("tokens", [12_000, 19_500], ids=["some room", "hardly any room"])
def test_input_and_answer_that_are_too_long_together_are_made_to_fit(
    tmp_path: Path, tokens: int, numbers: bool
) -> None:
    """MB-0906: with a shorter answer, or a shorter history where that is of no use."""
    with MessagesServer(Reply(Says("ready"))) as server:
        environ = midturn_environment(**server.environment())
        run_midturn("-p", "hi", environ=environ, cwd=tmp_path)
        ours = size_of(server.requests[0])
    long_session(tmp_path, 10, (tokens * CHARACTERS_PER_TOKEN - ours) // 10 - 250)
    with MessagesServer() as server:
        server.always(window(numbers))
        environ = midturn_environment(**server.environment())
        done = run_midturn("-p", "go on", "-c", environ=environ, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, b"Here it is.\n"), done.stderr
        assert len(server.requests) <= 14
        last = server.requests[-1]
    assert times_said("the last answer", last) == (tokens == 12_000)
    room = last.body["max_tokens"]
    assert isinstance(room, int) and room >= 2_000


def test_calls_that_are_always_cut_end_the_turn_after_four_requests(tmp_path: Path) -> None:
    """MB-1004: the model is told each time, and nothing is carried out."""
    start = Start(arguments=("--permission-mode", "yolo"))
    half = Calls("Write", None, '{"file_path": "x.txt"', unfinished=True)
    with MessagesServer() as server, live_midturn(server, tmp_path, start) as live:
        server.always(Reply(half, stop_reason="max_tokens"))
        live.enter("write")
        live.see_times("↑ cut: the answer reached the output limit", 4)
        shown = live.see_idle()
        assert "answer was empty" not in shown.text
        assert len(server.requests) == 4
        assert [len(notes_in(request)) for request in server.requests] == [0, 1, 2, 3]
        server.always(Reply(Says("all right")))
        live.enter("enough")
        live.see("all right")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_wait_that_the_service_asks_for_is_shown_and_kept(tmp_path: Path, form: str) -> None:
    """MB-1010: three seconds."""
    date = {
        "date": "Mon, 30 Nov 2026 10:00:00 GMT",
        "retry-after": "Mon, 30 Nov 2026 10:00:03 GMT",
    }
    headers = {"retry-after": "3"} if form == "seconds" else date
    moments: list[float] = []

    def busy_once(_: RecordedRequest) -> Answer:
        moments.append(time.monotonic())
        busy = Failure(429, "rate_limit_error", "slow down", headers)
        return busy if len(moments) == 1 else Reply(Says("there it is"))

    with MessagesServer(busy_once, busy_once) as server, live_midturn(server, tmp_path) as live:
        live.enter("hello")
        live.see(r"^\S+ trying again in [123]s")  # it counts down
        live.see("there it is")
        live.see_anywhere(r"trying\s+again in 3 s \(1/5\)")
    assert 2.9 < moments[1] - moments[0] < 15


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
def test_a_service_with_a_certificate_of_ones_own_works_with_the_setting_that_is_named(
    tmp_path: Path, ending: str
) -> None:
    """MB-1012: and is never trusted without it."""
    tls = tmp_path / "tls"
    tls.mkdir()
    certificate = make_certificate(tls, ["DNS:localhost", "IP:127.0.0.1"])
    options = ServerOptions(tls=certificate.server())
    with MessagesServer(Reply(Says("Secure.")), options=options) as server:
        environ = midturn_environment(**server.environment())
        environ["ANTHROPIC_BASE_URL"] = f"{server.url}{ending}"
        refused = run_midturn("-p", "hi", environ=environ, cwd=tmp_path)
        assert refused.returncode == 1
        assert server.requests == []
        assert b"SSL_CERT_FILE" in refused.stderr
        environ["SSL_CERT_FILE"] = str(certificate.file)
        done = run_midturn("-p", "hi", environ=environ, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, b"Secure.\n"), done.stderr
        assert [request.path.partition("?")[0] for request in server.requests] == ["/v1/messages"]
