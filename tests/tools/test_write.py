from __future__ import annotations

import os
from pathlib import Path

import pytest

from midturn_core.model.messages import DiffDetail
from midturn_core.permission.access import PathAccess
from midturn_core.tool import ConcurrencyBehavior, InterruptBehavior
from midturn_tools.write import WriteTool
from tests.support.file_bench import FileBench, error, output
from tests.support.ordinary_user import ordinary_user_folder


@pytest.fixture
def bench(tmp_path: Path) -> FileBench:
    return FileBench(tmp_path)


def test_write_is_sequential_and_declares_that_it_writes(bench: FileBench) -> None:
    tool = WriteTool()
    assert tool.get_concurrency_behavior() is ConcurrencyBehavior.SEQUENTIAL
    assert tool.get_interrupt_behavior() is InterruptBehavior.NON_INTERRUPTIBLE
    target = bench.folder / "a"
    assert tool.access({"file_path": "a"}, bench.context) == (PathAccess(target, target, True),)


async def test_a_new_file_is_written_exactly_as_given_with_its_folders(bench: FileBench) -> None:
    result = await bench.write("a/b/c.txt", "하나\r\n둘\n셋")
    assert bench.bytes_of("a/b/c.txt") == "하나\r\n둘\n셋".encode()
    assert output(result) == "Created a/b/c.txt with 3 lines."
    assert result.detail == DiffDetail("a/b/c.txt", "@@ -0,0 +1,3 @@\n+하나\n+둘\n+셋", 3, 0)
    assert result.summary == "created, +3"


async def test_a_new_file_gets_the_rights_that_the_umask_leaves(bench: FileBench) -> None:
    old = os.umask(0o027)
    try:
        await bench.write("a.txt", "a")
    finally:
        os.umask(old)
    assert (bench.folder / "a.txt").stat().st_mode & 0o777 == 0o640


async def test_what_was_written_can_be_edited_at_once(bench: FileBench) -> None:
    await bench.write("a.txt", "a\n")
    output(await bench.edit("a.txt", "a", "b"))


async def test_an_existing_file_that_was_not_read_is_refused(bench: FileBench) -> None:
    bench.put("a.txt", "precious\n")
    assert "has not been read" in error(await bench.write("a.txt", "x"))
    assert bench.bytes_of("a.txt") == b"precious\n"


async def test_a_file_that_changed_since_it_was_read_is_refused(bench: FileBench) -> None:
    path = bench.put("a.txt", "old\n")
    await bench.read("a.txt")
    path.write_text("new\n")
    assert "was changed since it was last read" in error(await bench.write("a.txt", "x"))
    assert bench.bytes_of("a.txt") == b"new\n"


async def test_a_file_that_was_removed_since_can_be_written_anew(bench: FileBench) -> None:
    path = bench.put("a.txt", "old\n")
    await bench.read("a.txt")
    path.unlink()
    assert "Created" in output(await bench.write("a.txt", "new\n"))


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", "x\r\ny\n", b"x\r\ny\r\n"),
        (b"a\nb\n", "x\r\ny\r\n", b"x\ny\n"),
        (b"a\nb\r\n", "x\ny\r\n", b"x\ny\r\n"),
        (b"a", "x\r\ny", b"x\r\ny"),
        (b"\xef\xbb\xbfa\n", "x\n", b"\xef\xbb\xbfx\n"),
        (b"\xef\xbb\xbfa\n", "\ufeffx\n", b"\xef\xbb\xbfx\n"),
        (b"\xff\xfea\0\n\0", "한\n", b"\xff\xfe" + "한\n".encode("utf-16-le")),
        ("값\n".encode("cp949"), "새 값\n", "새 값\n".encode("cp949")),
        (b"", "x\n", b"x\n"),
    ],
)
async def test_an_existing_file_keeps_encoding_mark_and_uniform_line_ends(
    tmp_path: Path, before: bytes, content: str, after: bytes
) -> None:
    """MB-0404."""
    bench = FileBench(tmp_path, ("cp949",))
    bench.put("a.txt", before)
    await bench.read("a.txt")
    output(await bench.write("a.txt", content))
    assert bench.bytes_of("a.txt") == after


async def test_a_file_in_an_unknown_encoding_is_replaced_by_utf8(bench: FileBench) -> None:
    bench.put("a.txt", b"na\xefve\n")
    await bench.read("a.txt")
    output(await bench.write("a.txt", "naïve\n"))
    assert bench.bytes_of("a.txt") == "naïve\n".encode()


async def test_text_that_the_encoding_lacks_is_refused(tmp_path: Path) -> None:
    bench = FileBench(tmp_path, ("cp949",))
    data = "값\n".encode("cp949")
    bench.put("a.txt", data)
    await bench.read("a.txt")
    assert "encoded as cp949, which has no" in error(await bench.write("a.txt", "😀"))
    assert bench.bytes_of("a.txt") == data


async def test_the_same_content_is_not_written_again(bench: FileBench) -> None:
    path = bench.put("a.txt", "a\n")
    await bench.read("a.txt")
    inode = path.stat().st_ino
    assert "already has exactly this content" in output(await bench.write("a.txt", "a\n"))
    assert path.stat().st_ino == inode


async def test_a_link_stays_a_link_and_its_target_gets_the_text(bench: FileBench) -> None:
    """MB-0408."""
    bench.put("real", "a\n")
    (bench.folder / "link").symlink_to("real")
    (bench.folder / "dangling").symlink_to("made")
    await bench.read("link")
    output(await bench.write("link", "b\n"))
    output(await bench.write("dangling", "c\n"))
    assert (bench.folder / "link").is_symlink() and (bench.folder / "dangling").is_symlink()
    assert (bench.bytes_of("real"), bench.bytes_of("made")) == (b"b\n", b"c\n")


async def test_folders_pipes_devices_and_loops_are_refused(bench: FileBench) -> None:
    (bench.folder / "dir").mkdir()
    os.mkfifo(bench.folder / "pipe")
    (bench.folder / "loop").symlink_to("loop")
    bench.put("file", "x")
    assert "is a folder" in error(await bench.write("dir", "x"))
    assert "is a named pipe" in error(await bench.write("pipe", "x"))
    assert "is a device" in error(await bench.write("/dev/null", "x"))
    assert "is a link that leads to itself" in error(await bench.write("loop", "x"))
    assert "is a file, not a folder" in error(await bench.write("file/below", "x"))
    assert (bench.folder / "loop").is_symlink()


async def test_the_counts_of_a_replacement_are_reported(bench: FileBench) -> None:
    bench.put("a.txt", "a\nb\nc\n")
    await bench.read("a.txt")
    result = await bench.write("a.txt", "a\nB\nc\nd\n")
    assert output(result) == "Replaced a.txt (+2 -1 lines)."
    assert result.summary == "+2 -1"


async def test_a_folder_that_takes_no_new_file_gives_a_clear_error() -> None:
    with ordinary_user_folder() as folder:
        bench = FileBench(folder)
        path = bench.put("closed/a.txt", "a\n")
        await bench.read("closed/a.txt")
        path.parent.chmod(0o555)
        message = error(await bench.write("closed/a.txt", "b\n"))
        new = error(await bench.write("closed/new.txt", "b\n"))
        path.parent.chmod(0o755)
        assert "no permission to make a file in its folder" in message
        assert "no permission to make a file in its folder" in new
        assert path.read_bytes() == b"a\n" and os.listdir(path.parent) == ["a.txt"]


def test_a_question_shows_what_a_write_would_change(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("one\ntwo\n")
    access = [PathAccess(path, path, True)]
    detail = WriteTool().preview({"file_path": "a.py", "content": "one\nthree\n"}, access)
    assert (detail.added, detail.removed) == (1, 1)
    path.unlink()
    detail = WriteTool().preview({"file_path": "a.py", "content": "one\nthree\n"}, access)
    assert (detail.added, detail.removed) == (2, 0)
