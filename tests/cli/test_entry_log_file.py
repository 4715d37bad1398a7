"""The log file."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from midturn_cli.log_file import LARGEST_LOG, close_log, open_log
from midturn_core.config import LogConfig
from midturn_core.errors import ConfigError


@pytest.fixture(autouse=True)
def loggers_as_before() -> Generator[None, None, None]:
    names = ("", "midturn_core", "midturn_tools", "midturn_cli")
    before = {name: logging.getLogger(name).level for name in names}
    handlers = list(logging.getLogger().handlers)
    yield
    for handler in [item for item in logging.getLogger().handlers if item not in handlers]:
        logging.getLogger().removeHandler(handler)
        handler.close()
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def test_the_log_goes_to_the_state_folder_and_is_the_owners_alone(home: Path) -> None:
    assert open_log(LogConfig(), os.environ) == ""
    logging.getLogger("midturn_core.x").info("a step began")
    logging.getLogger("midturn_core.x").debug("details")
    logging.getLogger("some_library").info("chatter")
    file = home / ".local" / "state" / "midturn" / "midturn.log"
    assert "a step began" in file.read_text()
    assert "details" not in file.read_text() and "chatter" not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    assert file.parent.stat().st_mode & 0o077 == 0


def test_a_named_file_and_level_are_used(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "x.log"
    open_log(LogConfig("debug", str(file)), os.environ)
    logging.getLogger("midturn_tools.x").debug("details")
    assert "DEBUG" in file.read_text() and "details" in file.read_text()


def test_old_text_is_rotated_away_and_stays_private(tmp_path: Path) -> None:
    file = tmp_path / "x.log"
    open_log(LogConfig("debug", str(file)), os.environ)
    for _ in range(3):
        logging.getLogger("midturn_cli").info("x" * (LARGEST_LOG // 2))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.log", "x.log.1", "x.log.2"]
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.iterdir())


def test_a_named_file_that_cannot_be_written_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the log cannot be written"):
        open_log(LogConfig(file=str(tmp_path)), os.environ)


def test_a_state_folder_that_cannot_be_written_is_only_a_warning(home: Path) -> None:
    (home / ".local").write_text("a file where a folder should be")
    assert "the log cannot be written" in open_log(LogConfig(), os.environ)


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="only Linux has a disk that is always full"
)
def test_a_full_disk_costs_lines_of_the_log_and_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert open_log(LogConfig(level="info", file="/dev/full"), {}) == ""
    logging.getLogger("midturn_core.test").info("a line that cannot be written")
    close_log()
    assert capsys.readouterr() == ("", "")
