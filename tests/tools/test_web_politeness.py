"""WebFetch and a host's limits: few pages at once, and asked again only when the host wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midturn_core.config import WebConfig
from midturn_core.interrupt import CancelReason, SignalSource
from midturn_core.tool import ToolContext, ToolResult
from midturn_tools._polite_fetch import PoliteFetcher, pause_before_next_try
from midturn_tools._retry_after import retry_after_seconds
from midturn_tools._web_address import WebAddress, parse_web_address
from midturn_tools._web_page import Answer, FetchError, Page
from midturn_tools.http import HttpFetcher, Network
from midturn_tools.url_guard import SsrfGuard, SsrfGuardConfig
from midturn_tools.web_fetch import WebFetchTool
from tests.support.agent_kit import until
from tests.support.tool_context import make_tool_context
from tests.support.web_server import Detour, Names, Seen, WebServer, answer, serving, tool_on

DEADLINE = 30


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return make_tool_context(tmp_path)


def tool_for(site: WebServer, per_host: int = 4) -> WebFetchTool:
    return WebFetchTool(WebConfig(allow_hosts=(site.host,), per_host=per_host))


async def fetch(tool: WebFetchTool, url: str, context: ToolContext) -> ToolResult:
    return await tool.run({"url": url}, context)


class Gated:
    """A handler that answers with the path once it is open."""

    def __init__(self) -> None:
        self.inside = self.most = 0
        self._open = asyncio.Event()

    def open(self) -> None:
        self._open.set()

    async def __call__(self, seen: Seen, writer: asyncio.StreamWriter) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await self._open.wait()
        finally:
            self.inside -= 1
        writer.write(answer(seen.path.encode()))


class Script:
    """A handler that gives its answers one after another; the last one repeats."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = answers
        self.asked = 0

    async def __call__(self, seen: Seen, writer: asyncio.StreamWriter) -> None:
        self.asked += 1
        writer.write(self._answers[min(self.asked, len(self._answers)) - 1])


def later(status: int, wish: str = "", **more: str) -> bytes:
    headers = {"retry_after": wish} if wish else {}
    return answer(b"come later", status=status, **headers, **more)


# Places


async def test_no_more_pages_of_a_host_are_fetched_at_once_than_it_has_places(
    tmp_path: Path,
) -> None:
    gated, notes = Gated(), list[str]()
    context = make_tool_context(tmp_path, progress=notes.append)
    async with serving(handler=gated) as site:
        tool = tool_for(site, per_host=2)
        urls = [site.url(f"/{number}") for number in range(5)]
        running = [asyncio.create_task(fetch(tool, url, context)) for url in urls]
        await until(lambda: gated.inside == 2 and len(notes) == 3)
        assert notes == ["waits for 2 other fetches of 127.0.0.1"] * 3
        gated.open()
        results = await asyncio.wait_for(asyncio.gather(*running), DEADLINE)
    assert [result.output for result in results] == [f"/{number}" for number in range(5)]
    assert gated.most == 2


async def test_another_host_does_not_wait(context: ToolContext) -> None:
    gated = Gated()
    names = Names({name: [["93.184.216.34"]] for name in ("a.example", "b.example")})
    async with serving(handler=gated) as busy, serving({"/": answer(b"b")}) as free:
        network = Network(names, Detour({80: busy.port, 8080: free.port}))
        tool = tool_on(network, WebConfig(per_host=1))
        waiting = asyncio.create_task(fetch(tool, "http://a.example/", context))
        await until(lambda: gated.inside == 1)
        result = await asyncio.wait_for(fetch(tool, "http://b.example:8080/", context), DEADLINE)
        assert result.output == "b"
        gated.open()
        await waiting


async def test_equal_calls_share_one_place(context: ToolContext) -> None:
    gated = Gated()
    async with serving(handler=gated) as site:
        tool = tool_for(site, per_host=2)
        equal = [asyncio.create_task(fetch(tool, site.url("/a"), context)) for _ in range(3)]
        other = asyncio.create_task(fetch(tool, site.url("/b"), context))
        await until(lambda: gated.inside == 2)
        gated.open()
        results = await asyncio.wait_for(asyncio.gather(*equal, other), DEADLINE)
        assert sorted(seen.path for seen in site.requests) == ["/a", "/b"]
    assert [result.output for result in results] == ["/a", "/a", "/a", "/b"]


async def test_a_stopped_call_leaves_the_line_and_takes_no_place_along(tmp_path: Path) -> None:
    gated, notes, signal = Gated(), list[str](), SignalSource()
    context = make_tool_context(tmp_path, progress=notes.append)
    stopping = make_tool_context(tmp_path, progress=notes.append, signal=signal)
    async with serving(handler=gated) as site:
        tool = tool_for(site, per_host=1)
        first = asyncio.create_task(fetch(tool, site.url("/1"), context))
        await until(lambda: gated.inside == 1)
        second = asyncio.create_task(fetch(tool, site.url("/2"), stopping))
        third = asyncio.create_task(fetch(tool, site.url("/3"), context))
        await until(lambda: len(notes) == 2)
        signal.trip(CancelReason.USER_MESSAGE)
        assert (await asyncio.wait_for(second, DEADLINE)).stopped
        gated.open()
        results = await asyncio.wait_for(asyncio.gather(first, third), DEADLINE)
        assert [seen.path for seen in site.requests] == ["/1", "/3"]
    assert [result.output for result in results] == ["/1", "/3"]


async def test_one_that_got_no_place_in_time_says_that_the_host_was_not_asked() -> None:
    asked, free = list[str](), asyncio.Event()

    async def slow_to_end(address: WebAddress) -> Answer:
        asked.append(address.url)
        try:
            await asyncio.Event().wait()
        finally:
            await free.wait()
        raise AssertionError

    polite = PoliteFetcher(slow_to_end, seconds=0.2, per_host=1)
    first = asyncio.create_task(polite.fetch(parse_web_address("http://a.example/1")))
    await until(lambda: len(asked) == 1)
    with pytest.raises(FetchError) as raised:
        await polite.fetch(parse_web_address("http://a.example/2"))
    free.set()
    assert str(raised.value) == (
        "a.example was not asked: 1 other fetch of it went on for the whole 0.2 s. "
        "Ask again when they are done."
    )
    with pytest.raises(FetchError, match=r"^a\.example did not deliver the page within 0\.2 s\.$"):
        await first
    assert asked == ["http://a.example/1"]


# Asked again


async def test_a_host_that_asks_to_come_later_is_asked_again(context: ToolContext) -> None:
    script = Script(later(429, "0"), later(503, "0"), answer(b"here it is"))
    async with serving(handler=script) as site:
        result = await fetch(tool_for(site), site.url(), context)
    assert (result.output, script.asked) == ("here it is", 3)


async def test_a_host_that_goes_on_refusing_is_asked_three_times(context: ToolContext) -> None:
    script = Script(later(429, "0"))
    async with serving(handler=script) as site:
        result = await fetch(tool_for(site), site.url(), context)
        assert result.error is not None
        assert result.error.startswith(
            f"{site.url()} answered 429 Reason. It was asked 3 times. "
            "It asks to wait 0 s before the next try. Its text:\ncome later"
        )
    assert script.asked == 3


async def test_a_wish_that_the_time_limit_does_not_allow_is_told(context: ToolContext) -> None:
    script = Script(later(503, "3600"))
    async with serving(handler=script) as site:
        result = await fetch(tool_for(site), site.url(), context)
    assert result.error is not None
    assert "answered 503 Reason. It asks to wait 3600 s before the next try." in result.error
    assert script.asked == 1


@pytest.mark.parametrize("status", [404, 500, 502])
async def test_other_errors_are_not_tried_again(status: int, context: ToolContext) -> None:
    script = Script(later(status, "0"))
    async with serving(handler=script) as site:
        assert (await fetch(tool_for(site), site.url(), context)).error is not None
    assert script.asked == 1


@pytest.mark.parametrize(
    ("first", "pauses"),
    [
        (later(429, "7"), [7.0]),
        (
            later(
                503,
                "Sun, 06 Nov 1994 08:49:42 GMT",
                date="Sun, 06 Nov 1994 08:49:37 GMT",
            ),
            [5.0],
        ),
        (later(429), [1.0]),
        (later(429, "soon"), [1.0]),
    ],
    ids=["seconds", "date", "no wish", "unreadable wish"],
)
async def test_the_pause_is_what_the_host_asks_for(first: bytes, pauses: Sequence[float]) -> None:
    paused, notes = list[float](), list[str]()

    async def pause(seconds: float) -> None:
        paused.append(seconds)

    async with serving(handler=Script(first, answer(b"here"))) as site:
        guard = SsrfGuard(SsrfGuardConfig.of(WebConfig(allow_hosts=(site.host,))))
        polite = PoliteFetcher(HttpFetcher(guard).fetch, 25.0, 4, pause)
        got = await polite.fetch(parse_web_address(site.url()), notes.append)
    assert isinstance(got, Page)
    assert (got.body, paused) == (b"here", pauses)
    assert f"asked again in {pauses[0]:g} s" in notes[0]


async def test_a_call_can_be_stopped_while_it_waits_to_ask_again(tmp_path: Path) -> None:
    signal, notes = SignalSource(), list[str]()
    context = make_tool_context(tmp_path, signal=signal, progress=notes.append)
    async with serving(handler=Script(later(429, "20"), answer(b"here"))) as site:
        tool = tool_for(site, per_host=1)
        running = asyncio.create_task(fetch(tool, site.url(), context))
        await until(lambda: len(notes) == 1)
        signal.trip(CancelReason.INTERRUPT)
        assert (await asyncio.wait_for(running, DEADLINE)).stopped
        # Its place is free again.
        again = await asyncio.wait_for(fetch(tool, site.url(), make_tool_context(tmp_path)), 30)
    assert again.output == "here"


async def test_one_that_runs_out_of_time_after_a_refusal_tells_both() -> None:
    refusal = Page("http://a.example/", 429, "", "text/plain", b"", 0, retry_after=0.25)
    answers = iter([refusal])

    async def refuse_once(_: WebAddress) -> Answer:
        for page in answers:
            return page
        await asyncio.Event().wait()
        raise AssertionError

    polite = PoliteFetcher(refuse_once, seconds=2.0, per_host=1)
    told = (
        r"^a\.example did not deliver the page within 2 s, \d\.\d s of which went by waiting\. "
        r"Before that it answered 429\.$"
    )
    with pytest.raises(FetchError, match=told):
        await polite.fetch(parse_web_address("http://a.example/"))


# The pure parts


def page(status: int, retry_after: float | None = None) -> Page:
    return Page("http://a.example/", status, "", "text/plain", b"", 0, retry_after=retry_after)


@pytest.mark.parametrize(
    ("answered", "tries", "left", "pause"),
    [
        (page(429), 1, 20.0, 1.0),
        (page(503), 2, 20.0, 2.0),
        (page(503), 3, 20.0, None),
        (page(429, 19.0), 1, 20.0, 19.0),
        (page(429, 19.5), 1, 20.0, None),
        (page(429, 0.0), 1, 0.5, None),
        (page(200, 1.0), 1, 20.0, None),
        (page(500, 1.0), 1, 20.0, None),
    ],
)
def test_a_pause_is_made_only_when_asking_again_makes_sense(
    answered: Page, tries: int, left: float, pause: float | None
) -> None:
    assert pause_before_next_try(answered, tries, left) == pause


NOW = datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "date", "seconds"),
    [
        ("120", "", 120.0),
        (" 0 ", "", 0.0),
        ("Sun, 06 Nov 1994 08:50:37 GMT", "", 60.0),
        ("Sun, 06 Nov 1994 08:50:37 GMT", "Sun, 06 Nov 1994 08:50:27 GMT", 10.0),
        ("Sun, 06 Nov 1994 08:50:37 GMT", "not a date", 60.0),
        ("Sun, 06 Nov 1994 08:00:00 GMT", "", 0.0),
        ("Sun, 06 Nov 1994 08:50:37", "", 60.0),
        ("-1", "", None),
        ("1.5", "", None),
        ("\u0661", "", None),
        ("", "", None),
        ("soon", "", None),
        ("9" * 400, "", None),
        ("Sun, 06 Nov 99999999999999999999 08:49:37 GMT", "", None),
        ("Sun, 06 Nov 1994 08:50:37 GMT", "Sun, 06 Nov 99999999999999999999 08:49:37 GMT", 60.0),
    ],
)
def test_a_wish_is_read_as_seconds_or_as_a_date(
    value: str, date: str, seconds: float | None
) -> None:
    assert retry_after_seconds(value, date, NOW) == seconds


@given(value=st.text(max_size=40), date=st.text(max_size=40))
def test_no_header_can_break_the_reading(value: str, date: str) -> None:
    seconds = retry_after_seconds(value, date, NOW)
    assert seconds is None or seconds >= 0
