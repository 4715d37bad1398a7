"""The pictures in docs/screens, and how a terminal becomes one."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from docs import make_screens
from docs.make_screens import SCENES, SIZES, TARGET, THEMES, Picture, picture_of, pictures_of
from tests.support.pty_harness import SYNC_OFF
from tests.support.terminal_svg import PALETTES, frames, to_svg

ROOT = Path(__file__).parents[1]
FILES = sorted(path.name for path in TARGET.glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"
HANGUL = re.compile("[가-힣]")


def shown_in(page: Path) -> set[str]:
    return {name.rpartition("/")[2] for name in re.findall(r"\(([^)]+\.svg)\)", page.read_text())}


def words(svg: str) -> str:
    """The text of a picture in the order in which it was written."""
    return "".join(element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text"))


def drawn(text: str, columns: int = 20) -> list[ElementTree.Element]:
    *_, screen = frames(text.encode() + SYNC_OFF, columns, 2)
    return list(ElementTree.fromstring(to_svg(screen, "dark", "title")).iter(f"{SVG}text"))


def test_there_is_a_picture_of_each_scene_in_each_size_and_theme() -> None:
    wanted = {
        f"{picture.name}-{columns}x{rows}-{theme}.svg"
        for scene in SCENES
        for picture in scene.pictures
        for columns, rows in SIZES
        for theme in THEMES
    }
    assert set(FILES) == wanted


def test_every_picture_is_shown_and_the_readme_shows_one() -> None:
    assert shown_in(TARGET / "README.md") == set(FILES)
    assert shown_in(ROOT / "README.md") <= set(FILES)
    assert shown_in(ROOT / "README.md")


@pytest.mark.parametrize("name", FILES)
def test_a_picture_has_hangul_and_refers_to_nothing(name: str) -> None:
    svg = (TARGET / name).read_text(encoding="utf-8")
    root = ElementTree.fromstring(svg)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} == {
        "svg",
        "title",
        "rect",
        "g",
        "text",
    }
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not {name for name in attributes if "href" in name or name.startswith("on")}
    # The first picture is for everybody; the others show that wide letters keep their cells.
    assert bool(HANGUL.search(words(svg))) is not name.startswith("live-")
    assert "cannot be" not in words(svg), "a warning about the machine that made it"


@pytest.mark.slow
def test_the_real_program_still_gives_these_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_screens, "FOLDER", str(tmp_path / "screens"))
    (scene,) = (one for one in SCENES if one.pictures[0].name == "question")
    found = dict(pictures_of(scene, "dark", (60, 20)))
    assert set(found) == {"question-60x20-dark.svg", "diff-60x20-dark.svg"}
    question, diff = found.values()
    assert "y once" in question and "두유두병" in words(question)
    assert "allowed once" in diff


def test_a_scene_without_its_picture_is_an_error() -> None:
    with pytest.raises(LookupError, match="no frame of"):
        picture_of(Picture("x", "x", ("never there",)), b"text" + SYNC_OFF, "dark", (20, 2))


def test_every_character_stands_in_its_cell() -> None:
    first, hangul, after = drawn("ab한c")
    assert (first.text, first.get("x"), first.get("textLength")) == ("ab", "10", "18")
    assert (hangul.text, hangul.get("x"), hangul.get("text-anchor")) == ("한", "37", "middle")
    assert (after.text, after.get("x")) == ("c", "46")


def test_colours_and_attributes_are_kept_and_markup_is_text() -> None:
    bold, faint, rgb, text = drawn("\x1b[1;31m<b>\x1b[0;2mfaint\x1b[0;38;2;1;2;3mrgb\x1b[0m&")
    assert (bold.text, bold.get("font-weight")) == ("<b>", "bold")
    assert bold.get("fill") == PALETTES["dark"].named["red"]
    assert (faint.text, faint.get("opacity")) == ("faint", "0.6")
    assert (rgb.text, rgb.get("fill"), rgb.get("opacity")) == ("rgb", "#010203", None)
    assert text.text == "&"
