"""Calls that start while the model still writes, through the real command (D24)."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.test_parallel import results_of
from tests.support.gated_site import GatedSite, gated_site
from tests.support.live_midturn import Start, live_midturn
from tests.support.messages_script import Calls, Cut, Latch, Reply, Says
from tests.support.messages_server import MessagesServer

STREAMING = '[parallel]\nenabled = true\nmixed = "segments"\nstart = "streaming"\n'


def start(site: GatedSite) -> Start:
    return Start(
        ["--allow", "WebFetch(domain:127.0.0.1)"],
        config=f'{STREAMING}[web]\nallow_hosts = ["{site.host}"]\n',
    )


def fetch(site: GatedSite, number: int) -> Calls:
    return Calls("WebFetch", {"url": site.url(number)})


def test_a_page_is_fetched_and_a_file_read_before_the_stream_goes_on(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("what the notes say\n")
    paused = Latch()
    with (
        gated_site(2) as site,
        MessagesServer(
            Reply(
                fetch(site, 0),
                Calls("Read", {"file_path": "notes.txt"}),
                paused,
                Calls("TodoWrite", {"todos": []}),
                fetch(site, 1),
            ),
            Reply(Says("all of it")),
        ) as server,
        live_midturn(server, tmp_path, start(site)) as live,
    ):
        live.enter("look at them")
        paused.reached.wait()
        assert site.wait_for_arrivals(1) == [0]
        live.see(r"WebFetch: .* · started early")
        live.see(r"Read: notes.txt · ran early")
        assert not paused.released.is_open
        site.gates[0].open()
        live.see(r"WebFetch: .* · ran early")
        paused.open()
        assert site.wait_for_arrivals(2) == [0, 1]
        site.gates[1].open()
        shown = live.see("all of it")
        assert "Total: 4/4 succeeded" in shown.text
        assert "early" not in shown.text.partition("Total:")[0]
        _, second = server.wait_for_requests(2)
        texts = results_of(second)
        assert "this is page 0" in texts[0]
        assert "what the notes say" in texts[1]
        assert "this is page 1" in texts[3]


def test_a_message_now_keeps_what_has_run_early_and_says_what_has_not(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("what the notes say\n")
    paused = Latch()
    with (
        gated_site(1) as site,
        MessagesServer(
            Reply(
                Calls("Read", {"file_path": "notes.txt"}),
                fetch(site, 0),
                Calls("TodoWrite", {"todos": []}),
                paused,
                Says("never said"),
            ),
            Reply(Says("understood")),
        ) as server,
        live_midturn(server, tmp_path, start(site)) as live,
    ):
        live.enter("look at them")
        paused.reached.wait()
        live.see(r"Read: notes.txt · ran early")
        site.wait_for_arrivals(1)
        live.enter("/now stop, just say hello")
        live.see("understood")
        _, second = server.wait_for_requests(2)
        read, fetched, todo = results_of(second)
        assert "what the notes say" in read
        assert fetched.startswith("stopped after ")
        assert todo == "skipped: the user sent a message"


def test_a_stream_that_breaks_takes_its_early_calls_with_it(tmp_path: Path) -> None:
    broken = Latch()
    with (
        gated_site(2) as site,
        MessagesServer(
            Reply(fetch(site, 0), broken, Cut()),
            Reply(fetch(site, 1)),
            Reply(Says("the second page")),
        ) as server,
        live_midturn(server, tmp_path, start(site)) as live,
    ):
        live.enter("look at it")
        broken.reached.wait()
        site.wait_for_arrivals(1)
        broken.open()
        site.wait_for_arrivals(2)
        site.open_all()
        live.see("the second page")
        *_, last = server.wait_for_requests(3)
        (only,) = results_of(last)
        assert "this is page 1" in only
