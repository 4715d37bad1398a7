"""WebFetch behind the proxies that the environment names, over real loopback proxies."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from midturn_core.config import WebConfig
from midturn_core.tool import ToolContext, ToolResult
from midturn_tools._web_address import parse_web_address
from midturn_tools._web_page import FetchError
from midturn_tools._web_proxy import environment_proxies
from midturn_tools.http import HttpFetcher, Network
from midturn_tools.url_guard import SsrfGuard, SsrfGuardConfig
from midturn_tools.web_fetch import WebFetchTool
from tests.support.logging_proxy import proxying
from tests.support.tool_context import make_tool_context
from tests.support.web_server import (
    Names,
    WebServer,
    answer,
    make_certificate,
    redirect,
    serving,
)

PUBLIC = "93.184.216.34"


@pytest.fixture(autouse=True)
def no_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return make_tool_context(tmp_path)


def tool_on(names: Names, *allowed: str, network: Network | None = None) -> WebFetchTool:
    """A tool that knows these names and no other, and heeds the environment."""
    guard = SsrfGuard(SsrfGuardConfig.of(WebConfig(allow_hosts=allowed)))
    network = network or Network(names)
    return WebFetchTool(WebConfig(), HttpFetcher(guard, network, environment_proxies).fetch)


def tool_for(site: WebServer) -> WebFetchTool:
    return WebFetchTool(WebConfig(allow_hosts=(site.host,)))


async def fetch(tool: WebFetchTool, url: str, context: ToolContext) -> ToolResult:
    return await tool.run({"url": url}, context)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_the_proxy_of_the_environment_is_used_except_for_what_no_proxy_names(
    variable: str, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MB-0610."""
    async with serving({"/a": answer(b"the page")}) as site, proxying() as proxy:
        monkeypatch.setenv(variable, proxy.url)
        tool = tool_for(site)
        assert (await fetch(tool, site.url("/a"), context)).output == "the page"
        assert proxy.asked == [f"GET {site.url('/a')}"]
        monkeypatch.setenv("NO_PROXY", "elsewhere.example, 127.0.0.1")
        again = await tool.run({"url": site.url("/a"), "fresh": True}, context)
        assert again.output == "the page"
        assert len(proxy.asked) == 1
        assert len(site.requests) == 2


async def test_a_configuration_without_proxies_goes_straight_to_the_page(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving({"/": answer(b"direct")}) as site, proxying() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        tool = WebFetchTool(WebConfig(allow_hosts=(site.host,), proxy="none"))
        assert (await fetch(tool, site.url(), context)).output == "direct"
        assert proxy.asked == []


async def test_a_name_that_only_the_proxy_knows_is_asked_of_it_with_its_credentials(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving({"/": answer(b"inside")}) as site, proxying({80: site.port}) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("//", "//user:pass@"))
        result = await fetch(tool_on(Names({})), "http://docs.example/", context)
        assert result.output == "inside"
        assert site.requests[0].headers["host"] == "docs.example"
        assert proxy.asked == ["GET http://docs.example/"]
        assert proxy.credentials == ["Proxy-Authorization: Basic dXNlcjpwYXNz"]


async def test_tls_goes_through_the_proxy_and_is_checked_against_the_name(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    certificate = make_certificate(tmp_path, ["DNS:docs.example"])
    async with (
        serving({"/": answer(b"secure")}, tls=certificate.server()) as site,
        proxying({443: site.port}) as proxy,
    ):
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        network = Network(Names({}), trust=certificate.trust())
        tool = tool_on(Names({}), network=network)
        assert (await fetch(tool, "https://docs.example/", context)).output == "secure"
        assert site.requests[0].sni == "docs.example"
        wrong = await fetch(tool, "https://other.example/", context)
        assert proxy.asked == ["CONNECT docs.example:443", "CONNECT other.example:443"]
    assert wrong.error is not None
    assert wrong.error.startswith("The certificate of other.example:443 is not valid: ")


async def test_behind_a_proxy_the_guard_refuses_what_it_can_see(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names({"inner.example": [["10.0.0.1"]], "a.example": [[PUBLIC]]})
    pages = {"/": redirect("http://127.0.0.1/secret"), "/same": redirect("http://a.example:22/")}
    async with serving(pages) as site, proxying({80: site.port}) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        tool = tool_on(names)
        refused = [
            await fetch(tool, url, context)
            for url in ("http://inner.example/", "http://a.example/", "http://a.example/same")
        ]
        assert proxy.asked == ["GET http://a.example/", "GET http://a.example/same"]
    assert ["is refused: " in (result.error or "") for result in refused] == [True] * 3


async def test_a_look_up_that_never_ends_holds_the_proxy_up_for_a_moment_only(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_: str, __: int) -> tuple[str, ...]:
        await asyncio.Event().wait()
        raise AssertionError

    async with serving({"/": answer(b"there")}) as site, proxying({80: site.port}) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        tool = tool_on(Names({}), network=Network(never))
        assert (await fetch(tool, "http://docs.example/", context)).output == "there"


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_refuses_or_is_not_there_is_one_clear_sentence(
    scheme: str, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with proxying(refuses=True) as proxy:
        monkeypatch.setenv("ALL_PROXY", proxy.url.replace("//", "//user:secret@"))
        url = f"{scheme}://docs.example/"
        refused = await fetch(tool_on(Names({})), url, context)
    gone = await fetch(tool_on(Names({})), url, context)
    shown = proxy.url.removeprefix("http://")
    assert refused.error is not None and gone.error is not None
    assert "403" in refused.error
    assert gone.error == f"The proxy {shown} refused the connection; nothing listens there."
    assert "secret" not in refused.error + gone.error
    assert "\n" not in refused.error + gone.error


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("socks5://127.0.0.1:1080", "ALL_PROXY names a proxy of the kind socks5"),
        ("http://[::1", "ALL_PROXY names no readable address"),
        ("http://h:99999", "ALL_PROXY names no readable address"),
        ("http://", "ALL_PROXY names no readable address"),
    ],
)
def test_a_proxy_of_no_use_is_told_with_a_way_out(url: str, words: str) -> None:
    with pytest.raises(FetchError, match=words) as told:
        environment_proxies(parse_web_address("http://a.example/"), {"ALL_PROXY": url})
    assert 'proxy = "none"' in str(told.value)


@pytest.mark.parametrize(
    ("entries", "url", "straight"),
    [
        ("*", "http://a.example/", True),
        ("a.example", "http://a.example/", True),
        ("example", "http://a.example/", True),
        (".example", "http://a.example/", True),
        ("*.example", "http://a.example/", True),
        ("A.Example.", "http://a.example/", True),
        ("a.example:80", "http://a.example/", True),
        ("a.example:8080", "http://a.example/", False),
        ("xample", "http://a.example/", False),
        ("b.example a.example", "http://a.example/", True),
        ("127.0.0.0/8", "http://127.1.2.3/", True),
        ("127.0.0.0/8", "http://a.example/", False),
        ("::1", "http://[::1]/", True),
        ("[::1]:80", "http://[::1]/", True),
        ("fd00::/8", "http://[fd12::1]/", True),
        ("no host!,,/", "http://a.example/", False),
        ("", "http://a.example/", False),
    ],
)
def test_no_proxy_names_hosts_domains_and_networks(entries: str, url: str, straight: bool) -> None:
    environ = {"http_proxy": "proxy.example:3128", "NO_PROXY": entries}
    proxy = environment_proxies(parse_web_address(url), environ)
    assert (proxy is None) is straight
    assert straight or (proxy is not None and proxy.url == "http://proxy.example:3128")


def test_the_lower_case_name_wins_even_when_it_is_empty() -> None:
    address = parse_web_address("https://a.example/")
    environ = {"https_proxy": "", "HTTPS_PROXY": "http://x.example"}
    assert environment_proxies(address, environ) is None
    assert environment_proxies(address, {"HTTP_PROXY": "http://x.example"}) is None
    proxy = environment_proxies(address, {"HTTPS_PROXY": "https://u:pw@x.example"})
    assert proxy is not None
    assert proxy.shown == "x.example:443"
    assert "pw" not in repr(proxy)
