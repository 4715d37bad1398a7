"""Which proxy the environment names for an address: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import urlsplit

from midturn_tools._web_address import (
    AddressRefusedError,
    WebAddress,
    literal_address,
    read_host_and_port,
)
from midturn_tools._web_page import FetchError

_DEFAULT_PORTS = {"http": 80, "https": 443}
_NO_USE = 'An entry in NO_PROXY, or [web] proxy = "none", makes fetches go without one.'


@dataclass(frozen=True, slots=True)
class WebProxy:
    """A proxy of HTTP. ``url`` may hold a password, ``shown`` does not."""

    url: str = field(repr=False)
    shown: str


Proxies: TypeAlias = Callable[[WebAddress], WebProxy | None]
"""The proxy for an address; None: straight to it. Raises ``FetchError`` for one of no use."""


def no_proxies(_: WebAddress) -> WebProxy | None:
    return None


def environment_proxies(
    address: WebAddress, environ: Mapping[str, str] = os.environ
) -> WebProxy | None:
    """
    Raises:
        FetchError: the one that is named is no HTTP proxy.
    """
    variable = f"{address.scheme}_proxy"
    url = _value(variable, environ)
    if not url:
        variable = "all_proxy"
        url = _value(variable, environ)
    if not url or _is_excepted(address, _value("no_proxy", environ)):
        return None
    return _read(url if "://" in url else f"http://{url}", variable.upper())


def _value(variable: str, environ: Mapping[str, str]) -> str:
    """The lower-case name wins, even when it is empty; so it is with other programs."""
    names = (variable, variable.upper())
    return next((environ[name].strip() for name in names if name in environ), "")


def _read(url: str, variable: str) -> WebProxy:
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme.lower(), parts.hostname, parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if scheme not in _DEFAULT_PORTS or not host:
        kind = f"a proxy of the kind {scheme}" if scheme and host else "no readable address"
        raise FetchError(f"{variable} names {kind}; WebFetch uses http and https ones. {_NO_USE}")
    shown = f"[{host}]" if ":" in host else host
    return WebProxy(url, f"{shown}:{port or _DEFAULT_PORTS[scheme]}")


def _is_excepted(address: WebAddress, entries: str) -> bool:
    return any(_fits(entry, address) for entry in re.split(r"[,\s]+", entries) if entry)


def _fits(entry: str, address: WebAddress) -> bool:
    """Whether ``*``, a network, a host or a domain, with or without a port, covers an address."""
    if entry == "*":
        return True
    try:
        if "/" in entry:
            literal = literal_address(address.host)
            return literal is not None and literal in ipaddress.ip_network(entry, strict=False)
        host, port = read_host_and_port(entry.removeprefix("*").removeprefix("."))
    except (AddressRefusedError, ValueError):
        return False
    covers = address.host == host or address.host.endswith(f".{host}")
    return covers and port in (None, address.port)
