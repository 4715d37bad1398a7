"""The SQLite file: private, versioned, and every failure told as what it means."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from midturn_core.errors import QueueStoreError
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue import sqlite
from midturn_core.queue.sqlite import SqliteMessageQueueRepository, open_sqlite_repository
from midturn_core.queue.sqlite_file import SCHEMA_VERSION, open_queue_file, store_errors
from midturn_core.queue.types import QueuedInput, QueuedInputPriority, QueueFilter
from tests.support.midturn_process import midturn_environment, run_python

MAIN = AgentRuntimeId("s1", "main")
ALL = QueueFilter(MAIN)
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "queue.sqlite3"


@pytest.fixture
def repository(path: Path) -> Iterator[SqliteMessageQueueRepository]:
    opened = open_sqlite_repository(path, busy_seconds=0.05)
    yield opened
    opened.close()


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def refusal(path: Path) -> QueueStoreError:
    with pytest.raises(QueueStoreError) as caught:
        open_sqlite_repository(path, busy_seconds=0.05)
    return caught.value


def change(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement)
    connection.close()


def test_the_file_and_all_beside_it_are_private(
    repository: SqliteMessageQueueRepository, path: Path
) -> None:
    repository.enqueue(QueuedInput("secret", MAIN))
    repository.claim(ALL)
    assert mode_of(path.parent) == 0o700
    found = [each for each in path.parent.rglob("*") if each.is_file()]
    assert len(found) == 4
    assert {mode_of(each) for each in found} == {0o600}


def test_what_was_enqueued_is_there_after_a_restart(path: Path) -> None:
    first = open_sqlite_repository(path)
    first.enqueue(QueuedInput("a", MAIN))
    first.close()
    first.close()
    second = open_sqlite_repository(path)
    assert [item.input_text for item in second.drain(ALL)] == ["a"]
    second.close()


def test_a_file_that_others_can_read_is_refused(path: Path) -> None:
    open_sqlite_repository(path).close()
    path.chmod(0o640)
    error = refusal(path)
    assert error.where == str(path)
    assert "chmod 600" in error.way_out


def test_a_folder_that_others_can_enter_is_refused(path: Path) -> None:
    path.parent.mkdir(mode=0o755)
    path.parent.chmod(0o755)
    error = refusal(path)
    assert error.where == str(path.parent)
    assert "chmod 700" in error.way_out
    assert not path.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_refused(path: Path) -> None:
    open_sqlite_repository(path).close()
    os.chown(path, 12345, 12345)
    assert "another user" in refusal(path).problem


def test_a_link_a_folder_and_a_pipe_are_no_queue_file(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.symlink_to(tmp_path / "elsewhere")
    assert refusal(path).where == str(path)
    path.unlink()
    path.mkdir()
    assert refusal(path).where == str(path)
    path.rmdir()
    os.mkfifo(path, 0o600)
    assert "no file" in refusal(path).problem


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert str(tmp_path / "file") in refusal(tmp_path / "file" / "queue.sqlite3").where


def test_a_file_of_a_newer_version_is_left_alone(path: Path) -> None:
    open_sqlite_repository(path).close()
    change(path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before = path.read_bytes()
    error = refusal(path)
    assert "newer Midturn" in error.problem
    assert "update" in error.way_out
    assert path.read_bytes() == before


def test_the_database_of_another_program_is_left_alone(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.touch(mode=0o600)
    change(path, "PRAGMA application_id = 7")
    assert "another program" in refusal(path).problem


def test_a_file_that_is_no_database_is_told(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.touch(mode=0o600)
    path.write_bytes(b"not a database at all" * 100)
    error = refusal(path)
    assert "damaged" in error.problem
    assert "move it aside" in error.way_out


def test_a_damaged_input_is_told(repository: SqliteMessageQueueRepository, path: Path) -> None:
    repository.enqueue(QueuedInput("a", MAIN))
    change(path, "UPDATE inputs SET record = x'00'")
    with pytest.raises(QueueStoreError, match="cannot be read"):
        repository.drain(ALL)
    assert repository.size() == 1


def test_a_file_that_stays_locked_is_told(
    repository: SqliteMessageQueueRepository, path: Path
) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(QueueStoreError, match="keeps it locked"):
        repository.enqueue(QueuedInput("a", MAIN))
    connection.execute("ROLLBACK")
    connection.close()
    assert repository.enqueue(QueuedInput("a", MAIN))


@pytest.mark.parametrize(
    ("pragma", "told"), [("max_page_count = 1", "disk is full"), ("query_only = ON", "read-only")]
)
def test_a_full_and_a_read_only_disk_are_told(tmp_path: Path, pragma: str, told: str) -> None:
    path = tmp_path / "any.sqlite3"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE t (c)")
    connection.execute(f"PRAGMA {pragma}")
    with pytest.raises(QueueStoreError, match=told), store_errors(path):
        connection.execute("CREATE TABLE u AS SELECT hex(randomblob(1000000))")
    connection.close()


def test_a_closed_repository_says_so(path: Path) -> None:
    repository = open_sqlite_repository(path)
    repository.close()
    with pytest.raises(QueueStoreError, match="closed"):
        repository.size()


def test_many_may_make_the_file_at_the_same_time(path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(open_sqlite_repository, [path] * 8))
    for number, repository in enumerate(opened):
        assert repository.enqueue(QueuedInput(str(number), MAIN))
    assert opened[0].size(MAIN) == 8
    for repository in opened:
        repository.close()


def test_a_forked_child_is_told_to_open_its_own(path: Path) -> None:
    program = """
import os, sys
from pathlib import Path
from midturn_core.errors import QueueStoreError
from midturn_core.queue.sqlite import open_sqlite_repository
repository = open_sqlite_repository(Path(sys.argv[1]))
child = os.fork()
if child == 0:
    try:
        repository.size()
    except QueueStoreError as error:
        os._exit(0 if "forked" in str(error) else 1)
    os._exit(2)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    run = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "core")},
    )
    assert run.returncode == 0


def test_opening_the_file_again_leaves_what_other_processes_do_visible(tmp_path: Path) -> None:
    """Closing any descriptor of a file drops the locks of the whole process on it."""
    file = tmp_path / "own" / "queue.db"
    first = open_sqlite_repository(file)
    again = open_sqlite_repository(file)
    again.close()
    program = (
        "import sys; from pathlib import Path\n"
        "from midturn_core.ids import AgentRuntimeId\n"
        "from midturn_core.queue.sqlite import open_sqlite_repository\n"
        "from midturn_core.queue.types import QueuedInput\n"
        "store = open_sqlite_repository(Path(sys.argv[1]))\n"
        "store.enqueue(QueuedInput(sys.argv[2], AgentRuntimeId('s')))\n"
        "store.close()\n"
    )
    mine = QueueFilter(AgentRuntimeId("s"))
    seen: list[list[str]] = []
    for text in ("one", "two"):
        done = run_python(["-c", program, str(file), text], environ=midturn_environment())
        assert done.returncode == 0, done.stderr
        found = first.list_by_max_priority(QueuedInputPriority.LATER, mine)
        seen.append([item.input_text for item in found])
        first.enqueue(QueuedInput(f"after {text}", AgentRuntimeId("s")))
    first.close()
    assert seen == [["one"], ["one", "after one", "two"]]


def test_a_file_that_is_removed_while_it_is_opened_is_a_store_that_cannot_be_used(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_queue_file

    def open_and_remove(path: Path, *, busy_seconds: float, durable: bool) -> sqlite3.Connection:
        connection = opened(path, busy_seconds=busy_seconds, durable=durable)
        path.unlink()
        return connection

    monkeypatch.setattr(sqlite, "open_queue_file", open_and_remove)
    with pytest.raises(QueueStoreError):
        open_sqlite_repository(path)
