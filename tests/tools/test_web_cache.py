"""Equal fetches share one request; what is kept is bounded in time and size."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from midturn_tools._web_cache import WebCache
from midturn_tools._web_page import Answer, FetchError, Page, RedirectElsewhere

URL = "https://example.com/"


def page(body: bytes = b"text", status: int = 200, may_be_kept: bool = True) -> Page:
    return Page(URL, status, "", "text/plain", body, len(body), may_be_kept=may_be_kept)


@dataclass
class Source:
    """A page that comes when ``ready`` is set."""

    answer: Answer | Exception
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    fetches: int = 0
    ended: list[str] = field(default_factory=list[str])

    async def __call__(self) -> Answer:
        self.fetches += 1
        self.started.set()
        try:
            await self.ready.wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("done")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def ready(answer: Answer | Exception) -> Source:
    source = Source(answer)
    source.ready.set()
    return source


async def test_fetches_of_one_page_at_the_same_time_share_one_request() -> None:
    cache, source = WebCache(), Source(page())
    waiting = [asyncio.create_task(cache.get(URL, source)) for _ in range(5)]
    await source.started.wait()
    source.ready.set()
    found = await asyncio.gather(*waiting)
    assert source.fetches == 1
    assert {f.answer for f in found} == {source.answer}


async def test_a_cancelled_waiter_does_not_end_the_fetch_of_the_others() -> None:
    cache, source = WebCache(), Source(page())
    first = asyncio.create_task(cache.get(URL, source))
    await source.started.wait()
    second = asyncio.create_task(cache.get(URL, source))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait({first})
    assert first.cancelled()
    source.ready.set()
    assert (await second).answer == source.answer
    assert source.ended == ["done"]


async def test_the_fetch_ends_with_its_last_waiter() -> None:
    cache, source = WebCache(), Source(page())
    waiting = [asyncio.create_task(cache.get(URL, source)) for _ in range(2)]
    await source.started.wait()
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    assert source.ended == ["cancelled"]
    # And the next call starts anew.
    assert (await cache.get(URL, ready(page(b"new")))).answer == page(b"new")


async def test_a_failure_reaches_every_waiter_and_is_not_kept() -> None:
    cache, source = WebCache(), Source(FetchError("gone"))
    waiting = [asyncio.create_task(cache.get(URL, source)) for _ in range(3)]
    await source.started.wait()
    source.ready.set()
    assert [str(e) for e in await asyncio.gather(*waiting, return_exceptions=True)] == ["gone"] * 3
    assert (await cache.get(URL, ready(page()))).answer == page()


async def test_a_page_is_kept_for_its_time_and_then_fetched_anew() -> None:
    """MB-0613."""
    now = [100.0]
    cache, source = WebCache(keep_seconds=60, clock=lambda: now[0]), ready(page())
    assert (await cache.get(URL, source)).age == 0
    now[0] += 59
    assert (await cache.get(URL, source)).age == 59
    assert source.fetches == 1
    now[0] += 1
    assert (await cache.get(URL, source)).age == 0
    assert source.fetches == 2


async def test_fresh_passes_over_a_kept_page_and_replaces_it() -> None:
    cache = WebCache()
    await cache.get(URL, ready(page(b"old")))
    assert (await cache.get(URL, ready(page(b"new")), fresh=True)).answer == page(b"new")
    assert (await cache.get(URL, ready(page(b"x")))).answer == page(b"new")


@pytest.mark.parametrize("bad", [page(status=404), page(status=500), page(may_be_kept=False)])
async def test_errors_and_pages_that_forbid_it_are_not_kept(bad: Page) -> None:
    cache, source = WebCache(), ready(bad)
    await cache.get(URL, source)
    await cache.get(URL, source)
    assert source.fetches == 2


async def test_a_redirect_to_another_host_is_kept() -> None:
    cache, source = WebCache(), ready(RedirectElsewhere(URL, "https://b.example/", "b.example"))
    await cache.get(URL, source)
    await cache.get(URL, source)
    assert source.fetches == 1


async def test_the_kept_bytes_are_bounded_and_the_oldest_page_leaves_first() -> None:
    cache = WebCache(max_bytes=30_000)
    sources = [ready(page(bytes([n]) * 10_000)) for n in range(4)]
    for n, source in enumerate(sources):
        await cache.get(f"{URL}{n}", source)
    for n, source in enumerate(sources):
        await cache.get(f"{URL}{n}", source) if n > 1 else None
    assert [source.fetches for source in sources] == [1, 1, 1, 1]
    await cache.get(f"{URL}0", sources[0])
    assert sources[0].fetches == 2


async def test_a_page_larger_than_the_bound_is_delivered_and_not_kept() -> None:
    cache, source = WebCache(max_bytes=100), ready(page(b"x" * 1_000))
    assert (await cache.get(URL, source)).answer == source.answer
    await cache.get(URL, source)
    assert source.fetches == 2


def test_the_cache_serves_one_event_loop_after_the_other() -> None:
    cache, fetches = WebCache(), [0]

    async def fetch() -> Answer:
        fetches[0] += 1
        return page()

    for _ in range(2):
        assert asyncio.run(cache.get(URL, fetch)).answer == page()
    assert fetches == [1]
