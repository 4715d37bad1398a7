"""Reads a web address in one way only: what two readers could understand differently is refused.

The host comes out as every later step uses it (permission, look-up, Host header, certificate):
lower-case, in its ASCII form, without a trailing dot; an IPv6 address without brackets.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from dataclasses import dataclass
from encodings import idna
from typing import TypeAlias
from urllib.parse import quote, urljoin

IpAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

MAX_URL = 8_000
_DEFAULT_PORTS = {"http": 80, "https": 443}
_SHAPE = re.compile(
    r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<target>[^#]*)(?P<fragment>#.*)?",
    # ASCII: without it, U+017F would count as the s of https.
    re.ASCII | re.IGNORECASE,
)
_AUTHORITY = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]]+)(?::(?P<port>[1-9][0-9]{0,4}))?")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_ASCII_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))


class AddressRefusedError(Exception):
    """An address that is not fetched. ``str(error)`` is one sentence: what, and why."""


@dataclass(frozen=True, slots=True)
class WebAddress:
    """An http or https address that has exactly one reading."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query as they are sent."""

    @property
    def url(self) -> str:
        """The address as it is fetched: without a fragment, the port only where it says something."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.target}"


def parse_web_address(url: str) -> WebAddress:
    """Read an absolute address.

    Raises:
        AddressRefusedError: it is no http or https address, or has more than one reading.
    """
    _check_characters(url)
    shape = _SHAPE.fullmatch(url)
    if shape is None:
        raise AddressRefusedError("it must begin with http:// or https:// and a host")
    target = shape["target"]
    if not target.startswith("/"):
        if "@" in target + (shape["fragment"] or ""):
            raise AddressRefusedError("an @ before the first / could hide the real host")
        target = f"/{target}"
    scheme = shape["scheme"].lower()
    host, port = _read_authority(shape["authority"])
    encoded = quote(target, safe=_ASCII_PRINTABLE)
    return WebAddress(scheme, host, port or _DEFAULT_PORTS[scheme], encoded)


def join_web_address(base: WebAddress, location: str) -> WebAddress:
    """Where a redirect leads.

    Raises:
        AddressRefusedError: as ``parse_web_address``.
    """
    _check_characters(location)
    if _SCHEME.match(location):
        return parse_web_address(location)
    return parse_web_address(urljoin(base.url, location))


def read_host_and_port(entry: str) -> tuple[str, int | None]:
    """Read ``host`` or ``host:port`` as a configuration has it.

    Raises:
        AddressRefusedError: it is neither.
    """
    _check_characters(entry)
    bare_ipv6 = entry.count(":") > 1 and not entry.startswith("[")
    return _read_authority(f"[{entry}]" if bare_ipv6 else entry)


def literal_address(host: str) -> IpAddress | None:
    """The address that a host of a ``WebAddress`` is; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _check_characters(url: str) -> None:
    if len(url) > MAX_URL:
        raise AddressRefusedError(f"it is longer than {MAX_URL:,} characters")
    for character in url:
        if character in " \\" or not character.isprintable():
            code = f"U+{ord(character):04X}"
            raise AddressRefusedError(
                f"it holds {code}, which belongs into an address only encoded"
            )


def _read_authority(authority: str) -> tuple[str, int | None]:
    if "@" in authority:
        raise AddressRefusedError("a user name or password in an address is not sent")
    if "%" in authority:
        raise AddressRefusedError("percent signs have no place in a host")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise AddressRefusedError("its host or port is not readable")
    port = int(parts["port"]) if parts["port"] else None
    if port is not None and port > 65_535:
        raise AddressRefusedError(f"there is no port {port}")
    return _read_host(parts["host"]), port


def _read_host(written: str) -> str:
    if written.startswith("["):
        try:
            return str(ipaddress.IPv6Address(written[1:-1]))
        except ValueError:
            raise AddressRefusedError(f"{written} is no IPv6 address") from None
    labels = [_read_label(label) for label in written.removesuffix(".").split(".")]
    host = ".".join(labels)
    if len(host) > 253:
        raise AddressRefusedError("its host is longer than 253 characters")
    if labels[-1][0].isdigit():
        # No top-level name begins with a digit; readers turn the other spellings (octal,
        # hexadecimal, fewer parts) into addresses of their own.
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise AddressRefusedError(f"{host} is a number but no plain IPv4 address") from None
    return host


def _read_label(written: str) -> str:
    label = _to_ascii(written) if not written.isascii() else written.lower()
    if not _LABEL.fullmatch(label):
        raise AddressRefusedError(f"{written!r} is no part of a host name")
    if label.startswith("xn--"):
        _check_punycode(label)
    return label


def _to_ascii(written: str) -> str:
    """The punycode form, for labels that all versions of IDNA read alike."""
    label = unicodedata.normalize("NFC", written).lower()
    try:
        is_stable = idna.nameprep(label) == label and all(map(_is_letter, label))
        if is_stable:
            return idna.ToASCII(label).decode("ascii")
    except UnicodeError:
        pass
    raise AddressRefusedError(f"{written!r} is read in different ways; write it in punycode")


def _is_letter(character: str) -> bool:
    return character.isascii() or unicodedata.category(character)[0] in "LM"


def _check_punycode(label: str) -> None:
    encoded = label.removeprefix("xn--")
    try:
        decoded = encoded.encode("ascii").decode("punycode")
        is_honest = (
            not decoded.isascii()
            and decoded.isprintable()
            and unicodedata.normalize("NFKC", decoded).lower() == decoded
            and decoded.encode("punycode").decode("ascii") == encoded
        )
    except UnicodeError:
        is_honest = False
    if not is_honest:
        raise AddressRefusedError(f"{label} is no valid punycode")
