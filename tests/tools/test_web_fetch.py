"""WebFetch over real loopback servers: every promise of its description, and every way it fails."""

from __future__ import annotations

import asyncio
import gzip
import re
import socket
import ssl
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from midturn_core.config import WebConfig
from midturn_core.interrupt import CancelReason, SignalSource
from midturn_core.model.messages import JsonValue
from midturn_core.permission.access import HostAccess
from midturn_core.tool import (
    ConcurrencyBehavior,
    InterruptBehavior,
    InvalidInputError,
    ToolContext,
    ToolResult,
)
from midturn_tools._web_address import AddressRefusedError, parse_web_address
from midturn_tools.http import (
    MAX_BODY,
    MAX_REDIRECTS,
    CheckedTransport,
    HttpFetcher,
    Network,
)
from midturn_tools.url_guard import SsrfGuard
from midturn_tools.web_fetch import MAX_CHARACTERS, WebFetchTool
from tests.support.midturn_process import ROOT, midturn_environment, run_python
from tests.support.tool_context import make_tool_context
from tests.support.web_server import (
    Certificate,
    Detour,
    Names,
    Seen,
    WebServer,
    answer,
    make_certificate,
    redirect,
    serving,
    tool_on,
)

PUBLIC = "93.184.216.34"


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return make_tool_context(tmp_path)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls"), ["DNS:docs.example", "DNS:b.example"])


def tool_for(*servers: WebServer, timeout: float = 30.0) -> WebFetchTool:
    hosts = tuple(server.host for server in servers)
    return WebFetchTool(WebConfig(allow_hosts=hosts, timeout=timeout))


async def fetch(
    tool: WebFetchTool, url: str, context: ToolContext, **more: JsonValue
) -> ToolResult:
    tool_input: dict[str, JsonValue] = {"url": url, **more}
    tool.validate(tool_input)
    return await tool.run(tool_input, context)


def output_of(result: ToolResult) -> str:
    assert result.error is None, result.error
    assert result.output is not None
    return result.output


def error_of(result: ToolResult) -> str:
    assert result.error is not None, result.output
    return result.error


# What comes back


async def test_html_comes_as_markdown_with_its_title(context: ToolContext) -> None:
    """MB-0613."""
    html = (
        "<title>T</title><nav>no</nav><h1>Head</h1><p>Some <b>bold</b> text</p><script>x</script>"
    )
    async with serving({"/": answer(html.encode(), "text/html")}) as site:
        result = await fetch(tool_for(site), site.url(), context)
    assert output_of(result) == "Title: T\n\n# Head\n\nSome **bold** text"


async def test_raw_gives_the_source_of_html(context: ToolContext) -> None:
    """MB-0613."""
    async with serving({"/": answer(b"<p>x</p>", "text/html")}) as site:
        result = await fetch(tool_for(site), site.url(), context, raw=True)
    assert output_of(result) == "<p>x</p>"


async def test_other_text_comes_as_it_is(context: ToolContext) -> None:
    """MB-0613."""
    async with serving({"/": answer(b'{"a": "<b>"}', "application/json")}) as site:
        assert output_of(await fetch(tool_for(site), site.url(), context)) == '{"a": "<b>"}'


@pytest.mark.parametrize(
    "content_type", ["application/pdf", "image/png", "application/octet-stream", "text/html"]
)
async def test_binary_content_is_a_short_note(content_type: str, context: ToolContext) -> None:
    """MB-0609, MB-0613: whatever the content type says."""
    body = b"\x89PNG\r\n\x1a\n\x00\x00" * 100
    async with serving({"/": answer(body, content_type)}) as site:
        output = output_of(await fetch(tool_for(site), site.url(), context))
    assert content_type in output
    assert "1.0 kB" in output
    assert "is no text" in output
    assert len(output) < 300
    assert "\x89" not in output and "\ufffd" not in output


async def test_a_large_binary_body_is_not_waited_for(context: ToolContext) -> None:
    async def only_the_head(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: video/mp4\r\ncontent-length: 9000000000\r\n\r\n"
        )

    async with serving(handler=only_the_head) as site:
        output = output_of(await fetch(tool_for(site), site.url(), context))
    assert "video/mp4, 9.0 GB" in output


async def test_an_empty_page_says_so(context: ToolContext) -> None:
    async with serving({"/": answer(b"")}) as site:
        output = output_of(await fetch(tool_for(site), site.url(), context))
    assert output.startswith("[The page has no text.")


@pytest.mark.parametrize("status", [203, 204, 302, 304])
async def test_an_odd_status_is_told_with_the_page(status: int, context: ToolContext) -> None:
    """A redirect that names no address is one of them."""
    async with serving({"/": answer(b"", status=status)}) as site:
        output = output_of(await fetch(tool_for(site), site.url(), context))
    assert output.endswith(f"[It came with the status {status} Reason.]")


async def test_a_long_text_is_read_part_by_part_without_loss(context: ToolContext) -> None:
    """MB-0613."""
    whole = "\n".join(f"line {n} 한글" for n in range(12_000))
    async with serving({"/": answer(whole.encode())}) as site:
        tool, offset, parts = tool_for(site), 0, list[str]()
        while True:
            output = output_of(await fetch(tool, site.url(), context, offset=offset))
            text, _, notes = output.partition("\n\n[")
            assert len(text) <= MAX_CHARACTERS
            _, more, rest = notes.partition("More follow at offset ")
            parts.append(f"{text}\n" if more else text)
            if not more:
                break
            offset = int(rest.partition(".")[0])
        assert "".join(parts).replace("\n\n", "\n") == whole
        assert len(site.requests) == 1


async def test_an_offset_past_the_end_says_where_the_end_is(context: ToolContext) -> None:
    async with serving({"/": answer(b"short")}) as site:
        output = output_of(await fetch(tool_for(site), site.url(), context, offset=99))
    assert output == "[Offset 99 is past the end: the text has 5 characters.]"


@pytest.mark.parametrize("status", [400, 404, 500])
async def test_an_error_status_is_an_error_with_the_words_of_the_page(
    status: int, context: ToolContext
) -> None:
    async with serving({"/": answer(b"<p>No <b>such</b> thing", "text/html", status)}) as site:
        error = error_of(await fetch(tool_for(site), site.url(), context))
    assert f"answered {status}" in error
    assert "No **such** thing" in error


@pytest.mark.parametrize(
    ("charset", "words"),
    [("euc-kr", "안녕"), ("iso-8859-1", "déjà vu"), ("Shift_JIS", "日本語"), ("utf-8", "안녕")],
)
async def test_the_charset_of_the_header_is_understood(
    charset: str, words: str, context: ToolContext
) -> None:
    """MB-0606."""
    page = answer(words.encode(charset), f"text/plain; charset={charset}")
    async with serving({"/": page}) as site:
        assert output_of(await fetch(tool_for(site), site.url(), context)) == words


@pytest.mark.parametrize(
    ("before", "encoding"),
    [
        ('<meta charset="euc-kr">', "cp949"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=euc-kr">', "cp949"),
        ("\ufeff", "utf-8"),
        ('\ufeff<meta charset="euc-kr">', "utf-8"),
        ("\ufeff", "utf-16-le"),
    ],
    ids=["meta", "http-equiv", "mark", "mark against meta", "mark of UTF-16"],
)
async def test_the_charset_in_the_page_is_understood(
    before: str, encoding: str, context: ToolContext
) -> None:
    """MB-0607."""
    source = f"{before}<title>안녕</title><p>뷁"  # too short to be guessed
    async with serving({"/": answer(source.encode(encoding), "text/html")}) as site:
        output = output_of(await fetch(tool_for(site), site.url(), context))
    assert output == "Title: 안녕\n\n뷁"


async def test_a_page_of_inlined_style_and_deep_nesting_comes_back_with_its_words(
    context: ToolContext,
) -> None:
    """MB-0611: 1 MB of style in 40,000 rules, 20,000 nested elements, 2 kB of text."""
    words = "the words of the page " * 90
    rules = "".join(f".class-{n:05}{{color:red;}}" for n in range(40_000))
    style = f"<style>{rules}</style>"
    source = f"<title>Big</title>{style}{'<div>' * 20_000}<p>{words}</p>{'</div>' * 20_000}"
    assert len(style) > 900_000
    async with serving({"/": answer(source.encode(), "text/html")}) as site:
        running = fetch(tool_for(site), site.url(), context)
        output = output_of(await asyncio.wait_for(running, 30))
    assert words.strip() in output
    assert "color" not in output


# The request


async def test_the_request_is_an_honest_get_without_credentials(context: ToolContext) -> None:
    """MB-0613."""
    async with serving({"/a?b=%20": answer(b"x")}) as site:
        await fetch(tool_for(site), site.url("/a?b=%20#part"), context)
        (seen,) = site.requests
    assert seen.path == "/a?b=%20"
    assert seen.headers["host"] == site.host
    assert seen.headers["user-agent"].startswith("Midturn/")
    assert not {"cookie", "authorization", "referer"} & seen.headers.keys()
    assert "br" not in seen.headers["accept-encoding"]


async def test_http_stays_http(context: ToolContext) -> None:
    """MB-0608, MB-0613."""
    async with serving({"/about": answer(b"plain http")}) as site:
        assert output_of(await fetch(tool_for(site), site.url("/about"), context)) == "plain http"


# Redirects


async def test_redirects_on_the_same_host_are_followed_and_said(context: ToolContext) -> None:
    pages = {"/": redirect("/a"), "/a": redirect("b?x=1", 308), "/b?x=1": answer(b"here")}
    async with serving(pages) as site:
        output = output_of(await fetch(tool_for(site), site.url(), context))
    assert output == f"here\n\n[The page was redirected to {site.url('/b?x=1')}.]"


@pytest.mark.parametrize(("count", "arrives"), [(MAX_REDIRECTS, True), (MAX_REDIRECTS + 1, False)])
async def test_at_most_five_redirects_are_followed(
    count: int, arrives: bool, context: ToolContext
) -> None:
    """MB-0613."""
    pages = {f"/{n}": redirect(f"/{n + 1}") for n in range(count)} | {f"/{count}": answer(b"end")}
    async with serving(pages) as site:
        result = await fetch(tool_for(site), site.url("/0"), context)
        assert len(site.requests) == MAX_REDIRECTS + 1
    assert (result.error is None) == arrives
    assert arrives or "redirects more than 5 times" in error_of(result)


async def test_a_redirect_to_another_host_is_not_followed_but_named(context: ToolContext) -> None:
    """MB-0613."""
    async with serving() as site:
        network = Detour({80: site.port})
        names = Names({"a.example": [[PUBLIC]], "b.example": [[PUBLIC]]})
        site.pages["/"] = redirect("http://b.example/next")
        result = await fetch(tool_on(Network(names, network)), "http://a.example/", context)
        assert output_of(result).endswith("The page is at http://b.example/next")
        assert result.summary == "redirects to b.example"
        assert len(site.requests) == 1
    assert names.asked == ["a.example"]


async def test_a_redirect_inwards_is_refused_and_the_inner_server_sees_nothing(
    context: ToolContext,
) -> None:
    """MB-0602, MB-0612."""
    async with serving({"/secret": answer(b"secret")}) as inner, serving() as site:
        site.pages["/"] = redirect(inner.url("/secret"))
        error = error_of(await fetch(tool_for(site), site.url(), context))
        assert f"redirects to an address that is not followed: {inner.host} is refused" in error
        assert inner.connections == 0


async def test_a_redirect_from_https_down_to_http_is_refused(
    context: ToolContext, certificate: Certificate
) -> None:
    """MB-0613."""
    pages = {"/": redirect("http://docs.example/")}
    async with serving(pages, tls=certificate.server()) as site:
        network = Network(
            Names({"docs.example": [[PUBLIC]]}), Detour({443: site.port}), certificate.trust()
        )
        error = error_of(await fetch(tool_on(network), "https://docs.example/", context))
        assert len(site.requests) == 1
    assert "from https down" in error


# The address guard


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "0.0.0.0",
        "169.254.169.254",
        "10.0.0.1",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "0x7f.1",
    ],
)
async def test_an_address_of_this_machine_is_refused_before_any_question(host: str) -> None:
    """MB-0601, MB-0603, MB-0613."""
    async with serving() as site:
        inside = r"refused: it is (this machine|link-local|a private|not part)|no plain IPv4"
        with pytest.raises(InvalidInputError, match=inside):
            WebFetchTool(WebConfig()).validate({"url": f"http://{host}:{site.port}/"})
        assert site.connections == 0


async def test_an_allowed_port_of_this_machine_opens_no_other_one(context: ToolContext) -> None:
    """MB-0612."""
    async with serving({"/": answer(b"mine")}) as site, serving() as other:
        tool = tool_for(site)
        assert output_of(await fetch(tool, site.url(), context)) == "mine"
        with pytest.raises(InvalidInputError):
            tool.validate({"url": other.url()})
        assert other.connections == 0


async def test_a_name_that_leads_inside_is_refused_without_a_connection(
    context: ToolContext,
) -> None:
    """MB-0601."""
    async with serving() as site:
        network = Detour({80: site.port})
        tool = tool_on(Network(Names({"a.example": [[PUBLIC, "127.0.0.1"]]}), network))
        error = error_of(await fetch(tool, "http://a.example/", context))
        assert site.connections == 0
    assert "its address 127.0.0.1 is this machine" in error
    assert not network.dialled


async def test_a_name_is_resolved_once_and_the_connection_goes_to_what_was_checked(
    context: ToolContext,
) -> None:
    names = Names({"a.example": [[PUBLIC], ["127.0.0.1"]]})
    async with serving({"/": redirect("/next"), "/next": answer(b"same host")}) as site:
        network = Detour({80: site.port})
        result = await fetch(tool_on(Network(names, network)), "http://a.example/", context)
    assert output_of(result).startswith("same host")
    assert names.asked == ["a.example"]
    assert network.dialled == [(PUBLIC, 80)]


async def test_a_new_connection_within_one_fetch_is_checked_anew(context: ToolContext) -> None:
    names = Names({"a.example": [[PUBLIC], ["127.0.0.1"]]})

    async def close_after(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 302 Found\r\nlocation: /n\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        )

    async with serving(handler=close_after) as site:
        network = Detour({80: site.port})
        error = error_of(
            await fetch(tool_on(Network(names, network)), "http://a.example/", context)
        )
        assert site.connections == 1
    assert "127.0.0.1" in error


async def test_a_dead_address_is_followed_by_the_next_checked_one(context: ToolContext) -> None:
    names = Names({"a.example": [[PUBLIC, "93.184.216.35"]]})
    async with serving({"/": answer(b"second")}) as site:
        network = Detour({80: site.port}, dead=frozenset({PUBLIC}))
        result = await fetch(tool_on(Network(names, network)), "http://a.example/", context)
    assert output_of(result) == "second"
    assert names.asked == ["a.example"]


async def test_the_fetcher_itself_refuses_what_the_guard_refuses() -> None:
    names, network = Names({"a.example": [[PUBLIC]], "localhost": [[PUBLIC]]}), Detour({})
    fetcher = HttpFetcher(SsrfGuard(), Network(names, network))
    for url in ("http://127.0.0.1/", "http://a.example:22/", "http://localhost/"):
        with pytest.raises(AddressRefusedError):
            await fetcher.fetch(parse_web_address(url))
    assert not names.asked
    assert not network.dialled


def test_the_transport_still_goes_through_the_checked_backend() -> None:
    # The attribute is private to httpx: this notices a release that renames it.
    transport = CheckedTransport(SsrfGuard(), Network())
    pool: object = vars(transport)["_pool"]
    assert type(vars(pool)["_network_backend"]).__name__ == "CheckedBackend"


# TLS


async def test_host_sni_and_certificate_keep_the_name(
    context: ToolContext, certificate: Certificate
) -> None:
    async with serving({"/": answer(b"secure")}, tls=certificate.server()) as site:
        network = Network(
            Names({"docs.example": [[PUBLIC]]}), Detour({443: site.port}), certificate.trust()
        )
        result = await fetch(tool_on(network), "https://docs.example/", context)
        assert output_of(result) == "secure"
        assert site.requests[0].sni == "docs.example"
        assert site.requests[0].headers["host"] == "docs.example"


@pytest.mark.parametrize(
    ("host", "trusted", "words"),
    [
        ("other.example", True, "certificate of other.example:443 is not valid: Hostname mismatch"),
        ("docs.example", False, "certificate of docs.example:443 is not valid: self"),
    ],
)
async def test_a_certificate_that_is_not_valid_is_one_clear_sentence(
    host: str, trusted: bool, words: str, context: ToolContext, certificate: Certificate
) -> None:
    async with serving({"/": answer(b"x")}, tls=certificate.server()) as site:
        trust = certificate.trust() if trusted else ssl.create_default_context()
        network = Network(Names({host: [[PUBLIC]]}), Detour({443: site.port}), trust)
        error = error_of(await fetch(tool_on(network), f"https://{host}/", context))
        assert not site.requests
    assert words in error
    assert "\n" not in error


async def test_https_to_a_plain_server_is_one_clear_sentence(context: ToolContext) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer(b"I speak HTTP", status=400))
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    tool = WebFetchTool(WebConfig(allow_hosts=(host,)))
    error = error_of(await fetch(tool, f"https://{host}/", context))
    server.close()
    await server.wait_closed()
    assert f"No TLS connection to {host}" in error
    assert "\n" not in error


# Failures and limits


async def test_a_refused_connection_is_one_clear_sentence(context: ToolContext) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{unused.getsockname()[1]}"
        tool = WebFetchTool(WebConfig(allow_hosts=(host,)))
        error = error_of(await fetch(tool, f"http://{host}/", context))
    assert error == f"{host} refused the connection; nothing listens there."


async def test_a_name_without_an_address_is_one_clear_sentence(context: ToolContext) -> None:
    for names in (Names({}), Names({"a.example": [[]]})):
        error = error_of(await fetch(tool_on(Network(names)), "http://a.example/", context))
        assert error.startswith("The host name a.example ")
        assert "\n" not in error


async def test_the_real_resolver_answers_for_this_machine(context: ToolContext) -> None:
    async with serving({"/": answer(b"by name")}) as site:
        tool = WebFetchTool(WebConfig(allow_hosts=(f"localhost:{site.port}",)))
        result = await fetch(tool, f"http://localhost:{site.port}/", context)
    assert output_of(result) == "by name"


@pytest.mark.parametrize(
    "sent",
    [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"],
    ids=["nothing", "not-http", "half"],
)
async def test_a_connection_that_breaks_is_one_clear_sentence(
    sent: bytes, context: ToolContext
) -> None:
    async def break_off(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        writer.close()

    async with serving(handler=break_off) as site:
        error = error_of(await fetch(tool_for(site), site.url(), context))
    assert site.host in error
    assert "\n" not in error


SILENT = {
    "no answer": b"",
    "only a head": b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\n",
}


@pytest.mark.parametrize("head", SILENT.values(), ids=SILENT)
async def test_a_silent_server_ends_at_the_time_limit(head: bytes, context: ToolContext) -> None:
    """MB-0605."""

    async def stay_silent(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(head)

    async with serving(handler=stay_silent) as site:
        fetching = fetch(tool_for(site, timeout=0.3), site.url(), context)
        error = error_of(await asyncio.wait_for(fetching, 30))
        await asyncio.wait_for(site.gone.wait(), 30)
    assert error == "127.0.0.1 did not deliver the page within 0.3 s."


async def test_the_time_limit_holds_against_a_server_that_drips_bytes(context: ToolContext) -> None:
    """MB-0605."""

    async def drip(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with serving(handler=drip) as site:
        fetching = fetch(tool_for(site, timeout=0.5), site.url(), context)
        error = error_of(await asyncio.wait_for(fetching, 30))
        await asyncio.wait_for(site.gone.wait(), 30)
    assert "within 0.5 s" in error


async def test_an_endless_body_is_cut_at_the_limit_and_said(context: ToolContext) -> None:
    """MB-0604, MB-0613."""
    sent = 0

    async def endless(_: Seen, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/plain\r\n\r\n"
        )
        while True:
            writer.write(b"10000\r\n" + b"a" * 0x10000 + b"\r\n")
            await writer.drain()
            sent += 0x10000

    async with serving(handler=endless) as site:
        output = output_of(await fetch(tool_for(site), site.url(), context))
        await asyncio.wait_for(site.gone.wait(), 30)
    assert f"Characters 0-{MAX_CHARACTERS:,} of {MAX_BODY:,}" in output
    assert "only its first 5,000,000 bytes were read" in output
    assert sent < 4 * MAX_BODY


def _deflate(data: bytes, bits: int) -> bytes:
    packer = zlib.compressobj(wbits=bits)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b"hello")),
        ("x-gzip", gzip.compress(b"hel") + gzip.compress(b"lo")),
        ("deflate", _deflate(b"hello", zlib.MAX_WBITS)),
        ("deflate", _deflate(b"hello", -zlib.MAX_WBITS)),
        ("identity", b"hello"),
    ],
    # A gzip header holds the time: without names the tests would differ from process to process.
    ids=["gzip", "two gzip members", "deflate", "headerless deflate", "identity"],
)
async def test_compressed_bodies_are_read(encoding: str, body: bytes, context: ToolContext) -> None:
    async with serving({"/": answer(body, content_encoding=encoding)}) as site:
        assert output_of(await fetch(tool_for(site), site.url(), context)) == "hello"


async def test_a_compression_bomb_stops_at_the_limit(context: ToolContext) -> None:
    """MB-0604."""
    bomb = gzip.compress(b"a" * 50_000_000, 1)
    async with serving({"/": answer(bomb, content_encoding="gzip")}) as site:
        output = output_of(await fetch(tool_for(site), site.url(), context))
    assert "only its first 5,000,000 bytes were read" in output


@pytest.mark.parametrize(
    ("encoding", "body", "words"),
    [("gzip", b"not gzip at all", "damaged"), ("br", b"x", "encoding br")],
)
async def test_a_body_that_cannot_be_decoded_is_one_clear_sentence(
    encoding: str, body: bytes, words: str, context: ToolContext
) -> None:
    async with serving({"/": answer(body, content_encoding=encoding)}) as site:
        assert words in error_of(await fetch(tool_for(site), site.url(), context))


async def test_a_compressed_body_that_ends_early_says_so(context: ToolContext) -> None:
    body = gzip.compress(b"a" * 50 + b"\n" + bytes(range(97, 123)) * 40)
    async with serving({"/": answer(body[:-10], content_encoding="gzip")}) as site:
        output = output_of(await fetch(tool_for(site), site.url(), context))
    assert "broke off" in output


# Stopping, sharing, keeping


async def test_a_tripped_signal_stops_the_fetch_at_once(tmp_path: Path) -> None:
    """MB-0605."""
    signal = SignalSource()

    async def stay_silent(_: Seen, writer: asyncio.StreamWriter) -> None:
        pass

    async with serving(handler=stay_silent) as site:
        context = make_tool_context(tmp_path, signal=signal)
        running = asyncio.create_task(fetch(tool_for(site), site.url(), context))
        await asyncio.wait_for(site.arrived.wait(), 30)
        signal.trip(CancelReason.USER_MESSAGE)
        result = await asyncio.wait_for(running, 30)
        await asyncio.wait_for(site.gone.wait(), 30)
    assert result.stopped
    assert "the user sent a message" in output_of(result)


async def test_a_cancelled_call_closes_its_connection(context: ToolContext) -> None:
    async def stay_silent(_: Seen, writer: asyncio.StreamWriter) -> None:
        pass

    async with serving(handler=stay_silent) as site:
        running = asyncio.create_task(fetch(tool_for(site), site.url(), context))
        await asyncio.wait_for(site.arrived.wait(), 30)
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()
        await asyncio.wait_for(site.gone.wait(), 30)


async def test_equal_calls_at_once_share_one_request_and_one_may_stop(tmp_path: Path) -> None:
    signal, go = SignalSource(), asyncio.Event()

    async def answer_later(seen: Seen, writer: asyncio.StreamWriter) -> None:
        if seen.path != "/first":
            await go.wait()
        writer.write(answer(b"shared"))

    async with serving(handler=answer_later) as site:
        tool = tool_for(site)
        # Loads httpx, so that from here on every call gets to its request without a pause.
        await fetch(tool, site.url("/first"), make_tool_context(tmp_path))
        site.arrived.clear()
        contexts = [make_tool_context(tmp_path, signal=signal), *[make_tool_context(tmp_path)] * 3]
        running = [asyncio.create_task(fetch(tool, site.url("/#a"), each)) for each in contexts]
        await asyncio.wait_for(site.arrived.wait(), 30)
        signal.trip(CancelReason.CALL_CANCELLED)
        first = await asyncio.wait_for(running[0], 30)
        go.set()
        others = await asyncio.wait_for(asyncio.gather(*running[1:]), 30)
        assert [seen.path for seen in site.requests] == ["/first", "/"]
    assert first.stopped
    assert all(output_of(result).startswith("shared") for result in others)


async def test_a_page_is_kept_until_fresh_is_asked_for(context: ToolContext) -> None:
    """MB-0613."""
    async with serving({"/": answer(b"old")}) as site:
        tool = tool_for(site)
        await fetch(tool, site.url(), context)
        site.pages["/"] = answer(b"new")
        assert output_of(await fetch(tool, site.url(), context)).startswith("old")
        assert output_of(await fetch(tool, site.url(), context, fresh=True)) == "new"
        assert len(site.requests) == 2


# What the tool says of itself


def test_making_the_tool_loads_no_library_of_the_web() -> None:
    script = (
        "import sys, midturn_tools.web_fetch as w\n"
        "from midturn_core.config import WebConfig\n"
        "w.WebFetchTool(WebConfig()).validate({'url': 'https://example.com/'})\n"
        "heavy = {'httpx', 'httpcore', 'selectolax', 'html_to_markdown', 'charset_normalizer'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)\n"
    )
    done = run_python(["-c", script], environ=midturn_environment())
    assert done.returncode == 0, done.stderr.decode()


def test_httpx_is_known_to_one_module_only() -> None:
    sources = (ROOT / "tools").rglob("*.py")
    users = [
        path.name for path in sources if re.search(r"import (httpx|httpcore)\b", path.read_text())
    ]
    assert users == ["http.py"]


def test_it_may_run_beside_others_and_stops_when_asked() -> None:
    tool = WebFetchTool(WebConfig())
    assert tool.get_concurrency_behavior() is ConcurrencyBehavior.CONCURRENT_SAFE
    assert tool.get_interrupt_behavior() is InterruptBehavior.COOPERATIVE


def test_permission_is_asked_for_the_host_with_the_whole_address(context: ToolContext) -> None:
    tool = WebFetchTool(WebConfig())
    url = "https://Bücher.Example.:443/a?b=c#d"
    assert tool.describe({"url": url}) == url
    assert tool.access({"url": url}, context) == (
        HostAccess("https://xn--bcher-kva.example/a?b=c", "xn--bcher-kva.example"),
    )


@pytest.mark.parametrize(
    "tool_input",
    [
        {},
        {"url": ""},
        {"url": "example.com"},
        {"url": "file:///etc/passwd"},
        {"url": "https://user:pw@example.com/"},
        {"url": "https://example.com:22/"},
        {"url": "https://example.com/", "offset": -1},
        {"url": "https://example.com/", "method": "POST"},
        {"url": "https://example.com/\ud800"},
    ],
)
def test_bad_input_is_refused_with_a_reason(tool_input: dict[str, JsonValue]) -> None:
    with pytest.raises(InvalidInputError) as refused:
        WebFetchTool(WebConfig()).validate(tool_input)
    str(refused.value).encode()  # no lone surrogate reaches the model


def test_the_description_states_the_limits_that_the_code_has() -> None:
    """MB-0613."""
    description = WebFetchTool(WebConfig()).description
    promised: Sequence[str] = (
        f"{MAX_CHARACTERS:,} characters",
        f"at most {MAX_REDIRECTS};",
        f"{MAX_BODY // 1_000_000} MB",
        "5 minutes",
        "80, 443, 8080 and 8443",
    )
    for words in promised:
        assert words in description
