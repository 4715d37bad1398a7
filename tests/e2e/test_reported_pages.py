"""Faults of fetched pages that people have reported about programs of this kind."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from tests.support.gated_site import gated_site
from tests.support.live_midturn import Start, live_midturn, write_config
from tests.support.logging_proxy import proxying
from tests.support.messages_script import Calls, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import midturn_environment, run_midturn
from tests.support.web_server import answer, serving

pytestmark = pytest.mark.slow

ALLOWED = ("--allow", "WebFetch")


async def look_at(
    server: MessagesServer, workspace: Path, **environ: str
) -> subprocess.CompletedProcess[bytes]:
    """One turn of the real command, in which every fetch is allowed."""
    variables = midturn_environment(**{**server.environment(), **environ})
    arguments = ("-p", "look", *ALLOWED)
    return await asyncio.to_thread(run_midturn, *arguments, environ=variables, cwd=workspace)


def fetch(*urls: str) -> Reply:
    return Reply(*(Calls("WebFetch", {"url": url}) for url in urls))


async def test_no_address_of_this_machine_and_its_networks_is_fetched(tmp_path: Path) -> None:
    """MB-0601, MB-0603: although a rule allows every fetch; the model is told why."""
    async with serving({"/": answer(b"secret")}) as site:
        hosts = [
            *("127.0.0.1", "[::1]", "localhost", "0.0.0.0", "2130706433", "127.1"),
            *("[::ffff:127.0.0.1]", "[0:0:0:0:0:0:0:1]", "[::ffff:7f00:1]"),
        ]
        urls = [f"http://{host}:{site.port}/" for host in hosts]
        urls += ["http://169.254.169.254/", "http://10.0.0.1/"]
        with MessagesServer(fetch(*urls), Reply(Says("I may not."))) as server:
            done = await look_at(server, tmp_path)
            assert done.stdout == b"I may not.\n", done.stderr
            results = server.requests[1].results
        assert site.connections == 0
    assert [result["is_error"] for result in results] == [True] * len(urls)
    told = [str(result["content"]) for result in results]
    inside = ("refused: it is ", "no plain IPv4 address")
    assert [text for text in told if not any(reason in text for reason in inside)] == []


async def test_nothing_of_a_binary_page_reaches_the_model(tmp_path: Path) -> None:
    """MB-0609."""
    body = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
    kinds = ("application/pdf", "image/png", "application/octet-stream", "text/html")
    pages = {f"/{n}": answer(body, kind) for n, kind in enumerate(kinds)}
    async with serving(pages) as site:
        write_config(f'[web]\nallow_hosts = ["{site.host}"]\n')
        urls = [site.url(path) for path in pages]
        with MessagesServer(fetch(*urls), Reply(Says("Binary."))) as server:
            done = await look_at(server, tmp_path)
            assert done.stdout == b"Binary.\n", done.stderr
            results = server.requests[1].results
            sent = json.dumps([*map(dict, server.requests[1].messages)])
    assert len(results) == len(kinds)
    for kind, result in zip(kinds, results, strict=True):
        assert "is_error" not in result
        assert kind in str(result["content"]) and "10.2 kB" in str(result["content"])
    assert "\\u0089" not in sent and "\\ufffd" not in sent and "\\u0000" not in sent


async def test_the_proxy_that_the_model_is_asked_through_is_asked_for_pages_too(
    tmp_path: Path,
) -> None:
    """MB-0610."""
    async with serving({"/a": answer(b"the page")}) as site, proxying() as proxy:
        write_config(f'[web]\nallow_hosts = ["{site.host}"]\n')
        script = (fetch(site.url("/a")), Reply(Says("Read.")))
        with MessagesServer(*script) as server:
            done = await look_at(server, tmp_path, HTTP_PROXY=proxy.url, NO_PROXY="")
            assert done.stdout == b"Read.\n", done.stderr
            assert server.requests[1].results[0]["content"] == "the page"
            assert f"GET {site.url('/a')}" in proxy.asked
            assert [line for line in proxy.asked if line.startswith(f"POST {server.url}")] != []
            proxy.asked.clear()
            server.add(*script)
            done = await look_at(server, tmp_path, HTTP_PROXY=proxy.url)
            assert done.stdout == b"Read.\n", done.stderr
            assert proxy.asked == []
    assert len(site.requests) == 2


def test_a_page_that_never_comes_can_be_interrupted_at_once(tmp_path: Path) -> None:
    """MB-0605."""
    with (
        gated_site(1) as silent,
        MessagesServer(fetch(silent.url(0)), Reply(Says("Fine."))) as server,
    ):
        start = Start(ALLOWED, config=f'[web]\nallow_hosts = ["{silent.host}"]\n')
        with live_midturn(server, tmp_path, start) as live:
            live.enter("look")
            silent.wait_for_arrivals(1)
            live.key("ctrl-c")
            live.see("Interrupted after")
            live.enter("never mind")
            live.see(r"Fine\.")
