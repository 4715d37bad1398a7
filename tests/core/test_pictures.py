"""Files as pictures: by content alone, and nothing that the service would refuse."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midturn_core.errors import NotAPictureError, PictureError
from midturn_core.model.messages import MAX_PICTURE_BYTES, ImageBlock
from midturn_core.pictures import described, dimensions, load_picture, read_picture, size_text
from tests.support.picture_files import HEIC, SVG, TIFF, bmp, gif, jpeg, png, webp

GOOD = {
    "PNG": ("image/png", png(1280, 720)),
    "GIF": ("image/gif", gif(1280, 720)),
    "JPEG": ("image/jpeg", jpeg(1280, 720)),
    "JPEG with long metadata": ("image/jpeg", jpeg(1280, 720, metadata=60_000)),
    "WebP": ("image/webp", webp(1280, 720)),
    "lossless WebP": ("image/webp", webp(1280, 720, form="VP8L")),
    "extended WebP": ("image/webp", webp(1280, 720, form="VP8X")),
}
FOREIGN = {
    "a BMP picture": bmp(),
    "a TIFF picture": TIFF,
    "an SVG picture": SVG,
    "a HEIC picture": HEIC,
}


@pytest.mark.parametrize("form", GOOD)
def test_kind_and_dimensions_come_from_the_content(form: str, tmp_path: Path) -> None:
    file = tmp_path / "named-wrongly.txt"
    media_type, content = GOOD[form]
    file.write_bytes(content)
    picture = load_picture(file)
    assert (picture.media_type, picture.width, picture.height) == (media_type, 1280, 720)
    assert picture.data == content
    assert picture.name == "named-wrongly.txt"


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_kind_that_the_service_does_not_take_is_refused_by_its_name(kind: str) -> None:
    with pytest.raises(PictureError, match=f"is {kind}, and the service takes PNG, JPEG") as caught:
        read_picture(FOREIGN[kind], "shot.png")
    assert not isinstance(caught.value, NotAPictureError)


@pytest.mark.parametrize("content", [b"", b"BMW builds cars\n", b"just text", bytes(100)])
def test_what_is_no_picture_is_refused_whatever_its_name(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "shot.png"
    file.write_bytes(content)
    with pytest.raises(NotAPictureError, match="is no picture"):
        load_picture(file)


def test_the_largest_picture_that_the_service_takes_passes_and_one_byte_more_does_not() -> None:
    bare = len(png(padding=1)) - 1
    largest = png(padding=MAX_PICTURE_BYTES - bare)
    assert len(read_picture(largest, "a.png").data) == MAX_PICTURE_BYTES
    with pytest.raises(PictureError, match=r"has 3\.9 MB, and the service takes 3\.9 MB at most"):
        read_picture(png(padding=MAX_PICTURE_BYTES - bare + 1), "a.png")


def test_a_large_file_is_refused_with_its_size_without_being_read(tmp_path: Path) -> None:
    file = tmp_path / "photo.jpg"
    file.write_bytes(jpeg())
    os.truncate(file, 40_000_000_000)
    with pytest.raises(PictureError, match=r"has 40000\.0 MB.*make it smaller"):
        load_picture(file)


@pytest.mark.parametrize("wide", [png(8001, 10), gif(8001, 10), jpeg(8001, 10), webp(8001, 10)])
def test_too_many_pixels_are_refused_with_the_limit(wide: bytes) -> None:
    with pytest.raises(PictureError, match="has 8001×10 pixels, and the service takes 8000"):
        read_picture(wide, "wide")


@pytest.mark.parametrize("form", GOOD)
def test_a_file_that_ends_in_its_header_is_damaged(form: str) -> None:
    cut = 9 if form == "GIF" else 15
    with pytest.raises(PictureError, match="is a damaged"):
        read_picture(GOOD[form][1][:cut], "half")


def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "shot.png")
    with pytest.raises(NotAPictureError, match="is no file"):
        load_picture(tmp_path / "shot.png")


@given(
    st.sampled_from([png(), gif(), jpeg(), webp(), webp(form="VP8L"), webp(form="VP8X")]),
    st.integers(2, 40),
    st.binary(max_size=60),
)
def test_damaged_headers_are_read_or_refused_and_never_raise(
    start: bytes, kept: int, noise: bytes
) -> None:
    size = dimensions(start[:kept] + noise)
    assert size is None or (size[0] >= 0 and size[1] >= 0)


@pytest.mark.parametrize(
    ("media_type", "data", "width"),
    [
        ("image/bmp", b"x", 1),
        ("image/png", b"", 1),
        ("image/png", b"x", 0),
        ("image/png", b"x", 8001),
    ],
)
def test_a_block_that_the_service_would_refuse_cannot_be_made(
    media_type: str, data: bytes, width: int
) -> None:
    with pytest.raises(ValueError, match="take"):
        ImageBlock(media_type, data, "a", width, 1)


def test_a_picture_is_described_in_a_few_words() -> None:
    assert described(read_picture(png(1280, 720, padding=82_900), "a.png")) == (
        "PNG, 1280×720, 83 kB"
    )
    assert [size_text(size) for size in (640, 1_250, 999_499, 1_200_000)] == [
        "640 B",
        "1 kB",
        "999 kB",
        "1.2 MB",
    ]
