from __future__ import annotations

import asyncio
import json
import os
import threading
import tracemalloc
from pathlib import Path

import pytest

from midturn_core.permission.access import PathAccess
from midturn_core.read_files import ReadStamp, content_hash
from midturn_core.tool import ConcurrencyBehavior, InterruptBehavior
from midturn_tools import _lines
from midturn_tools._lines import MAX_BYTES
from midturn_tools._text import MAX_TEXT_BYTES
from midturn_tools.read import ReadTool
from tests.support.file_bench import FileBench, error, output
from tests.support.picture_files import png


@pytest.fixture
def bench(tmp_path: Path) -> FileBench:
    return FileBench(tmp_path)


def test_read_is_declared_safe_to_run_beside_others() -> None:
    tool = ReadTool()
    assert tool.get_concurrency_behavior() is ConcurrencyBehavior.CONCURRENT_SAFE
    assert tool.get_interrupt_behavior() is InterruptBehavior.NON_INTERRUPTIBLE
    assert tool.time_limit({}) is None


def test_read_touches_its_file_and_writes_nothing(bench: FileBench) -> None:
    (accessed,) = ReadTool().access({"file_path": "a.txt"}, bench.context)
    target = bench.folder / "a.txt"
    assert accessed == PathAccess(target, target, writes=False)
    assert ReadTool().describe({"file_path": "a.txt"}) == "a.txt"


async def test_lines_are_numbered_and_a_whole_short_file_needs_no_note(bench: FileBench) -> None:
    bench.put("a.txt", "one\n\ttwo\n")
    result = await bench.read("a.txt")
    assert output(result) == "     1\tone\n     2\t\ttwo"
    assert result.summary == "2 lines"


async def test_what_was_cut_is_said_with_the_offset_to_go_on(bench: FileBench) -> None:
    bench.put("a.txt", "".join(f"{i}\n" for i in range(1, 11)))
    text = output(await bench.read("a.txt", offset=3, limit=4))
    assert text.startswith("     3\t3\n") and "[Lines 3-6 of 10. More follow at offset 7.]" in text
    assert "[Lines 7-10 of 10, up to the end.]" in output(await bench.read("a.txt", offset=7))


async def test_an_answer_is_bounded_in_bytes_and_the_next_page_begins_where_it_ended(
    bench: FileBench,
) -> None:
    bench.put("a.txt", "".join(f"{i} {'한' * 300}\n" for i in range(1, 401)))
    text = output(await bench.read("a.txt"))
    assert len(text.encode()) < MAX_BYTES + 1_000
    last = int(text.split("More follow at offset ")[1].split(".")[0])
    assert f"cut at {MAX_BYTES:,} bytes" in text
    assert output(await bench.read("a.txt", offset=last)).startswith(f"{last:>6}\t{last} 한")


async def test_a_cut_line_says_its_length_and_how_to_see_the_rest(bench: FileBench) -> None:
    bench.put("a.txt", "short\n" + "x" * 5_000 + "\n")
    text = output(await bench.read("a.txt"))
    assert "x" * 2_000 + " … [2,000 of 5,000 characters shown]" in text
    assert "sed -n 2p FILE | cut -c 2001-4000" in text


@pytest.mark.parametrize("joined", ["e\u0301", "\U0001f469\u200d\U0001f467", "\u1112\u1161"])
@pytest.mark.parametrize("shift", range(3))
async def test_a_line_is_never_cut_inside_a_character(
    bench: FileBench, joined: str, shift: int
) -> None:
    bench.put("a.txt", "x" * shift + joined * 2_000)
    shown = output(await bench.read("a.txt")).split("\t")[1].split(" … ")[0]
    assert shown.lstrip("x") == joined * (len(shown.lstrip("x")) // len(joined))
    assert 1_990 < len(shown) <= 2_000


async def test_a_file_that_changes_while_it_is_read_gets_no_stamp(bench: FileBench) -> None:
    path = bench.put("a.log", "x\n" * 1_000_000)
    stop = threading.Event()

    def grow() -> None:
        with path.open("ab", buffering=0) as log:
            while not stop.is_set():
                log.write(b"y\n")

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        async with asyncio.timeout(30):
            text = output(await bench.read("a.log", limit=1))
            while "changed while it was being read" not in text:
                bench.context.read_files.forget(path)
                text = output(await bench.read("a.log", limit=1))
    finally:
        stop.set()
        writer.join()
    assert bench.context.read_files.get(path) is None


async def test_line_numbers_count_line_feeds_only(bench: FileBench) -> None:
    bench.put("a.txt", "a\u2028b\x0bc\x85d\ne\n")
    assert output(await bench.read("a.txt")) == "     1\ta\u2028b\x0bc\x85d\n     2\te"


async def test_an_empty_file_is_said_to_be_empty(bench: FileBench) -> None:
    """MB-0412."""
    for content in (b"", b"\xef\xbb\xbf", b"\xff\xfe"):
        bench.put("a.txt", content)
        assert output(await bench.read("a.txt")) == "[The file is empty.]"


async def test_devices_and_pipes_are_refused_at_once(bench: FileBench) -> None:
    """MB-0412: also behind a link."""
    os.mkfifo(bench.folder / "pipe")
    (bench.folder / "link").symlink_to("/dev/zero")
    async with asyncio.timeout(20):
        for device in ("/dev/zero", "/dev/urandom", "link"):
            assert "is a device, not a regular file; it was not opened" in error(
                await bench.read(device)
            )
        assert "is a named pipe" in error(await bench.read("pipe"))


async def test_binary_files_are_named_with_type_and_size(bench: FileBench) -> None:
    bench.put("a.png", b"\x89PNG\r\n\x1a\n" + bytes(2_000))
    assert error(await bench.read("a.png")) == (
        "a.png is a PNG image (2.0 kB); Read shows text only. To show you the picture, the user "
        "can write @ and its path in a prompt, or drag the file into the terminal."
    )
    bench.put("b.txt", png(1280, 720))
    assert "b.txt is a PNG image (1280×720, 65 bytes); Read shows" in error(
        await bench.read("b.txt")
    )


async def test_a_missing_file_comes_with_a_hint(bench: FileBench) -> None:
    """MB-0415: the name that Glob lists opens it, one with another quote names it."""
    bench.put("don’t.md", "x")
    assert output(await bench.read("don’t.md")) == "     1\tx"
    assert error(await bench.read("don't.md")) == (
        "File not found: don't.md. Did you mean don’t.md?"
    )


async def test_a_few_lines_of_a_huge_file_are_read_without_the_rest(bench: FileBench) -> None:
    """MB-0416."""
    huge = bench.put("huge.log", "".join(f"line {i}\n" for i in range(2_000)))
    os.truncate(huge, 2 * 1024**3)
    tracemalloc.start()
    text = output(await bench.read("huge.log", limit=5))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert text.startswith("     1\tline 0\n") and "offset 6" in text
    assert "Its lines were not counted, and Edit and Write do not change files" in text
    assert peak < 50_000_000
    assert bench.context.read_files.get(huge) is None
    assert "files beyond 64.0 MB are not changed" in error(await bench.edit("huge.log", "a", "b"))


async def test_a_line_that_never_ends_is_looked_through_within_reach_only(
    bench: FileBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As MB-0416: however long a line of a huge file is, and however far away the one wanted."""
    monkeypatch.setattr(_lines, "REACH", 1_000_000)
    huge = bench.put("huge.log", "".join(f"line {i}\n" for i in range(1, 2_001)))
    os.truncate(huge, MAX_TEXT_BYTES + 1)
    text = output(await bench.read("huge.log", offset=2_000, limit=5))
    assert text.startswith("  2000\tline 2000\n  2001\t")
    assert "[2,000 of more than 981,107 characters shown]" in text
    assert "[Lines 2000-2001. Read looks through the first " in text
    assert "More follow" not in text
    text = output(await bench.read("huge.log", offset=5_000))
    assert text.startswith("[Line 5000 was not found. Read looks through the first ")
    assert "More follow at offset 2001" in output(await bench.read("huge.log", limit=2_000))


async def test_a_file_of_exactly_the_bound_is_read_as_a_whole(bench: FileBench) -> None:
    path = bench.put("a.txt", b"x" * 99 + b"\n" * (MAX_TEXT_BYTES - 99))
    assert (await bench.read("a.txt", limit=1)).summary == f"1 of {MAX_TEXT_BYTES - 99:,} lines"
    assert bench.context.read_files.get(path) is not None


@pytest.mark.parametrize("encoding", ["utf-8", "cp949", "utf-16"])
async def test_a_read_leaves_the_stamp_of_the_whole_file_and_the_lines_seen(
    tmp_path: Path, encoding: str
) -> None:
    bench = FileBench(tmp_path, ("cp949",))
    data = "하나\n둘\n셋\n".encode(encoding)
    path = bench.put("a.txt", data)
    assert "둘" in output(await bench.read("a.txt", offset=2, limit=1))
    assert bench.context.read_files.get(path) == ReadStamp(content_hash(data), ((2, 2),))


async def test_a_failed_read_leaves_no_stamp(bench: FileBench) -> None:
    path = bench.put("a.bin", b"\0")
    await bench.read("a.bin")
    assert bench.context.read_files.get(path) is None


async def test_many_reads_at_once_all_leave_their_stamps(bench: FileBench) -> None:
    paths = [bench.put(f"{i}.txt", f"{i}\n") for i in range(40)]
    await asyncio.gather(*(bench.read(path.name) for path in paths for _ in range(3)))
    assert set(bench.context.read_files.snapshot()) == set(paths)


def notebook() -> dict[str, object]:
    picture = {"output_type": "display_data", "data": {"image/png": "iVBO" * 175_000}}
    stream = {"output_type": "stream", "text": [f"row {i}\n" for i in range(10_000)]}
    failed = {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["…"]}
    return {
        "nbformat": 4,
        "cells": [
            {"cell_type": "markdown", "id": "m1", "source": ["# Title\n", "text"]},
            {"cell_type": "code", "id": "c1", "source": "import os", "outputs": [picture]},
            {"cell_type": "code", "id": "c2", "source": "print(1)", "outputs": [stream, failed]},
        ],
    }


async def test_a_notebook_is_shown_as_cells_with_sizes_for_pictures(bench: FileBench) -> None:
    """MB-0418."""
    bench.put("nb.ipynb", json.dumps(notebook(), indent=1))
    result = await bench.read("nb.ipynb")
    text = output(result)
    assert "--- cell 1: markdown, id m1 ---\n# Title\ntext" in text
    assert "--- cell 2: code, id c1 ---\nimport os\n[output image/png: 700.0 kB, not shown]" in text
    assert "row 0\nrow 1\n" in text and "more characters of this output not shown" in text
    assert "[error]\nValueError: no" in text
    assert len(text) < 5_000 and result.summary == "3 cells"


async def test_an_edit_of_a_notebook_cell_leaves_ids_and_outputs(bench: FileBench) -> None:
    """MB-0418."""
    bench.put("nb.ipynb", json.dumps(notebook(), indent=1))
    await bench.read("nb.ipynb")
    output(await bench.edit("nb.ipynb", '"import os"', '"import sys"'))
    expected = json.dumps(notebook(), indent=1).replace("import os", "import sys")
    assert bench.bytes_of("nb.ipynb").decode() == expected


@pytest.mark.parametrize("new", ['import os\nprint("x")', "import os\n", 'print("x")'])
async def test_an_edit_that_would_break_a_notebook_is_refused(bench: FileBench, new: str) -> None:
    """MB-0418: what stands in a cell stands in strings of JSON."""
    bench.put("nb.ipynb", json.dumps(notebook(), indent=1))
    await bench.read("nb.ipynb")
    before = bench.bytes_of("nb.ipynb")
    message = error(await bench.edit("nb.ipynb", "import os", new))
    assert "would no longer be valid JSON" in message and "Nothing was changed" in message
    assert bench.bytes_of("nb.ipynb") == before
    output(await bench.edit("nb.ipynb", "import os", json.dumps(new)[1:-1]))
    assert json.loads(bench.bytes_of("nb.ipynb"))["cells"][1]["source"] == new


async def test_a_broken_notebook_can_be_repaired(bench: FileBench) -> None:
    bench.put("nb.ipynb", '{"cells": [}')
    await bench.read("nb.ipynb")
    output(await bench.edit("nb.ipynb", "[}", "[]}"))


@pytest.mark.parametrize("given", [{"offset": 1}, {"limit": 3}])
async def test_a_notebook_with_a_range_is_shown_as_raw_lines(
    bench: FileBench, given: dict[str, int]
) -> None:
    bench.put("nb.ipynb", json.dumps(notebook(), indent=1))
    assert output(await bench.read("nb.ipynb", **given)).startswith("     1\t{\n")


@pytest.mark.parametrize("content", ["{not json", "[]", '{"cells": 3}'])
async def test_a_broken_notebook_is_shown_as_text(bench: FileBench, content: str) -> None:
    bench.put("nb.ipynb", content)
    assert output(await bench.read("nb.ipynb")) == f"     1\t{content}"


async def test_a_notebook_with_odd_cells_is_still_readable(bench: FileBench) -> None:
    bench.put(
        "nb.ipynb",
        r'{"cells": [3, {"cell_type": "code", "source": "\ud800", '
        r'"outputs": [1, {"data": {"x": {}}}]}]}',
    )
    text = output(await bench.read("nb.ipynb"))
    assert "cell 1: not readable" in text and "[output x: 2 bytes, not shown]" in text
    text.encode("utf-8")


async def test_a_huge_notebook_cell_is_cut(bench: FileBench) -> None:
    cells = [{"cell_type": "code", "source": "x" * 200_000}] * 20
    bench.put("nb.ipynb", json.dumps({"cells": cells}))
    text = output(await bench.read("nb.ipynb"))
    assert len(text) < MAX_BYTES + 1_000
    assert "more characters not shown" in text and "of 20, cut at" in text
