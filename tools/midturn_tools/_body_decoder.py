"""Undoes the compression of a body under a limit, so that a few bytes never become gigabytes."""

from __future__ import annotations

import zlib

from midturn_tools._web_page import FetchError

ACCEPTED = "gzip, deflate"
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_BITS = 16 + zlib.MAX_WBITS


class BodyDecoder:
    """Decodes ``gzip``, ``deflate`` and plain bodies piece by piece."""

    def __init__(self, content_encoding: str) -> None:
        """
        Raises:
            FetchError: the server used an encoding that was not offered.
        """
        encoding = content_encoding.strip().lower()
        if encoding in ("", "identity"):
            self._inflate = None
        elif encoding in ("gzip", "x-gzip"):
            self._inflate = zlib.decompressobj(_GZIP_BITS)
        elif encoding == "deflate":
            self._inflate = zlib.decompressobj()
        else:
            raise FetchError(f"The server sent the encoding {encoding}, which was not asked for.")
        self._is_gzip = encoding in ("gzip", "x-gzip")
        self._waiting = b""
        self._fed = False

    def feed(self, data: bytes, room: int) -> bytes:
        """At most ``room`` (at least 1) bytes of what ``data`` decodes to; the rest is dropped.

        Raises:
            FetchError: the data is damaged.
        """
        if self._inflate is None:
            return data[:room]
        data = self._waiting + data
        if not self._fed and len(data) < len(_GZIP_MAGIC):
            self._waiting = data
            return b""
        try:
            return self._inflated(data, room)
        except zlib.error:
            raise FetchError("The server sent damaged compressed data.") from None

    @property
    def is_complete(self) -> bool:
        """Whether the data ended where the compression says it ends."""
        return self._inflate is None or self._inflate.eof or not (self._fed or self._waiting)

    def _inflated(self, data: bytes, room: int) -> bytes:
        decoded = self._next(data, room) if self._fed else self._first(data, room)
        # A gzip body may consist of several members; what else follows is padding.
        while self._is_gzip and len(decoded) < room and (rest := self._rest()):
            if not _GZIP_MAGIC.startswith(rest[: len(_GZIP_MAGIC)]):
                break
            self._inflate = zlib.decompressobj(_GZIP_BITS)
            decoded += self._inflate.decompress(rest, room - len(decoded))
        return decoded

    def _rest(self) -> bytes:
        return self._inflate.unused_data if self._inflate is not None else b""

    def _next(self, data: bytes, room: int) -> bytes:
        assert self._inflate is not None
        return self._inflate.decompress(data, room)

    def _first(self, data: bytes, room: int) -> bytes:
        self._fed = True
        self._waiting = b""
        try:
            return self._next(data, room)
        except zlib.error:
            if self._is_gzip:
                raise
            # Some servers send deflate without the zlib header that the standard asks for.
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._next(data, room)
