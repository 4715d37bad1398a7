from __future__ import annotations

import logging
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from midturn_cli.terminal.editor import EditorError, edit, editor_command
from midturn_cli.terminal.streams import redirected_streams

ROOT = Path(__file__).parents[3]


def test_what_is_printed_becomes_lines_and_the_streams_come_back() -> None:
    told: list[str] = []
    warned: list[str] = []
    before = sys.stdout, sys.stderr, warnings.showwarning
    with redirected_streams(told.append, warned.append):
        sys.stdout.write("half ")
        sys.stdout.write("line\nnext\n\nrest")
        sys.stderr.write("trouble\n")
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("careful", DeprecationWarning, stacklevel=1)
    assert told == ["half line", "next", "rest"]
    assert warned[0] == "trouble"
    assert warned[1].startswith("DeprecationWarning: careful")
    assert (sys.stdout, sys.stderr, warnings.showwarning) == before


def test_log_handlers_on_the_terminal_are_redirected_for_the_time() -> None:
    warned: list[str] = []
    handler = logging.StreamHandler()
    stream = handler.stream
    logging.getLogger().addHandler(handler)
    try:
        with redirected_streams(warned.append, warned.append):
            logging.getLogger("library").warning("from a library")
        assert handler.stream is stream
    finally:
        logging.getLogger().removeHandler(handler)
    assert warned == ["from a library"]


def test_the_editor_is_taken_from_the_environment() -> None:
    assert editor_command({"VISUAL": "code --wait", "EDITOR": "vi"}) == ["code", "--wait"]
    assert editor_command({"VISUAL": " ", "EDITOR": "ed"}) == ["ed"]


def test_an_unreadable_or_missing_editor_is_explained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(EditorError, match=r"\$EDITOR cannot be read"):
        editor_command({"EDITOR": "vi 'unclosed"})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EditorError, match=r"set \$VISUAL or \$EDITOR"):
        editor_command({})


async def test_an_editor_that_fails_or_is_missing_keeps_the_text() -> None:
    with pytest.raises(EditorError, match="ended with status 3"):
        await edit("text", ["sh", "-c", "exit 3"])
    with pytest.raises(EditorError, match="did not start"):
        await edit("text", ["/nonexistent/editor"])


def test_loading_the_terminal_loads_nothing_heavy() -> None:
    heavy = ("rich", "anthropic", "httpx", "httpx2", "pydantic", "typer", "pathspec", "mcp")
    code = (
        "import sys; sys.path[:0] = ['cli', 'core', 'tools']; import midturn_cli.terminal.app;"
        f"print([name for name in {heavy} if name in sys.modules], 'midturn_core' in sys.modules)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "[] False"
