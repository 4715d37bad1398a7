"""The guard's configuration and table of addresses, and the one way an address is read."""

from __future__ import annotations

import pytest

from midturn_core.config import WebConfig
from midturn_tools._web_address import (
    AddressRefusedError,
    join_web_address,
    parse_web_address,
    read_host_and_port,
)
from midturn_tools.url_guard import SsrfGuard, SsrfGuardConfig


def is_refused(guard: SsrfGuard, url: str) -> bool:
    try:
        guard.check(parse_web_address(url))
    except AddressRefusedError:
        return True
    return False


def trusting(*entries: str) -> SsrfGuard:
    return SsrfGuard(SsrfGuardConfig.of(WebConfig(allow_hosts=entries)))


def test_the_default_guard_refuses_what_is_not_public() -> None:
    guard = SsrfGuard()
    assert is_refused(guard, "http://127.0.0.1/")
    assert is_refused(guard, "http://intranet.localhost/")
    assert not is_refused(guard, "http://example.com/")


def test_an_empty_list_of_hosts_allows_nothing() -> None:
    assert is_refused(trusting(), "http://10.0.0.1/")


def test_a_trusted_host_may_have_a_private_address() -> None:
    guard = SsrfGuard(SsrfGuardConfig.builder().allow_host("internal.host").build())
    guard.check(parse_web_address("http://internal.host/"))
    guard.check_resolved("internal.host", 80, ["10.1.2.3"])
    with pytest.raises(AddressRefusedError, match=r"evil-internal\.host"):
        guard.check_resolved("evil-internal.host", 80, ["10.1.2.3"])
    with pytest.raises(AddressRefusedError):
        guard.check_resolved("sub.internal.host", 80, ["10.1.2.3"])


def test_an_entry_without_a_port_opens_the_ports_of_the_policy_only() -> None:
    guard = trusting("127.0.0.1")
    assert not is_refused(guard, "http://127.0.0.1:8080/")
    assert is_refused(guard, "http://127.0.0.1:6379/")


def test_an_entry_with_a_port_opens_exactly_that_port() -> None:
    guard = trusting("127.0.0.1:6379", "example.com:3000")
    assert not is_refused(guard, "http://127.0.0.1:6379/")
    assert is_refused(guard, "http://127.0.0.1/")
    assert is_refused(guard, "http://127.0.0.1:6380/")
    assert not is_refused(guard, "http://example.com:3000/")
    assert is_refused(guard, "http://example.com:3001/")
    with pytest.raises(AddressRefusedError):
        guard.check_resolved("example.com", 443, ["10.0.0.1"])


def test_a_disabled_guard_lets_every_readable_address_through() -> None:
    guard = SsrfGuard(SsrfGuardConfig.of(WebConfig(ssrf_guard=False)))
    guard.check(parse_web_address("http://127.0.0.1:6379/"))
    guard.check_resolved("x.example", 80, ["169.254.169.254"])
    assert SsrfGuardConfig.of(WebConfig(ssrf_guard=False)) == SsrfGuardConfig.disabled()


@pytest.mark.parametrize(
    "entry", ["", "http://a.example", "a.example/x", "a b", "u@a.example", "a:0"]
)
def test_an_entry_that_is_no_host_is_an_error_that_shows_it(entry: str) -> None:
    with pytest.raises(ValueError, match="allow_hosts"):
        SsrfGuardConfig.builder().allow_host(entry)


def test_one_bad_address_refuses_the_host_whatever_its_place() -> None:
    for answer in (["93.184.216.34", "10.0.0.1"], ["10.0.0.1", "93.184.216.34"]):
        with pytest.raises(AddressRefusedError, match=r"10\.0\.0\.1"):
            SsrfGuard().check_resolved("mixed.example", 80, answer)


@pytest.mark.parametrize(
    "address",
    [
        *("224.0.0.1", "239.255.255.255", "100.127.255.255", "168.63.129.16", "192.0.0.192"),
        *("::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::808:808"),
        *("2002:7f00:1::", "2002:808:808::", "2001:0:808:808::1", "fec0::1", "3fff:fff::1"),
        *("5f00::1", "ff02::1", "::", "fe80::1%eth0", "100::1", "2001:db8::1", "not an address"),
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(AddressRefusedError):
        SsrfGuard().check_resolved("x.example", 80, [address])


@pytest.mark.parametrize("address", ["8.8.8.8", "2a00::1", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_a_public_address_passes_in_every_honest_form(address: str) -> None:
    SsrfGuard().check_resolved("x.example", 80, [address])


def test_the_refusal_says_what_why_and_how_to_allow_it() -> None:
    with pytest.raises(AddressRefusedError) as refused:
        SsrfGuard().check(parse_web_address("http://127.0.0.1:9000/"))
    message = str(refused.value)
    assert "127.0.0.1:9000 is refused" in message
    assert "this machine" in message
    assert '"127.0.0.1:9000" in allow_hosts' in message


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("HTTP://Example.COM:80", "http://example.com/"),
        ("https://example.com.:443/a#part", "https://example.com/a"),
        ("https://example.com?q=a/b", "https://example.com/?q=a/b"),
        ("https://실례.테스트/길?q=값", "https://xn--9n2bp8q.xn--9t4b11yi5a/%EA%B8%B8?q=%EA%B0%92"),
        ("http://BÜCHER.example/%20", "http://xn--bcher-kva.example/%20"),
        ("http://bu\u0308cher.example/", "http://xn--bcher-kva.example/"),
        ("http://[2A00:0:0::1]:8080/x", "http://[2a00::1]:8080/x"),
    ],
)
def test_an_address_is_read_in_its_canonical_form(url: str, read: str) -> None:
    assert parse_web_address(url).url == read


@pytest.mark.parametrize(
    "url",
    [
        *("httpſ://example.com/", "http://straße.de/", "http://a..b/", "http://.a/", "http://a-/"),
        *("http://loc\ufe00alhost/", "http://a\u034fb.example/", "http://xn--a/", "http://x.1a/"),
        *(
            "http://example.com:/",
            "http://example.com:080/",
            "http://[::1%25lo]/",
            "http://[1.2.3.4]/",
        ),
        *("http://example.com?@127.0.0.1/", "http://a\u202eb.example/", "http://a/\ud800"),
        f"http://example.com/{'a' * 8_000}",
    ],
)
def test_an_address_with_two_readings_is_refused(url: str) -> None:
    with pytest.raises(AddressRefusedError):
        parse_web_address(url)


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/b", "http://example.com:8080/b"),
        ("c?x=1", "http://example.com:8080/a/c?x=1"),
        ("?x=1", "http://example.com:8080/a/?x=1"),
        ("//other.example/", "http://other.example/"),
        ("HTTPS://Other.Example", "https://other.example/"),
    ],
)
def test_a_redirect_is_read_relative_to_its_page(location: str, target: str) -> None:
    base = parse_web_address("http://example.com:8080/a/")
    assert join_web_address(base, location).url == target


@pytest.mark.parametrize(
    "location", ["http:/x", "http:x", "/a\tb", "\\\\127.0.0.1\\", "mailto:a@b.c"]
)
def test_a_redirect_with_two_readings_is_refused(location: str) -> None:
    with pytest.raises(AddressRefusedError):
        join_web_address(parse_web_address("http://example.com/"), location)


def test_a_configured_host_is_read_like_the_host_of_an_address() -> None:
    assert read_host_and_port("Docs.Internal.:8000") == ("docs.internal", 8000)
    assert read_host_and_port("::1") == ("::1", None)
    assert read_host_and_port("[::1]:80") == ("::1", 80)
