"""Several calls of one response: together where that is allowed and safe, and in their order."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tests.support.fifo_latch import FifoLatch
from tests.support.gated_site import GatedSite, gated_site
from tests.support.live_midturn import Start, live_midturn
from tests.support.messages_connection import RecordedRequest
from tests.support.messages_script import Calls, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.request_texts import injected, never_said, said_in, typed, words_in


def fetches(site: GatedSite, numbers: Iterable[int]) -> list[Calls]:
    return [Calls("WebFetch", {"url": site.url(number)}) for number in numbers]


def fetching(site: GatedSite, *arguments: str) -> Start:
    """A start that may fetch from this site without a question."""
    return Start(
        ["--allow", "WebFetch(domain:127.0.0.1)", *arguments],
        config=f'[web]\nallow_hosts = ["{site.host}"]\nper_host = 10\n',
    )


def results_of(request: RecordedRequest) -> list[str]:
    return [str(result["content"]) for result in request.results]


def test_eight_calls_of_one_response_are_in_flight_at_once_and_answered_in_their_order(
    tmp_path: Path,
) -> None:
    with (
        gated_site(8) as site,
        MessagesServer(Reply(*fetches(site, range(8))), Reply(Says("all eight"))) as server,
        live_midturn(
            server, tmp_path, fetching(site, "--parallel", "--max-concurrency", "8")
        ) as live,
    ):
        live.enter("fetch them")
        # None of the pages comes before all eight have been asked for.
        assert sorted(site.wait_for_arrivals(8)) == list(range(8))
        live.see("8 running")
        for number in reversed(range(8)):
            site.gates[number].open()
            label = rf"\[{number + 1}/8\] WebFetch: "
            live.see_anywhere(rf"✓ {label}|{label}.* ✓")
        shown = live.see("all eight")
        assert site.most_at_once == 8
        assert "Parallel Tool Execution (8 calls)" in shown.text
        assert "Total: 8/8 succeeded" in shown.text
        assert re.findall(r"\[(\d)/8\] WebFetch: .* ✓", shown.text) == list("12345678")
        _, second = server.wait_for_requests(2)
        texts = results_of(second)
        assert all(f"this is page {number}" in text for number, text in enumerate(texts))


def test_never_more_than_max_concurrency_run_at_once(tmp_path: Path) -> None:
    with (
        gated_site(8) as site,
        MessagesServer(Reply(*fetches(site, range(8))), Reply(Says("all eight"))) as server,
        live_midturn(
            server, tmp_path, fetching(site, "--parallel", "--max-concurrency", "3")
        ) as live,
    ):
        live.enter("fetch them")
        assert sorted(site.wait_for_arrivals(3)) == [0, 1, 2]
        live.see("3 running")
        live.see("∥ 3/3")
        for number in range(8):
            site.gates[number].open()
            site.wait_for_arrivals(min(8, number + 4))
        live.see("all eight")
        assert site.most_at_once == 3
        _, second = server.wait_for_requests(2)
        texts = results_of(second)
        assert all(f"this is page {number}" in text for number, text in enumerate(texts))


def test_one_response_holds_no_more_than_its_own_share(tmp_path: Path) -> None:
    start_arguments = ("--parallel", "--max-concurrency", "8", "--per-batch-max", "2")
    with (
        gated_site(4) as site,
        MessagesServer(Reply(*fetches(site, range(4))), Reply(Says("all four"))) as server,
        live_midturn(server, tmp_path, fetching(site, *start_arguments)) as live,
    ):
        live.enter("fetch them")
        for number in range(4):
            site.wait_for_arrivals(min(4, number + 2))
            site.gates[number].open()
        live.see("all four")
        assert site.most_at_once == 2


def test_off_means_one_at_a_time_and_the_screen_says_how_to_switch_it_on(tmp_path: Path) -> None:
    with (
        gated_site(3) as site,
        MessagesServer(Reply(*fetches(site, range(3))), Reply(Says("all three"))) as server,
        live_midturn(server, tmp_path, fetching(site)) as live,
    ):
        live.see("∥ off")
        live.enter("fetch them")
        for number in range(3):
            assert site.wait_for_arrivals(number + 1) == list(range(number + 1))
            site.gates[number].open()
        shown = live.see("all three")
        assert site.most_at_once == 1
        assert re.search(r"Parallel would have taken \S+, not \S+", shown.text)
        assert "together" not in str(server.requests[0].body["system"])


def test_it_can_be_switched_on_while_a_batch_runs_and_counts_from_the_next_one(
    tmp_path: Path,
) -> None:
    """Also: no command reaches the model, and the model is told what it may do."""
    with (
        gated_site(6) as site,
        MessagesServer(
            Reply(*fetches(site, range(2))),
            Reply(*fetches(site, range(2, 6))),
            Reply(Says("all six")),
        ) as server,
        live_midturn(server, tmp_path, fetching(site)) as live,
    ):
        live.enter("fetch them")
        site.wait_for_arrivals(1)
        live.enter("/parallel on max 4")
        live.see("∥ on 4")
        site.gates[0].open()
        assert site.wait_for_arrivals(2) == [0, 1]
        site.gates[1].open()
        assert sorted(site.wait_for_arrivals(6)[2:]) == [2, 3, 4, 5]
        assert site.most_at_once == 4
        site.open_all()
        live.see("all six")
        assert never_said("/parallel", server.requests)
        before, after, _ = server.requests
        assert len(str(after.body["system"])) > len(str(before.body["system"]))


def test_one_failing_call_leaves_the_others_their_results(tmp_path: Path) -> None:
    with (
        gated_site(2) as site,
        MessagesServer(Reply(*fetches(site, [0, 99, 1])), Reply(Says("two of three"))) as server,
        live_midturn(server, tmp_path, fetching(site, "--parallel")) as live,
    ):
        site.open_all()
        live.enter("fetch them")
        shown = live.see("two of three")
        assert "Total: 2/3 succeeded, 1 failed" in shown.text
        _, second = server.wait_for_requests(2)
        first, missing, last = second.results
        assert "this is page 0" in str(first["content"])
        assert missing["is_error"] is True and "404" in str(missing["content"])
        assert "this is page 1" in str(last["content"])


def test_one_call_that_runs_alone_makes_the_batch_sequential_and_the_screen_names_it(
    tmp_path: Path,
) -> None:
    gate = FifoLatch(tmp_path)
    with (
        gated_site(2) as site,
        MessagesServer(
            Reply(
                *fetches(site, [0]), Calls("Bash", {"command": gate.command}), *fetches(site, [1])
            ),
            Reply(Says("one by one")),
        ) as server,
        live_midturn(
            server, tmp_path, fetching(site, "--parallel", "--allow", "Bash(cat:*)")
        ) as live,
    ):
        live.enter("do them")
        assert site.wait_for_arrivals(1) == [0]
        site.gates[0].open()
        gate.reached()
        assert site.asked_for == [0]
        gate.open()
        assert site.wait_for_arrivals(2) == [0, 1]
        site.gates[1].open()
        shown = live.see("one by one")
        assert "One by one: Bash (call 2) runs alone" in shown.text


def test_an_urgent_line_stops_what_can_be_stopped_and_says_so_truly(tmp_path: Path) -> None:
    """D1: started calls tell the model how far they came, the others that they did not start."""
    with (
        gated_site(4) as site,
        MessagesServer(Reply(*fetches(site, range(4))), Reply(Says("heard you"))) as server,
        live_midturn(
            server, tmp_path, fetching(site, "--parallel", "--max-concurrency", "2")
        ) as live,
    ):
        live.enter("fetch them")
        site.wait_for_arrivals(2)
        site.gates[0].open()
        assert sorted(site.wait_for_arrivals(3)) == [0, 1, 2]
        live.see(r"\[1/4\] WebFetch: .* ✓")
        live.enter_as("NOW", "the other site")
        live.see("heard you")
        _, second = server.wait_for_requests(2)
        done, stopped, stopped_too, skipped = results_of(second)
        assert "this is page 0" in done
        for text in (stopped, stopped_too):
            assert re.search(r"[Ss]topped after .* the user sent a message", text)
        assert skipped == "skipped: the user sent a message"
        assert said_in(second) == [injected("the other site")]
        assert len(site.asked_for) == 3


def test_an_interrupt_ends_a_whole_batch_at_once(tmp_path: Path) -> None:
    with (
        gated_site(4) as site,
        MessagesServer(Reply(*fetches(site, range(4))), Reply(Says("go on"))) as server,
        live_midturn(
            server, tmp_path, fetching(site, "--parallel", "--max-concurrency", "2")
        ) as live,
    ):
        live.enter("fetch them")
        site.wait_for_arrivals(2)
        live.key("ctrl-c")
        live.see("Interrupted after")
        live.enter("again")
        live.see("go on")
        _, second = server.wait_for_requests(2)
        texts = results_of(second)
        assert all("the user interrupted the turn" in text for text in texts)
        assert [text.startswith("skipped") for text in texts] == [False, False, True, True]
        assert words_in(second) == [typed("again")]
