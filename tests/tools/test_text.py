from __future__ import annotations

import codecs
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midturn_tools._text import (
    BLOCK,
    NotTextError,
    TextFormat,
    UnencodableError,
    binary_kind,
    check_encodable,
    decode,
    detect,
    encode,
    known_encodings,
    printable,
    size_text,
)


@pytest.mark.parametrize(
    ("data", "fallbacks", "text", "encoding", "bom"),
    [
        (b"plain\n", (), "plain\n", "utf-8", b""),
        ("한글".encode(), ("cp949",), "한글", "utf-8", b""),
        (codecs.BOM_UTF8 + b"a", (), "a", "utf-8", codecs.BOM_UTF8),
        (codecs.BOM_UTF16_LE + "한".encode("utf-16-le"), (), "한", "utf-16-le", b"\xff\xfe"),
        (codecs.BOM_UTF16_BE + "한".encode("utf-16-be"), (), "한", "utf-16-be", b"\xfe\xff"),
        ("안녕".encode("cp949"), ("cp949", "latin-1"), "안녕", "cp949", b""),
        (b"caf\xe9", ("cp949", "latin-1"), "café", "latin-1", b""),
        ("日本".encode("shift_jis"), ("ascii", "shift_jis"), "日本", "shift_jis", b""),
    ],
)
def test_an_encoding_is_decided_by_mark_then_utf8_then_fallbacks(
    data: bytes, fallbacks: tuple[str, ...], text: str, encoding: str, bom: bytes
) -> None:
    decoded = decode(data, fallbacks)
    assert (decoded.text, decoded.format) == (text, TextFormat(encoding, bom))
    assert encode(decoded.text, decoded.format) == data


def test_the_whole_file_decides_not_its_beginning() -> None:
    data = b"x" * (3 * BLOCK) + "안녕".encode("cp949")
    assert detect(io.BytesIO(data), ("cp949",)).encoding == "cp949"
    assert detect(io.BytesIO(data)).lossy


def test_a_character_across_a_block_border_is_no_error() -> None:
    data = b"x" * (BLOCK - 1) + "한".encode()
    assert not detect(io.BytesIO(data)).lossy


def test_a_character_cut_at_the_end_of_the_file_is_lossy() -> None:
    assert detect(io.BytesIO("한".encode()[:2])).lossy


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "WebP"),
        (b"%PDF-1.7\n", "PDF"),
        (b"PK\x03\x04", "ZIP"),
        (b"a\0b", "binary data"),
        (bytes(range(1, 9)) * 10, "binary data"),
    ],
)
def test_binary_data_is_named(data: bytes, kind: str) -> None:
    with pytest.raises(NotTextError, match=kind):
        decode(data)


@pytest.mark.parametrize("data", [b"\xff\xfea", b"\xff\xfea\0\0\0", b"\xfe\xff\xd8\x00"])
def test_a_false_utf16_mark_is_no_text(data: bytes) -> None:
    with pytest.raises(NotTextError):
        decode(data)


def test_colour_codes_and_form_feeds_are_text() -> None:
    assert binary_kind(b"\x1b[31mred\x1b[0m\f\n") is None


@given(st.binary(max_size=200).filter(lambda data: b"\0" not in data))
def test_any_text_file_is_written_back_byte_for_byte(data: bytes) -> None:
    try:
        decoded = decode(data)
    except NotTextError:
        return
    assert encode(decoded.text, decoded.format) == data


@pytest.mark.parametrize(
    ("text", "target", "reason"),
    [
        ("😀", TextFormat("cp949"), "encoded as cp949"),
        ("\ud800", TextFormat(), "lone surrogate"),
        ("é", TextFormat(lossy=True), "unknown encoding"),
        ("\udce9", TextFormat(lossy=True), "lone surrogate"),
    ],
)
def test_text_that_a_file_cannot_hold_is_refused_with_the_reason(
    text: str, target: TextFormat, reason: str
) -> None:
    with pytest.raises(UnencodableError, match=reason):
        check_encodable(text, target)


def test_bytes_of_unknown_meaning_are_shown_as_replacement_characters() -> None:
    assert printable(decode(b"na\xefve").text) == "na\ufffdve"


def test_an_unknown_encoding_name_is_refused_at_once() -> None:
    assert known_encodings(["cp949", "latin-1"]) == ("cp949", "latin-1")
    with pytest.raises(LookupError):
        known_encodings(["klingon"])


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 bytes"), (999, "999 bytes"), (4_200, "4.2 kB"), (2_147_483_648, "2.1 GB")],
)
def test_sizes_are_readable(count: int, shown: str) -> None:
    assert size_text(count) == shown
