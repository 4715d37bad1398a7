"""Which words of the user's are paths of pictures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from midturn_cli.picture_paths import (
    at_paths,
    pasted_paths,
    picture_at,
    pictures_in,
    takes_pictures,
)
from midturn_core.model.messages import ImageBlock
from tests.support.picture_files import bmp, png


@pytest.mark.parametrize(
    ("pasted", "path"),
    [
        ("/tmp/shot.png", "/tmp/shot.png"),
        ("~/shot.png\n", "~/shot.png"),
        ("'/tmp/my shot.png' ", "/tmp/my shot.png"),
        ('"/tmp/my shot.png"', "/tmp/my shot.png"),
        (r"/tmp/my\ shot\ \(1\).png", "/tmp/my shot (1).png"),
        ("/tmp/my shot.png", "/tmp/my shot.png"),
        ("/tmp/it's.png", "/tmp/it's.png"),
        ("file:///tmp/my%20shot%C3%A9.png", "/tmp/my shoté.png"),
        ("file://localhost/tmp/shot.png", "/tmp/shot.png"),
    ],
)
def test_a_dropped_file_is_known_in_every_form_that_terminals_give_it(
    pasted: str, path: str
) -> None:
    assert [path] in pasted_paths(pasted)


def test_several_dropped_files_are_several_paths() -> None:
    assert ["/a.png", "/b c.png"] in pasted_paths("'/a.png' '/b c.png'")
    assert ["/a.png", "/b.png"] in pasted_paths("file:///a.png\r\nfile:///b.png\n")


@pytest.mark.parametrize(
    "text", ["shot.png", "look at /tmp/shot.png", "", " ", "'quoted' words", "http://h/a.png"]
)
def test_other_pastes_are_no_paths(text: str) -> None:
    assert pasted_paths(text) == []


def test_a_long_paste_is_not_searched_for_paths() -> None:
    assert pasted_paths("/" + "x" * 10_000) == []


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("@a.png", ["a.png"]),
        ("see @a.png, (@b.png) and @~/c.png.", ["a.png", "b.png", "~/c.png"]),
        ('@"my shot.png" please', ["my shot.png"]),
        ("me@example.com and a@b.png", []),
        ("@ alone @", []),
    ],
)
def test_at_paths_are_found_without_the_punctuation_after_them(text: str, paths: list[str]) -> None:
    assert [at.path for at in at_paths(text)] == paths


@pytest.mark.parametrize("text", ["!ls @a.png", " !ls", "/compact @a.png", "/init", "/nowhere x"])
def test_paths_in_commands_and_shell_lines_stay_paths(text: str) -> None:
    assert not takes_pictures(text)


@pytest.mark.parametrize("text", ["", "x", "/now @a.png", "/later x", "/next", "/tmp/a.txt is odd"])
def test_text_for_the_model_takes_pictures(text: str) -> None:
    assert takes_pictures(text)


def test_pictures_are_found_by_content_below_the_workspace_and_home(
    tmp_path: Path, home: Path
) -> None:
    (tmp_path / "a.txt").write_bytes(png(7, 5))
    (Path.home() / "b.png").write_bytes(png())
    found = pictures_in("@a.txt and @~/b.png and @a.txt", tmp_path, pytest.fail)
    assert [(picture.name, picture.width) for picture in found] == [("a.txt", 7), ("b.png", 3)]


def test_what_was_meant_as_a_picture_is_refused_aloud_and_anything_else_is_left(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.bmp").write_bytes(bmp())
    (tmp_path / "b.png").write_text("no picture")
    (tmp_path / "c.md").write_text("text")
    (tmp_path / "folder").mkdir()
    said: list[str] = []
    assert (
        pictures_in("@a.bmp @b.png @c.md @folder @gone.png @gone.md", tmp_path, said.append) == ()
    )
    assert said == [
        "a.bmp was not attached: it is a BMP picture, and the service takes PNG, JPEG, GIF and "
        "WebP.",
        "b.png was not attached: it is no picture, whatever its name says.",
        "gone.png was not attached: there is no such file.",
    ]


def test_looking_for_pictures_leaves_no_file_open(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "b.png").mkdir()
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
    for name in ("a.png", "b.png", "c.png", "~nobody/d.png", "e\0.png"):
        picture_at(name, tmp_path)
    assert not before or len(os.listdir("/proc/self/fd")) == before


def test_a_name_cannot_break_its_placeholder_or_the_screen(tmp_path: Path) -> None:
    (tmp_path / "a]\x1b[2J\n.png").write_bytes(png())
    found = picture_at("a]\x1b[2J\n.png", tmp_path)
    assert isinstance(found, ImageBlock)
    assert found.name == "a___2J_.png"
