"""Keeps WebFetch out of this machine and its networks (S1.56, D45).

An address is checked twice: as written, before any look-up, and as resolved, right before the
connection goes to the very address that was checked (``http.py``; S1.57). The table of address
ranges is our own: the one of Python 3.11 calls multicast, ``::127.0.0.1``, NAT64 and 6to4 forms
of loopback, ``fec0::/10`` and others global.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from midturn_core.config import WebConfig
from midturn_tools._web_address import (
    AddressRefusedError,
    IpAddress,
    WebAddress,
    literal_address,
    read_host_and_port,
)

WEB_PORTS: Final = frozenset({80, 443, 8080, 8443})

_IPV4_REFUSED: Final = tuple(
    (ipaddress.IPv4Network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", "this machine"),
        ("10.0.0.0/8", "a private network"),
        ("100.64.0.0/10", "a carrier's inner network"),
        ("127.0.0.0/8", "this machine"),
        ("168.63.129.16/32", "a cloud provider's inner service"),
        ("169.254.0.0/16", "link-local, where clouds keep their metadata"),
        ("172.16.0.0/12", "a private network"),
        ("192.0.0.0/24", "reserved for protocols"),
        ("192.0.2.0/24", "reserved for documentation"),
        ("192.88.99.0/24", "an abandoned relay range"),
        ("192.168.0.0/16", "a private network"),
        ("198.18.0.0/15", "reserved for benchmarks"),
        ("198.51.100.0/24", "reserved for documentation"),
        ("203.0.113.0/24", "reserved for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved or broadcast"),
    )
)
_IPV6_GLOBAL: Final = ipaddress.IPv6Network("2000::/3")
_IPV6_REFUSED: Final = tuple(
    (ipaddress.IPv6Network(network), reason)
    for network, reason in (
        ("2001::/23", "reserved for protocols, tunnels among them"),
        ("2001:db8::/32", "reserved for documentation"),
        ("2002::/16", "a tunnel (6to4) to an address that is not seen"),
        ("3fff::/20", "reserved for documentation"),
    )
)
_MAPPED: Final = ipaddress.IPv6Network("::ffff:0:0/96")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_LOW_32_BITS: Final = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class AllowedHost:
    """A host that may have any address; ``port`` None: on the ports of the policy."""

    host: str
    port: int | None = None


@dataclass(frozen=True, slots=True)
class SsrfGuardConfig:
    """What the guard lets through. The default is the secure one: nothing beyond the public web."""

    enabled: bool = True
    allow_hosts: frozenset[AllowedHost] = frozenset()
    ports: frozenset[int] = WEB_PORTS

    @staticmethod
    def disabled() -> SsrfGuardConfig:
        """No check of addresses and ports at all. Unreadable addresses are refused even so."""
        return SsrfGuardConfig(enabled=False)

    @staticmethod
    def builder() -> SsrfGuardConfigBuilder:
        return SsrfGuardConfigBuilder()

    @staticmethod
    def of(config: WebConfig) -> SsrfGuardConfig:
        """
        Raises:
            ValueError: an entry of ``allow_hosts`` is no host.
        """
        if not config.ssrf_guard:
            return SsrfGuardConfig.disabled()
        builder = SsrfGuardConfig.builder()
        for entry in config.allow_hosts:
            builder.allow_host(entry)
        return builder.build()


class SsrfGuardConfigBuilder:
    def __init__(self) -> None:
        self._hosts: set[AllowedHost] = set()

    def allow_host(self, entry: str) -> SsrfGuardConfigBuilder:
        """Trust ``host`` on the ports of the policy, or ``host:port`` on exactly that port.

        Raises:
            ValueError: the entry is no host.
        """
        try:
            self._hosts.add(AllowedHost(*read_host_and_port(entry)))
        except AddressRefusedError as error:
            raise ValueError(f"allow_hosts: {entry!r} is not host or host:port: {error}") from None
        return self

    def build(self) -> SsrfGuardConfig:
        return SsrfGuardConfig(allow_hosts=frozenset(self._hosts))


class SsrfGuard:
    """Decides which addresses may be fetched. Immutable, so safe on any thread."""

    def __init__(self, config: SsrfGuardConfig | None = None) -> None:
        self._config = config or SsrfGuardConfig()

    def check(self, address: WebAddress) -> None:
        """Check an address as it is written; nothing is looked up.

        Raises:
            AddressRefusedError: it leads inside, or to a port that is not for the web.
        """
        host, port = address.host, address.port
        if self._is_free(host, port):
            return
        if host == "localhost" or host.endswith(".localhost"):
            raise AddressRefusedError(_refusal(host, port, "it is this machine"))
        self._check_literal(host, port)
        if port not in self._config.ports:
            ports = ", ".join(map(str, sorted(self._config.ports)))
            raise AddressRefusedError(_refusal(host, port, f"only the ports {ports} are open"))

    def check_resolved(self, host: str, port: int, addresses: Sequence[str]) -> None:
        """Check everything a host was resolved to; one bad address refuses the host.

        Raises:
            AddressRefusedError: an address leads inside.
        """
        if self._is_free(host, port):
            return
        for address in addresses:
            reason = _why_refused(literal_address(address))
            if reason:
                raise AddressRefusedError(
                    _refusal(host, port, f"its address {address} is {reason}")
                )

    def _check_literal(self, host: str, port: int) -> None:
        literal = literal_address(host)
        reason = _why_refused(literal) if literal is not None else ""
        if reason:
            raise AddressRefusedError(_refusal(host, port, f"it is {reason}"))

    def _is_free(self, host: str, port: int) -> bool:
        config = self._config
        if not config.enabled or AllowedHost(host, port) in config.allow_hosts:
            return True
        return port in config.ports and AllowedHost(host) in config.allow_hosts


def _refusal(host: str, port: int, reason: str) -> str:
    shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return (
        f"{shown} is refused: {reason}. Only the user can allow it, with "
        f'"{shown}" in allow_hosts of the [web] configuration'
    )


def _why_refused(address: IpAddress | None) -> str:
    """What an address is that is not part of the public internet; empty for one that is."""
    if address is None:
        return "not readable"
    if isinstance(address, ipaddress.IPv4Address):
        return next((reason for net, reason in _IPV4_REFUSED if address in net), "")
    if address.scope_id is not None:
        return "bound to one network interface"
    if address in _MAPPED or address in _NAT64:
        return _why_refused(ipaddress.IPv4Address(int(address) & _LOW_32_BITS))
    if address not in _IPV6_GLOBAL:
        return "not part of the public internet"
    return next((reason for net, reason in _IPV6_REFUSED if address in net), "")
