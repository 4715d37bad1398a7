"""Compressed bodies are undone under a limit."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest

from midturn_tools._body_decoder import BodyDecoder
from midturn_tools._web_page import FetchError

BODY = random.Random(7).randbytes(3_000) + b"a" * 3_000


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


FORMS = {
    "gzip": gzip.compress(BODY),
    "x-gzip": gzip.compress(BODY[:10]) + gzip.compress(b"") + gzip.compress(BODY[10:]),
    "deflate": zlib.compress(BODY),
    " Deflate": raw_deflate(BODY),
    "identity": BODY,
    "": BODY,
}


@pytest.mark.parametrize("size", [1, 2, 7, 1_000, 100_000])
@pytest.mark.parametrize("encoding", FORMS)
def test_a_body_is_the_same_however_it_is_cut_into_pieces(encoding: str, size: int) -> None:
    decoder, sent = BodyDecoder(encoding), FORMS[encoding]
    pieces = (sent[start : start + size] for start in range(0, len(sent), size))
    assert b"".join(decoder.feed(piece, 10_000) for piece in pieces) == BODY
    assert decoder.is_complete


LARGE = b"a" * 1_000_000


@pytest.mark.parametrize(
    ("encoding", "bomb"),
    [("gzip", gzip.compress(LARGE)), ("deflate", zlib.compress(LARGE)), ("", LARGE)],
    ids=["gzip", "deflate", "plain"],
)
def test_no_more_comes_out_than_there_is_room_for(encoding: str, bomb: bytes) -> None:
    assert BodyDecoder(encoding).feed(bomb, 1_000) == b"a" * 1_000


def test_padding_after_a_gzip_body_is_dropped() -> None:
    decoder = BodyDecoder("gzip")
    assert decoder.feed(gzip.compress(BODY) + bytes(100), 10_000) == BODY
    assert decoder.feed(b"more", 10_000) == b""
    assert decoder.is_complete


def test_a_body_that_stops_early_is_not_complete() -> None:
    decoder = BodyDecoder("gzip")
    decoder.feed(gzip.compress(BODY)[:-9], 10_000)
    assert not decoder.is_complete
    single = BodyDecoder("gzip")
    single.feed(b"\x1f", 10_000)
    assert not single.is_complete


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress"])
def test_an_encoding_that_was_not_offered_is_refused(encoding: str) -> None:
    with pytest.raises(FetchError, match="not asked for"):
        BodyDecoder(encoding)
