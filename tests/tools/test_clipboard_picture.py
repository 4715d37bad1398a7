"""A picture from the clipboard: which program is asked, what is taken, and what is said if not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from midturn_tools import clipboard_picture
from midturn_tools.clipboard_picture import ClipboardPictureError, picture_programs
from tests.support.clipboard_owner import offer
from tests.support.picture_files import bmp, gif, jpeg, png
from tests.support.stand_in_program import search_only

ALL = ("wl-paste", "xclip", "pngpaste", "osascript")
WAYLAND = {"WAYLAND_DISPLAY": "wayland-0"}
X11 = {"DISPLAY": ":7", "SSH_TTY": "/dev/pts/0"}
AFAR = {"SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    search_only(monkeypatch, folder)
    # Folders of the system would count too; the machine's own programs are no part of a test.
    monkeypatch.setattr("midturn_tools._child_environment._SYSTEM_FOLDERS", ())
    return folder


async def taken(tmp_path: Path, environ: Mapping[str, str]) -> bytes:
    picture = await clipboard_picture.clipboard_picture(tmp_path / "work", environ)
    return picture.data


async def refusal(tmp_path: Path, environ: Mapping[str, str]) -> str:
    with pytest.raises(ClipboardPictureError) as refused:
        await taken(tmp_path, environ)
    return str(refused.value)


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, ["pngpaste", "osascript"]),
        ({"DISPLAY": ":0"}, ["xclip", "pngpaste", "osascript"]),
        ({**WAYLAND, "DISPLAY": ":0"}, ["wl-paste", "xclip", "pngpaste", "osascript"]),
        (AFAR, []),
        ({**AFAR, "DISPLAY": "localhost:10.0"}, ["xclip"]),
    ],
)
def test_only_programs_that_reach_the_persons_clipboard_are_asked(
    tmp_path: Path, programs: Path, environ: dict[str, str], wanted: list[str]
) -> None:
    for name in ALL:
        offer(programs, name, {})
    assert [one.name for one in picture_programs(tmp_path / "work", environ)] == wanted


def test_a_program_of_the_workspace_is_never_asked(tmp_path: Path, programs: Path) -> None:
    offer(programs, "wl-paste", {"image/png": png()})
    assert picture_programs(tmp_path, WAYLAND) == []


@pytest.mark.parametrize(
    ("name", "environ"),
    [("wl-paste", WAYLAND), ("xclip", X11), ("pngpaste", {}), ("osascript", {})],
)
async def test_each_program_gives_the_picture_as_it_is(
    tmp_path: Path, programs: Path, name: str, environ: dict[str, str]
) -> None:
    shot = png(1280, 720, padding=300_000)
    offer(programs, name, {"image/png": shot})
    picture = await clipboard_picture.clipboard_picture(tmp_path / "work", environ)
    assert picture.data == shot
    assert (picture.name, picture.width, picture.height) == ("clipboard.png", 1280, 720)


@pytest.mark.parametrize(
    ("offers", "wanted"),
    [
        ({"text/html": b"<img>", "image/png": png(), "image/jpeg": jpeg()}, png()),
        ({"image/bmp": bmp(), "image/jpeg": jpeg()}, jpeg()),
        ({"image/gif": gif(), "UTF8_STRING": b"x"}, gif()),
    ],
)
async def test_of_several_kinds_the_best_that_the_service_takes_is_asked_for(
    tmp_path: Path, programs: Path, offers: dict[str, bytes], wanted: bytes
) -> None:
    offer(programs, "xclip", offers)
    assert await taken(tmp_path, X11) == wanted


@pytest.mark.parametrize(
    ("name", "environ"),
    [("wl-paste", WAYLAND), ("xclip", X11), ("pngpaste", {}), ("osascript", {})],
)
async def test_an_empty_clipboard_is_no_failure_of_a_program(
    tmp_path: Path, programs: Path, name: str, environ: dict[str, str]
) -> None:
    offer(programs, name, {})
    assert await refusal(tmp_path, environ) in (
        "the clipboard is empty",
        "the clipboard holds no picture",
    )


@pytest.mark.parametrize(
    ("offers", "said"),
    [
        ({"text/plain": b"words"}, "the clipboard holds no picture"),
        (
            {"image/tiff": b"II*\0", "text/plain": b"x"},
            "the clipboard holds image/tiff, and the service takes PNG, JPEG, GIF, WebP",
        ),
        (
            {"text/uri-list": b"file:///a.png"},
            "the clipboard holds the address of a file; paste that as text",
        ),
        ({"image/png": b""}, "the picture on the clipboard came without content"),
        ({"image/png": b"words"}, "what the clipboard gave as a picture is none"),
        ({"image/png": png()[:14]}, "what is on the clipboard is a damaged PNG file"),
        (
            {"image/png": png(9000, 20)},
            "what is on the clipboard has 9000×20 pixels, and the service takes 8000 a side at most",
        ),
    ],
)
async def test_what_cannot_be_sent_is_refused_with_the_reason(
    tmp_path: Path, programs: Path, offers: dict[str, bytes], said: str
) -> None:
    offer(programs, "wl-paste", offers)
    assert await refusal(tmp_path, WAYLAND) == said


async def test_a_picture_that_is_too_large_is_refused_with_its_size(
    tmp_path: Path, programs: Path
) -> None:
    offer(programs, "wl-paste", {"image/png": png(padding=4_500_000)})
    assert "has 4.5 MB, and the service takes 3.9 MB at most" in await refusal(tmp_path, WAYLAND)


async def test_endless_data_is_cut_off(tmp_path: Path, programs: Path) -> None:
    endless = "if words[0] == '--type':\n    while True: sys.stdout.buffer.write(bytes(65536))"
    offer(programs, "wl-paste", {"image/png": png()}, endless)
    assert await refusal(tmp_path, WAYLAND) == "what is on the clipboard has more than 32.0 MB"


async def test_without_a_program_it_says_what_to_install(tmp_path: Path, programs: Path) -> None:
    said = "reading the clipboard needs wl-paste (of wl-clipboard), xclip or, on macOS, osascript"
    assert await refusal(tmp_path, WAYLAND) == said
    assert "over SSH" in await refusal(tmp_path, AFAR)


async def test_a_program_that_fails_is_named_and_the_next_one_is_asked(
    tmp_path: Path, programs: Path
) -> None:
    fails = 'sys.exit("Failed to connect to a Wayland server\\x1b[2J")'
    offer(programs, "wl-paste", {}, fails)
    environ = {**WAYLAND, **X11}
    assert await refusal(tmp_path, environ) == (
        "wl-paste failed: Failed to connect to a Wayland server[2J"
    )
    offer(programs, "xclip", {"image/png": png()})
    assert await taken(tmp_path, environ) == png()


async def test_a_program_that_hangs_is_ended(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clipboard_picture, "SECONDS", 0.3)
    pid = tmp_path / "pid"
    hangs = f"open({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    offer(programs, "xclip", {}, hangs)
    assert await refusal(tmp_path, X11) == "xclip took longer than 0.3 s"
    if pid.exists():  # it may have been ended before it had begun
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)
