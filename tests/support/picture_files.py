"""Small picture files of all kinds, made as their formats say."""

from __future__ import annotations

import zlib


def png(width: int = 3, height: int = 2, *, padding: int = 0) -> bytes:
    """A whole picture; ``padding`` bytes more in a chunk that nobody shows."""
    rows = (b"\0" + b"\x7f" * width) * height if width * height <= 10_000 else b""
    header = width.to_bytes(4) + height.to_bytes(4) + b"\x08\0\0\0\0"
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    if padding:
        chunks.insert(1, (b"tEXt", b"Comment\0" + b"x" * padding))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def gif(width: int = 3, height: int = 2) -> bytes:
    size = width.to_bytes(2, "little") + height.to_bytes(2, "little")
    frame = b"\x2c\0\0\0\0" + size + b"\0\x02\x02\x4c\x01\0"
    return b"GIF89a" + size + b"\x80\0\0\0\0\0\xff\xff\xff" + frame + b"\x3b"


def jpeg(width: int = 3, height: int = 2, *, metadata: int = 16) -> bytes:
    """Metadata before the frame header, with a smaller picture's frame header inside it."""
    thumbnail = b"\xff\xd8" + _jpeg_frame(1, 1) + b"\xff\xd9"
    app1 = _segment(0xE1, b"Exif\0\0" + thumbnail + bytes(metadata))
    tables = _segment(0xDB, bytes(65)) + _segment(0xC4, bytes(28))
    return b"\xff\xd8" + app1 + tables + b"\xff" + _jpeg_frame(width, height) + b"\xff\xd9"


def webp(width: int = 3, height: int = 2, *, form: str = "VP8 ") -> bytes:
    """``form``: lossy (``VP8 ``), lossless (``VP8L``) or extended (``VP8X``)."""
    if form == "VP8 ":
        size = width.to_bytes(2, "little") + height.to_bytes(2, "little")
        content = b"\x30\x01\0\x9d\x01\x2a" + size
    elif form == "VP8L":
        content = b"\x2f" + (width - 1 | (height - 1) << 14).to_bytes(4, "little") + bytes(4)
    else:
        content = bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    chunk = form.encode() + len(content).to_bytes(4, "little") + content
    return b"RIFF" + (len(chunk) + 4).to_bytes(4, "little") + b"WEBP" + chunk


def bmp(width: int = 3, height: int = 2) -> bytes:
    header = b"BM" + (54).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little")
    return header + b"\x28\0\0\0" + width.to_bytes(4, "little") + height.to_bytes(4, "little")


TIFF = b"II*\0\x08\0\0\0" + bytes(8)
SVG = b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>\n'
HEIC = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"


def _chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4)


def _segment(marker: int, data: bytes) -> bytes:
    return bytes((0xFF, marker)) + (len(data) + 2).to_bytes(2) + data


def _jpeg_frame(width: int, height: int) -> bytes:
    size = height.to_bytes(2) + width.to_bytes(2)
    return _segment(0xC2, b"\x08" + size + b"\x01\x01\x11\0")
