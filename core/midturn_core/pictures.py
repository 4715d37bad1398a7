"""Files as pictures for the model: judged by their content, never by their name.

PNG, JPEG, GIF and WebP within the service's limits become an ``ImageBlock``; everything else is
refused with the reason, so that nothing that the service would refuse ever enters a history.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from midturn_core.errors import NotAPictureError, PictureError
from midturn_core.model.messages import (
    MAX_PICTURE_BYTES,
    MAX_PICTURE_SIDE,
    PICTURE_KINDS,
    ImageBlock,
)

SUFFIXES = frozenset(
    (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".svg", ".ico")
    + (".heic", ".heif", ".avif")
)
"""Names of files that people take for pictures; for what is said of one that is refused."""
HEAD_BYTES = 256 * 1024
"""The beginning of a file in which its dimensions are looked for when it is not read whole."""

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_FOREIGN_SIGNATURES = (
    (b"II*\0", "a TIFF picture"),
    (b"MM\0*", "a TIFF picture"),
    (b"\0\0\1\0", "an ICO picture"),
)
_SVG_HEAD = 1024
_NO_FRAME_HEADERS = frozenset({0xC4, 0xC8, 0xCC})
"""Markers of JPEG that lie among those of the frame headers."""


def read_picture(data: bytes, name: str) -> ImageBlock:
    """The picture that a file's whole content is.

    Raises:
        NotAPictureError: it is none.
        PictureError: it is of a kind, or of a size, that the service does not take.
    """
    media_type = media_type_of(data)
    if media_type is None:
        raise _foreign(data)
    if len(data) > MAX_PICTURE_BYTES:
        raise _too_large(len(data))
    size = dimensions(data)
    if size is None or 0 in size:
        raise PictureError(f"is a damaged {PICTURE_KINDS[media_type]} file")
    if max(size) > MAX_PICTURE_SIDE:
        width, height = size
        raise PictureError(
            f"has {width}×{height} pixels, and the service takes {MAX_PICTURE_SIDE} a side at most"
        )
    return ImageBlock(media_type, data, name, *size)


def load_picture(path: Path) -> ImageBlock:
    """The picture in a file. Never waits for a file that is none, such as a FIFO.

    Raises:
        NotAPictureError, PictureError: as ``read_picture``.
        OSError: it cannot be read.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise NotAPictureError("is no file")
    with open(descriptor, "rb") as file:
        data = file.read(HEAD_BYTES)
        if media_type_of(data) is None:
            raise _foreign(data)
        if found.st_size > MAX_PICTURE_BYTES:
            raise _too_large(found.st_size)
        data += file.read(MAX_PICTURE_BYTES + 1 - len(data))
    return read_picture(data, path.name)


def media_type_of(head: bytes) -> str | None:
    """The media type of a picture that the service takes; None for anything else."""
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for mark, kind in _SIGNATURES if head.startswith(mark)), None)


def dimensions(head: bytes) -> tuple[int, int] | None:
    """Width and height in pixels, from the header; None when it is not there or damaged."""
    reader = _READERS.get(media_type_of(head) or "")
    return reader(head) if reader is not None else None


def size_text(size: int) -> str:
    """``640 B``, ``83 kB`` or ``1.2 MB``."""
    if size < 1000:
        return f"{size} B"
    return f"{size / 1000:.0f} kB" if size < 999_500 else f"{size / 1_000_000:.1f} MB"


def described(picture: ImageBlock) -> str:
    """``PNG, 1280×720, 83 kB``"""
    return f"{picture.kind}, {picture.width}×{picture.height}, {size_text(len(picture.data))}"


def _too_large(size: int) -> PictureError:
    return PictureError(
        f"has {size_text(size)}, and the service takes {size_text(MAX_PICTURE_BYTES)} at most"
        " (5 MiB once encoded); make it smaller first"
    )


def _foreign(data: bytes) -> PictureError:
    kind = _foreign_kind(data)
    if kind is None:
        return NotAPictureError("is no picture, whatever its name says")
    return PictureError(f"is {kind}, and the service takes PNG, JPEG, GIF and WebP")


def _foreign_kind(data: bytes) -> str | None:
    for mark, kind in _FOREIGN_SIGNATURES:
        if data.startswith(mark):
            return kind
    if data.startswith(b"BM") and data[6:10] == bytes(4):
        return "a BMP picture"
    if data[4:8] == b"ftyp" and data[8:12] in (b"heic", b"heix", b"mif1", b"msf1", b"avif"):
        return "an AVIF picture" if data[8:12] == b"avif" else "a HEIC picture"
    text = data[:_SVG_HEAD].lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith(b"<svg") or (text.startswith((b"<?xml", b"<!")) and b"<svg" in text):
        return "an SVG picture"
    return None


def _png(data: bytes) -> tuple[int, int] | None:
    if data[12:16] != b"IHDR" or len(data) < 24:
        return None
    return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])


def _gif(data: bytes) -> tuple[int, int] | None:
    if len(data) < 10:
        return None
    return _little(data[6:8]), _little(data[8:10])


def _jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:  # these have no content
            at += 2
        elif 0xC0 <= marker <= 0xCF and marker not in _NO_FRAME_HEADERS:
            return int.from_bytes(data[at + 7 : at + 9]), int.from_bytes(data[at + 5 : at + 7])
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4])
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8 " if len(data) >= 30 and data[23:26] == b"\x9d\x01\x2a":
            return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
        case b"VP8L" if len(data) >= 25 and data[20] == 0x2F:
            bits = _little(data[21:25])
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X" if len(data) >= 30:
            return _little(data[24:27]) + 1, _little(data[27:30]) + 1
        case _:
            return None


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")


_READERS: dict[str, Callable[[bytes], tuple[int, int] | None]] = {
    "image/png": _png,
    "image/gif": _gif,
    "image/jpeg": _jpeg,
    "image/webp": _webp,
}
