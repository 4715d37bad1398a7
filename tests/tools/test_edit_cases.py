"""Every case of tests/corpora/edit_cases.json against Edit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from midturn_core.model.messages import JsonObject
from midturn_core.tool import InvalidInputError, ToolContext
from midturn_tools.edit import EditTool
from midturn_tools.read import ReadTool
from tests.support.file_cases import Case, bytes_of, case_id, load_cases, text_of
from tests.support.ordinary_user import case_folder
from tests.support.tool_context import make_tool_context

VERDICTS = {
    "not_found": "does not occur",
    "not_unique": "occurs",
    "no_change": "would change",
    "empty_old": "An empty old_string is for",
    "not_read": "has not been read",
    "stale": "since it was last read",
    "binary": "only text files can be changed",
    "unencodable": "Nothing was changed",
    "splits_character": "cut a letter from its accent",
    "read_only": "is read-only",
}


class Bench:
    """One case in a folder of its own: the file, the tools, the state before."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case = case
        self.target = folder / case.get("path", "file.txt")
        self.path = self.target
        self.context: ToolContext = make_tool_context(folder)
        encodings = tuple(filter(None, [case.get("encoding")]))
        self.read, self.edit = ReadTool(encodings), EditTool(encodings)

    def prepare(self) -> None:
        before = bytes_of(self.case, "before")
        if before is not None:
            self.target.write_bytes(before)
        if "mode" in self.case:
            self.target.chmod(self.case["mode"])
        if self.case.get("via_symlink"):
            self.path = self.target.with_name("link")
            self.path.symlink_to(self.target.name)
        if self.case.get("hardlinked"):
            os.link(self.target, self.target.with_name("other"))

    async def read_file(self) -> None:
        arguments: dict[str, str | int] = {"file_path": str(self.path)}
        if "read_range" in self.case:
            first, last = self.case["read_range"]
            arguments |= {"offset": first, "limit": last - first + 1}
        await self.read.run(dict(arguments), self.context)

    def disturb(self) -> None:
        """What happens to the file between the read and the edit."""
        if self.case.get("removed"):
            self.target.unlink()
        elif "changed_to_b64" in self.case:
            status = self.target.stat()
            self.target.write_bytes(bytes_of(self.case, "changed_to") or b"")
            if self.case.get("keep_mtime"):
                os.utime(self.target, ns=(status.st_atime_ns, status.st_mtime_ns))
        elif self.case.get("touch"):
            os.utime(self.target, (1, 1))

    async def apply(self, old: str, new: str, every: bool) -> str:
        arguments: JsonObject = {
            "file_path": str(self.path),
            "old_string": old,
            "new_string": new,
            "replace_all": every,
        }
        try:
            self.edit.validate(arguments)
        except InvalidInputError as error:
            return str(error)
        return (await self.edit.run(arguments, self.context)).error or "ok"

    def bytes_now(self) -> bytes | None:
        return self.target.read_bytes() if self.target.exists() else None


def fits(outcome: str, verdict: str) -> bool:
    return outcome == "ok" if verdict == "ok" else VERDICTS.get(verdict, "?") in outcome


async def check_edit(bench: Bench) -> None:
    case = bench.case
    old, new = text_of(case, "old"), text_of(case, "new")
    outcome = await bench.apply(old, new, case["replace_all"])
    accepted = [case["expected"], *case.get("also_ok", ())]
    assert any(fits(outcome, verdict) for verdict in accepted), (case["reason"], outcome)
    if case["expected"] == "not_unique":
        assert f"occurs {case['count']} times" in outcome
    flipped = outcome == "ok" and case["expected"] != "ok"
    expected = bytes_of(case, "also_after" if flipped else "after")
    assert bench.bytes_now() == expected, case["reason"]


@pytest.mark.parametrize("case", load_cases("edit_cases.json"), ids=case_id)
async def test_edit_does_as_the_case_says(case: Case) -> None:
    with case_folder(ordinary_user=case["expected"] == "read_only") as folder:
        bench = Bench(case, folder)
        bench.prepare()
        if case.get("read_before", True):
            await bench.read_file()
        bench.disturb()
        names = {path.name for path in folder.iterdir()}
        status = bench.target.stat() if bench.target.exists() else None
        await check_edit(bench)
        if "then" in case:
            second = case["then"]
            assert await bench.apply(second["old"], second["new"], False) == "ok"
            assert bench.bytes_now() == bytes_of(second, "after")
        if status is not None:
            check_metadata(bench, status, names)


def check_metadata(bench: Bench, status: os.stat_result, names: set[str]) -> None:
    """Mode and links stay, nothing is left behind, a refused edit leaves the time stamp."""
    now = bench.target.stat()
    assert now.st_mode == status.st_mode
    assert {path.name for path in bench.target.parent.iterdir()} == names
    assert bench.path.is_symlink() == bool(bench.case.get("via_symlink"))
    if bench.case["expected"] != "ok" and "also_ok" not in bench.case:
        assert now.st_mtime_ns == status.st_mtime_ns
