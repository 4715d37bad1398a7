"""Text files as bytes: which encoding a file has, and how to write it back unchanged elsewhere.

The encoding is decided by a strict decoding of the *whole* file: byte order mark, UTF-8, then the
configured fallbacks in their order. When none fits, bytes that are no UTF-8 travel as lone
surrogates ("lossy"), so that an edit elsewhere in the file puts them back as they were.
Lines end at LF only, as editors and Grep count them.
"""

from __future__ import annotations

import codecs
import io
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

MAX_TEXT_BYTES = 64_000_000
"""Up to here a file is read as a whole (hashed, counted, editable)."""

HOW_TO_NAME_ENCODINGS = (
    'The user can name the encoding, such as "cp949", in encodings of the [files] configuration.'
)
BLOCK = 256 * 1024
ZERO_WIDTH_JOINER = "\u200d"
_HEAD = 8 * 1024
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (or a document built as one)"),
    (b"\x1f\x8b", "gzip data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\x7fELF", "an ELF program or library"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x00asm", "a WebAssembly module"),
    (b"\xca\xfe\xba\xbe", "a Java class or a Mach-O program"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program"),
)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b"))
_MANY_CONTROLS = 0.3
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class NotTextError(Exception):
    """The file is no text. ``str(error)`` says what it is, such as "a PNG image"."""


class UnencodableError(Exception):
    """A text cannot be written in a file's encoding. ``str(error)`` is one sentence."""


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How a file's text is kept as bytes."""

    encoding: str = "utf-8"
    bom: bytes = b""
    lossy: bool = False
    """Some bytes fit no known encoding; they stand as U+DC80..U+DCFF in the decoded text."""

    @property
    def errors(self) -> str:
        return "surrogateescape" if self.lossy else "strict"


@dataclass(frozen=True, slots=True)
class DecodedText:
    text: str
    format: TextFormat


def known_encodings(names: Sequence[str]) -> tuple[str, ...]:
    """The names, checked.

    Raises:
        LookupError: Python knows no encoding of that name.
    """
    for name in names:
        codecs.lookup(name)
    return tuple(names)


def binary_kind(head: bytes) -> str | None:
    """What a file that begins with ``head`` is, when it is no text; None for text.

    A NUL or many control characters within the first 8 KiB mark binary data, except after the
    byte order mark of UTF-16.
    """
    head = head[:_HEAD]
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            return kind
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "a WebP image"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return None
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if b"\0" in head or controls > _MANY_CONTROLS * len(head):
        return "binary data"
    return None


def blocks(stream: BinaryIO) -> Iterator[bytes]:
    """The rest of the stream, block by block."""
    while block := stream.read(BLOCK):
        yield block


def detect(stream: BinaryIO, fallbacks: Sequence[str] = ()) -> TextFormat:
    """The format of a whole file; the stream can seek and is left anywhere.

    Raises:
        NotTextError: it is binary, or its byte order mark promises what does not follow.
    """
    stream.seek(0)
    head = stream.read(_HEAD)
    kind = binary_kind(head)
    if kind is not None:
        raise NotTextError(kind)
    bom, encoding = next((pair for pair in _BOMS if head.startswith(pair[0])), (b"", "utf-8"))
    if _decodes(stream, encoding, len(bom)):
        return TextFormat(encoding, bom)
    if encoding != "utf-8":
        raise NotTextError("damaged UTF-16 text or binary data")
    if not bom:
        for fallback in fallbacks:
            if _decodes(stream, fallback, 0):
                return TextFormat(fallback)
    return TextFormat("utf-8", bom, lossy=True)


def _decodes(stream: BinaryIO, encoding: str, start: int) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    stream.seek(start)
    nul_marks_binary = encoding.startswith("utf-16")
    try:
        for block in blocks(stream):
            text = decoder.decode(block)
            if nul_marks_binary and "\0" in text:
                return False
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def decode(data: bytes, fallbacks: Sequence[str] = ()) -> DecodedText:
    """The text of a whole file, without its byte order mark.

    Raises:
        NotTextError: it is no text.
    """
    found = detect(io.BytesIO(data), fallbacks)
    return DecodedText(data[len(found.bom) :].decode(found.encoding, found.errors), found)


def encode(text: str, target: TextFormat) -> bytes:
    """The bytes of a whole file.

    Raises:
        UnencodableError: a character does not exist in the file's encoding.
    """
    try:
        return target.bom + text.encode(target.encoding, target.errors)
    except UnicodeEncodeError as error:
        raise UnencodableError(_no_such_character(text[error.start], target)) from None


def check_encodable(text: str, target: TextFormat) -> None:
    """Check text that comes from the model before it goes into a file.

    A lossy file takes ASCII only: nobody knows which encoding its other bytes are in.

    Raises:
        UnencodableError: a character does not exist in the file's encoding.
    """
    encoding = "ascii" if target.lossy else target.encoding
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        raise UnencodableError(_no_such_character(text[error.start], target)) from None


def _no_such_character(character: str, target: TextFormat) -> str:
    if _SURROGATE.match(character):
        return "The new text holds a lone surrogate, which no file can hold."
    if target.lossy:
        return (
            f"The file is in an unknown encoding (some bytes are not valid UTF-8), so {character!r} "
            f"cannot be added safely; only ASCII text can. {HOW_TO_NAME_ENCODINGS}"
        )
    return f"The file is encoded as {target.encoding}, which has no {character!r}."


def printable(text: str) -> str:
    """Text for the model: bytes of unknown meaning become U+FFFD."""
    return _ESCAPED_BYTE.sub("\ufffd", text)


def extends_character(character: str) -> bool:
    """Whether ``character`` belongs to the one before it: an accent, a joiner, a jamo, a tone."""
    return (
        unicodedata.category(character) in ("Mn", "Me", "Mc")
        or character == ZERO_WIDTH_JOINER
        or "\u1160" <= character <= "\u11ff"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
    )


def size_text(count: int) -> str:
    """A number of bytes for a reader: ``812 bytes``, ``4.2 MB``."""
    for factor, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= factor:
            return f"{count / factor:,.1f} {unit}"
    return f"{count} bytes"
