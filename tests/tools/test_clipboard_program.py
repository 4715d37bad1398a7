"""Which clipboard program is used, and what it is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from midturn_tools import clipboard_program
from midturn_tools.clipboard_program import ClipboardProgramError, clipboard_programs
from tests.support.stand_in_program import search_only, stand_in

TEXT = "두 줄\nof text ✓\n"
ALL = ("wl-copy", "xclip", "xsel", "pbcopy", "clip.exe", "tmux")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    search_only(monkeypatch, folder)
    return folder


def names(workspace: Path, **environ: str) -> list[str]:
    found = clipboard_programs(workspace, environ)
    # What the machine itself has in its own folders is not in question here.
    return [p.name for p in found if not p.argv[0].startswith(("/usr/", "/bin/", "/opt/"))]


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, ["pbcopy", "clip.exe"]),
        ({"DISPLAY": ":0"}, ["xclip", "xsel", "pbcopy", "clip.exe"]),
        (
            {"WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0"},
            ["wl-copy", "xclip", "xsel", "pbcopy", "clip.exe"],
        ),
        ({"SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}, []),
        ({"SSH_TTY": "/dev/pts/1", "DISPLAY": "localhost:10.0"}, ["xclip", "xsel"]),
        ({"SSH_TTY": "/dev/pts/1", "TMUX": "/tmp/tmux,1,0"}, ["tmux"]),
    ],
)
def test_only_programs_that_reach_the_persons_clipboard_are_used(
    tmp_path: Path, programs: Path, environ: dict[str, str], wanted: list[str]
) -> None:
    for name in ALL:
        stand_in(programs, name)
    assert names(tmp_path / "work", **environ) == wanted


def test_a_program_of_the_workspace_is_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search_only(monkeypatch, tmp_path)
    stand_in(tmp_path, "pbcopy")
    assert names(tmp_path) == []


def test_a_program_gets_the_text_as_it_is_on_its_standard_input(
    tmp_path: Path, programs: Path
) -> None:
    xclip = stand_in(programs, "xclip")
    (found, *_) = clipboard_programs(tmp_path / "work", {"DISPLAY": ":0"})
    found.copy(TEXT)
    assert xclip.taken == TEXT.encode()
    assert xclip.arguments == ["-selection", "clipboard", "-in"]


def test_windows_gets_utf_16(tmp_path: Path, programs: Path) -> None:
    stand_in(programs, "clip.exe")
    found = [p for p in clipboard_programs(tmp_path / "work", {}) if p.name == "clip.exe"]
    found[0].copy(TEXT)
    taken = (programs / "clip.stdin").read_bytes()
    assert taken.decode("utf-16-le") == TEXT


def test_a_program_that_stays_behind_to_serve_the_clipboard_holds_nothing_up(
    tmp_path: Path, programs: Path
) -> None:
    waits = "if os.fork() == 0:\n    time.sleep(20)"
    xclip = stand_in(programs, "xclip", waits)
    (found, *_) = clipboard_programs(tmp_path / "work", {"DISPLAY": ":0"})
    found.copy(TEXT)
    assert xclip.taken == TEXT.encode()


def test_a_program_that_fails_is_named_with_its_exit_code(tmp_path: Path, programs: Path) -> None:
    stand_in(programs, "xclip", "sys.exit(3)")
    (found, *_) = clipboard_programs(tmp_path / "work", {"DISPLAY": ":0"})
    with pytest.raises(ClipboardProgramError, match="xclip failed with exit code 3"):
        found.copy(TEXT)


def test_a_program_that_hangs_is_ended(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clipboard_program, "SECONDS", 0.2)
    stand_in(programs, "xclip", "time.sleep(600)")
    (found, *_) = clipboard_programs(tmp_path / "work", {"DISPLAY": ":0"})
    with pytest.raises(ClipboardProgramError, match="xclip took too long"):
        found.copy(TEXT)
