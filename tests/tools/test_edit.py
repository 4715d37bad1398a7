from __future__ import annotations

import os
import time
import unicodedata
from pathlib import Path

import pytest

from midturn_core.model.messages import DiffDetail, JsonObject
from midturn_core.permission.access import PathAccess
from midturn_core.tool import ConcurrencyBehavior, InterruptBehavior, InvalidInputError
from midturn_tools._replace import replace_text
from midturn_tools.edit import EditTool
from tests.support.file_bench import FileBench, error, output
from tests.support.tool_context import make_tool_context


@pytest.fixture
def bench(tmp_path: Path) -> FileBench:
    return FileBench(tmp_path)


def test_edit_is_sequential_and_declares_that_it_writes(bench: FileBench) -> None:
    tool = EditTool()
    assert tool.get_concurrency_behavior() is ConcurrencyBehavior.SEQUENTIAL
    assert tool.get_interrupt_behavior() is InterruptBehavior.NON_INTERRUPTIBLE
    target = bench.folder / "a"
    assert tool.access({"file_path": "a"}, bench.context) == (PathAccess(target, target, True),)


async def test_a_crlf_file_takes_edits_in_line_feeds_and_stays_crlf(bench: FileBench) -> None:
    """MB-0401, MB-0403: twice without a read between."""
    bench.put("w.py", b"def a():\r\n    x = 1\r\n    return x\r\n")
    await bench.read("w.py")
    output(await bench.edit("w.py", "    x = 1\n    return x", "    x = 2\n    return x"))
    assert bench.bytes_of("w.py") == b"def a():\r\n    x = 2\r\n    return x\r\n"
    output(await bench.edit("w.py", "x = 2", "x = 3"))


async def test_one_changed_word_is_a_one_line_change(bench: FileBench) -> None:
    """MB-0402: whatever the line ends, no other byte moves."""
    lines = [f"line {i} old\r\n" for i in range(500)]
    path = bench.put("a.txt", "".join(lines))
    await bench.read("a.txt")
    result = await bench.edit("a.txt", "line 250 old", "line 250 new")
    lines[250] = "line 250 new\r\n"
    assert path.read_bytes() == "".join(lines).encode()
    assert result.detail == DiffDetail(
        path="a.txt",
        unified=(
            "@@ -248,7 +248,7 @@\n line 247 old\n line 248 old\n line 249 old\n"
            "-line 250 old\n+line 250 new\n line 251 old\n line 252 old\n line 253 old"
        ),
        added=1,
        removed=1,
    )
    assert result.summary == "+1 -1"


async def test_the_model_sees_the_changed_region_with_line_numbers(bench: FileBench) -> None:
    bench.put("a.txt", "".join(f"{i}\n" for i in range(1, 11)))
    await bench.read("a.txt")
    text = output(await bench.edit("a.txt", "5\n", "five\nand\n"))
    assert text == (
        "Edited a.txt: 1 replacement. It now reads:\n\n"
        "     2\t2\n     3\t3\n     4\t4\n     5\tfive\n     6\tand\n     7\t6\n     8\t7\n     9\t8"
    )


async def test_replace_all_counts_and_shows_each_region(bench: FileBench) -> None:
    bench.put("a.txt", "".join("x\n" if i in (1, 50) else "-\n" for i in range(1, 100)))
    await bench.read("a.txt")
    text = output(await bench.edit("a.txt", "x", "y", replace_all=True))
    assert "2 replacements" in text and "     1\ty\n" in text and "    50\ty\n" in text
    assert "    20\t" not in text


async def test_a_file_that_is_emptied_is_said_to_hold_nothing(bench: FileBench) -> None:
    bench.put("a.txt", "a\n")
    await bench.read("a.txt")
    assert output(await bench.edit("a.txt", "a\n", "")).endswith("Nothing is left around it.")
    assert bench.bytes_of("a.txt") == b""
    output(await bench.edit("a.txt", "", "new\n"))
    assert bench.bytes_of("a.txt") == b"new\n"


async def test_an_ambiguous_text_is_refused_with_count_and_lines(bench: FileBench) -> None:
    bench.put("a.txt", "x\n-\nx\nx x\n")
    await bench.read("a.txt")
    message = error(await bench.edit("a.txt", "x", "y"))
    assert "occurs 4 times, at lines 1, 3, 4." in message and "replace_all" in message
    assert bench.bytes_of("a.txt") == b"x\n-\nx\nx x\n"


async def test_a_file_that_was_not_read_is_refused(bench: FileBench) -> None:
    bench.put("a.txt", "a\n")
    assert error(await bench.edit("a.txt", "a", "b")) == (
        "a.txt has not been read in this conversation; read it before changing it."
    )


async def test_another_context_has_read_nothing(bench: FileBench) -> None:
    bench.put("a.txt", "a\n")
    await bench.read("a.txt")
    other = make_tool_context(bench.folder)
    given = {"file_path": "a.txt", "old_string": "a", "new_string": "b"}
    assert "has not been read" in error(await EditTool().run(dict(given), other))


async def test_a_read_through_a_link_counts_for_its_target(bench: FileBench) -> None:
    """MB-0408."""
    bench.put("real", "a\n")
    (bench.folder / "link").symlink_to("real")
    await bench.read("link")
    output(await bench.edit("real", "a", "b"))
    output(await bench.edit("link", "b", "c"))
    assert (bench.folder / "link").is_symlink() and bench.bytes_of("real") == b"c\n"


async def test_own_changes_and_a_touch_make_nothing_stale(bench: FileBench) -> None:
    """MB-0417."""
    path = bench.put("a.txt", "a\n")
    await bench.read("a.txt")
    output(await bench.edit("a.txt", "a", "b"))
    output(await bench.edit("a.txt", "b", "c"))
    os.utime(path, (1, 1))
    output(await bench.edit("a.txt", "c", "d"))
    output(await bench.write("a.txt", "e\n"))
    output(await bench.edit("a.txt", "e", "f"))
    path.write_text("g\n")
    assert "was changed since it was last read" in error(await bench.edit("a.txt", "g", "h"))


async def test_a_byte_order_mark_is_kept_and_never_shown(bench: FileBench) -> None:
    """MB-0404."""
    bench.put("a.txt", b"\xef\xbb\xbf" + "제목\n값=1\n".encode())
    assert output(await bench.read("a.txt")).startswith("     1\t제목")
    output(await bench.edit("a.txt", "값=1", "값=2"))
    assert bench.bytes_of("a.txt") == b"\xef\xbb\xbf" + "제목\n값=2\n".encode()


async def test_legacy_bytes_elsewhere_survive(bench: FileBench) -> None:
    """MB-0405."""
    bench.put("l1.txt", b"n = 7\n# na\xefve\n")
    assert "U+FFFD" in output(await bench.read("l1.txt"))
    output(await bench.edit("l1.txt", "n = 7", "n = 8"))
    assert bench.bytes_of("l1.txt") == b"n = 8\n# na\xefve\n"


async def test_a_korean_legacy_file_stays_in_its_encoding(tmp_path: Path) -> None:
    """MB-0406: where the encoding is configured."""
    bench = FileBench(tmp_path, ("cp949",))
    bench.put("k.txt", "이름=홍길동\n값=1\n".encode("cp949"))
    assert "홍길동" in output(await bench.read("k.txt"))
    output(await bench.edit("k.txt", "값=1", "값=2"))
    output(await bench.edit("k.txt", "홍길동", "김철수"))
    assert bench.bytes_of("k.txt") == "이름=김철수\n값=2\n".encode("cp949")


async def test_where_the_encoding_is_not_known_the_way_out_is_named(bench: FileBench) -> None:
    """MB-0406: nothing is changed, and the reason is told by Read and by Edit."""
    data = "이름=홍길동\n값=1\n".encode("cp949")
    bench.put("k.txt", data)
    named = "encodings of the [files] configuration"
    assert named in output(await bench.read("k.txt"))
    for old, new in (("값=1", "값=2"), ("홍길동", "김철수"), ("=1", "=하나")):
        assert named in error(await bench.edit("k.txt", old, new))
    assert bench.bytes_of("k.txt") == data


async def test_a_line_put_into_a_legacy_file_is_in_its_encoding(tmp_path: Path) -> None:
    """MB-0407."""
    bench = FileBench(tmp_path, ("shift_jis",))
    bench.put("sjis.txt", "日本\nn = 1\n".encode("shift_jis"))
    await bench.read("sjis.txt")
    output(await bench.edit("sjis.txt", "n = 1", "n = 1\n日本語"))
    assert bench.bytes_of("sjis.txt").decode("shift_jis") == "日本\nn = 1\n日本語\n"


async def test_no_second_encoding_gets_into_a_file(bench: FileBench) -> None:
    """MB-0407: where the encoding is not known."""
    data = "日本\nn = 1\n".encode("shift_jis")
    bench.put("sjis.txt", data)
    await bench.read("sjis.txt")
    assert "unknown encoding" in error(await bench.edit("sjis.txt", "n = 1", "n = 1\n日本語"))
    assert bench.bytes_of("sjis.txt") == data


async def test_an_encoding_that_would_move_other_bytes_is_refused(tmp_path: Path) -> None:
    bench = FileBench(tmp_path, ("cp932",))
    data = b"\xfa\x54 x\n"
    assert data.decode("cp932").encode("cp932") != data
    bench.put("a.txt", data)
    await bench.read("a.txt")
    assert "cannot be changed safely" in error(await bench.edit("a.txt", "x", "y"))
    assert bench.bytes_of("a.txt") == data


@pytest.mark.parametrize("mode", [0o755, 0o600])
async def test_permissions_are_kept(bench: FileBench, mode: int) -> None:
    """MB-0409."""
    path = bench.put("run.sh", "a\n")
    path.chmod(mode)
    await bench.read("run.sh")
    output(await bench.edit("run.sh", "a", "b"))
    output(await bench.write("run.sh", "c\n"))
    assert path.stat().st_mode & 0o7777 == mode


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        ("one\ntwo\n", "two", "2", "one\n2\n"),
        ("one\ntwo\n", "two\n", "2\n", "one\n2\n"),
        ("one\ntwo", "two", "2", "one\n2"),
        ("one\ntwo", "two", "2\n", "one\n2\n"),
        ("one\ntwo\n", "two\n", "2", "one\n2"),
        ("one\r\ntwo", "two", "2\n3", "one\r\n2\r\n3"),
    ],
)
async def test_the_end_of_the_file_changes_only_as_the_edit_says(
    bench: FileBench, before: str, old: str, new: str, after: str
) -> None:
    """MB-0410."""
    bench.put("a.txt", before)
    await bench.read("a.txt")
    output(await bench.edit("a.txt", old, new))
    assert bench.bytes_of("a.txt").decode() == after


async def test_tabs_of_a_makefile_stay_tabs(bench: FileBench) -> None:
    """MB-0411."""
    bench.put("Makefile", "all:\n\techo one\n")
    await bench.read("Makefile")
    output(await bench.edit("Makefile", "\techo one", "\techo two"))
    assert bench.bytes_of("Makefile") == b"all:\n\techo two\n"


async def test_curly_quotes_are_kept(bench: FileBench) -> None:
    """MB-0413."""
    bench.put("q.md", "그녀는 “안녕”이라고\n")
    await bench.read("q.md")
    output(await bench.edit("q.md", "“안녕”", "“잘 가”"))
    assert bench.bytes_of("q.md").decode() == "그녀는 “잘 가”이라고\n"


@pytest.mark.parametrize(
    ("content", "old", "hint"),
    [
        (
            unicodedata.normalize("NFD", "x\n한글\n"),
            "한글",
            "line 2 differs from it only in another",
        ),
        ("x\na\u00a0b\n", "a b", "line 2 differs from it only in its blanks"),
        ("if x:\n\ty\n", "if x:\n    y", "line 1 differs from it only in its blanks"),
        ("say “hi”\n", 'say "hi"', "line 1 differs from it only in the shape of its quotes"),
        ("Hello\n", "hello", "line 1 differs from it only in upper and lower case"),
        ("foo\nbar\n", "     1\tfoo\n     2\tbar", "holds the line numbers that Read shows"),
        ("a\rb\rc\r", "b\nc", "Lines end with a carriage return alone there"),
        ('{"s": ["x = \\"1\\"\\n", "y"]}\n', 'x = "1"', "It stands in strings of JSON"),
        ('{"s": ["x = 1\\n", "y"]}\n', "x = 1\ny", "It stands in strings of JSON"),
        ("a\ndef f():\n    return 1\n", "def f():\n    return 2", "first line occurs at line 2,"),
    ],
)
async def test_a_text_that_is_not_there_is_answered_with_the_likely_reason(
    bench: FileBench, content: str, old: str, hint: str
) -> None:
    """MB-0414: letters that are decomposed in the file."""
    bench.put("a.txt", content)
    await bench.read("a.txt")
    assert hint in error(await bench.edit("a.txt", old, "new"))
    assert bench.bytes_of("a.txt").decode() == content


async def test_replace_all_leaves_combined_characters_alone_and_says_so(bench: FileBench) -> None:
    bench.put("a.txt", "e e\u0301 e\n")
    await bench.read("a.txt")
    text = output(await bench.edit("a.txt", "e", "x", replace_all=True))
    assert "2 replacements. Left alone, as they end inside a combined character: 1." in text
    assert bench.bytes_of("a.txt").decode() == "x e\u0301 x\n"


async def test_another_name_of_the_file_keeps_the_old_content_and_that_is_said(
    bench: FileBench,
) -> None:
    path = bench.put("a.txt", "a\n")
    os.link(path, bench.folder / "b.txt")
    await bench.read("a.txt")
    assert "hard link" in output(await bench.edit("a.txt", "a", "b"))
    assert (bench.bytes_of("a.txt"), bench.bytes_of("b.txt")) == (b"b\n", b"a\n")


async def test_a_missing_file_is_not_made_by_an_edit_of_text(bench: FileBench) -> None:
    bench.put("main.py", "x")
    assert "Did you mean main.py?" in error(await bench.edit("mian.py", "a", "b"))


def test_the_places_of_one_long_line_cost_no_more_than_those_of_many_lines() -> None:
    """A change of every place in a minified file must not look through it for each of them."""

    def seconds(text: str) -> float:
        begun = time.process_time()
        assert replace_text(text, ";", ";\n", every=True).count == 100_000
        return time.process_time() - begun

    statement = f"{'x' * 40};"
    many_lines = min(seconds(f"{statement}\n" * 100_000) for _ in range(2))
    assert seconds(f"{statement} " * 100_000) < 10 * many_lines


def test_equal_texts_are_refused_before_anything_is_touched() -> None:
    with pytest.raises(InvalidInputError, match="nothing would change"):
        EditTool().validate({"file_path": "a", "old_string": "x", "new_string": "x"})


async def test_thousands_of_places_are_replaced_and_the_answer_stays_small(
    bench: FileBench,
) -> None:
    bench.put("a.txt", "old value\r\nother\r\n" * 50_000)
    await bench.read("a.txt")
    result = await bench.edit("a.txt", "old", "new", replace_all=True)
    assert bench.bytes_of("a.txt") == b"new value\r\nother\r\n" * 50_000
    assert len(output(result)) < 10_000 and "50,000 replacements" in output(result)
    assert isinstance(result.detail, DiffDetail)
    assert (result.detail.added, result.detail.removed) == (50_000, 50_000)
    assert len(result.detail.unified) < 50_000


def test_a_question_shows_the_change_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("one\ntwo\nx = 1\nfour\n")
    change: JsonObject = {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}
    detail = EditTool().preview(change, [PathAccess(path, path, True)])
    assert (detail.added, detail.removed) == (1, 1)
    assert detail.unified.split("\n")[:5] == ["@@ -1,4 +1,4 @@", " one", " two", "-x = 1", "+x = 2"]


@pytest.mark.parametrize("content", [None, "something else"])
def test_a_question_about_a_change_that_fits_nowhere_shows_its_texts(
    tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "a.py"
    if content is not None:
        path.write_text(content)
    change: JsonObject = {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}
    detail = EditTool().preview(change, [PathAccess(path, path, True)])
    assert detail.unified.split("\n")[1:] == ["-x = 1", "+x = 2"]
