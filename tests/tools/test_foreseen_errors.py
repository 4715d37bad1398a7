"""What must fail is told before a question, and never more than the model may know."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from midturn_core.call_runner import PendingCall
from midturn_core.dispatch.runner import BatchCall
from midturn_core.interrupt import CancelReason, SignalSource
from midturn_core.model.messages import DiffDetail, JsonObject, Outcome, ToolUse, ToolUseResult
from midturn_core.permission.ask import Ask, AskAnswer, AskReply
from midturn_core.permission.authorizer import Authorizer
from midturn_core.permission.decision import PermissionMode
from midturn_core.permission.gate import AskGate
from midturn_core.permission.policy import PermissionPolicy
from midturn_core.permission.rules import RuleSet
from midturn_core.permission.stage import PermissionStage
from midturn_core.tool import Tool, ToolContext
from midturn_tools.edit import EditTool
from midturn_tools.read import ReadTool
from midturn_tools.write import WriteTool
from tests.support.tool_context import make_tool_context

YES = AskReply(AskAnswer.ONCE)


def nothing() -> None:
    return None


@dataclass
class Desk:
    """Calls on real files go through the permission stage; a person says yes to every question."""

    folder: Path
    deny: Sequence[str] = ()
    asked: list[Ask] = field(default_factory=list[Ask])
    before_answer: Callable[[], None] = nothing
    signal: SignalSource = field(default_factory=SignalSource)

    def __post_init__(self) -> None:
        self.context: ToolContext = make_tool_context(self.folder)
        policy = PermissionPolicy(
            self.context.workspace, RuleSet.parse(deny=self.deny), home=Path("/home/someone")
        )
        self.authorizer = Authorizer(policy, AskGate(self, lambda _: None))
        self.stage = PermissionStage(self.authorizer, self.context.context_id)

    async def resolve(self, ask: Ask) -> AskReply:
        self.asked.append(ask)
        self.before_answer()
        return YES

    async def reads(self, name: str) -> None:
        result = await ReadTool().run({"file_path": name}, self.context)
        assert result.error is None

    async def permits(
        self, tool: Tool, tool_input: JsonObject, index: int = 0
    ) -> ToolUseResult | None:
        tool.validate(tool_input)
        accesses = tuple(tool.access(tool_input, self.context))
        call = BatchCall(
            tool_use=ToolUse(f"toolu_{index}", tool.name, tool_input),
            batch_id="batch-1",
            step=1,
            index=index,
            count=2,
            signal=self.signal,
            announce=lambda _: None,
            progress=lambda _: None,
        )
        context = replace(self.context, accesses=accesses)
        return await self.stage(PendingCall(call, tool, accesses, context=context))

    async def refusal(self, tool: Tool, tool_input: JsonObject) -> str:
        """Of a call that nobody is asked about, since it would fail."""
        result = await self.permits(tool, tool_input)
        assert result is not None and self.asked == []
        assert result.outcome is Outcome.FAILED
        ran = await tool.run(tool_input, self.context)
        assert result.content == f"Error: {ran.error}"
        return result.content


def edit(old: str, new: str, name: str = "a.txt", **more: bool) -> JsonObject:
    return {"file_path": name, "old_string": old, "new_string": new, **more}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "a.txt").write_text("one\ntwo\ntwo\n")
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (edit("three", "four"), "does not occur"),
        (edit("two", "four"), "2"),
        (edit("", "four"), "has content"),
        (edit("x", "y", "none.txt"), "File not found"),
    ],
)
async def test_an_edit_that_does_not_fit_is_refused_without_a_question(
    desk: Desk, change: JsonObject, why: str
) -> None:
    await desk.reads("a.txt")
    assert why in await desk.refusal(EditTool(), change)


@pytest.mark.parametrize(
    ("tool", "change"),
    [(EditTool(), edit("one", "1")), (WriteTool(), {"file_path": "a.txt", "content": "1"})],
)
async def test_a_file_that_was_not_read_or_has_changed_is_told_without_a_question(
    desk: Desk, tool: Tool, change: JsonObject
) -> None:
    assert "read it before" in await desk.refusal(tool, change)
    await desk.reads("a.txt")
    (desk.folder / "a.txt").write_text("one\nthree\n")
    assert "was changed since" in await desk.refusal(tool, change)


@pytest.mark.parametrize(("name", "why"), [("sub", "is a folder"), ("a.txt/b", "is a file")])
async def test_a_write_that_something_is_in_the_way_of_is_refused_without_a_question(
    desk: Desk, name: str, why: str
) -> None:
    (desk.folder / "sub").mkdir()
    assert why in await desk.refusal(WriteTool(), {"file_path": name, "content": "x"})


async def test_what_fits_is_asked_and_nothing_is_changed_by_looking(desk: Desk) -> None:
    await desk.reads("a.txt")
    before = (desk.folder / "a.txt").stat()
    for tool, change in (
        (EditTool(), edit("two", "2", replace_all=True)),
        (WriteTool(), {"file_path": "a.txt", "content": "new"}),
        (WriteTool(), {"file_path": "deep/new.txt", "content": "new"}),
        (EditTool(), edit("", "new", "other.txt")),
    ):
        assert await desk.permits(tool, change) is None
    assert len(desk.asked) == 4
    assert (desk.folder / "a.txt").stat() == before
    assert [entry.name for entry in desk.folder.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("rule", ["Read(a.txt)", "Edit(a.txt)", "Edit", "Write(a.txt)"])
@pytest.mark.parametrize("name", ["a.txt", "link.txt"])
async def test_a_denied_call_is_denied_before_anything_is_looked_at(
    tmp_path: Path, rule: str, name: str
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "link.txt").symlink_to("a.txt")
    desk = Desk(tmp_path, [rule])
    tool: Tool = WriteTool() if "Write" in rule else EditTool()
    texts = {"content": "x"} if "Write" in rule else {"old_string": "absent", "new_string": "y"}
    result = await desk.permits(tool, {"file_path": name, **texts})
    assert result is not None and result.outcome is Outcome.DENIED
    assert f"the rule {rule} denies it" in result.content
    assert "occur" not in result.content and "read it" not in result.content


@pytest.mark.parametrize("exists", [True, False])
async def test_of_a_file_that_may_not_be_read_without_a_question_nothing_is_told(
    tmp_path: Path, exists: bool
) -> None:
    """Whether it is there would be an answer that no person has given."""
    folder, outside = tmp_path / "repo", tmp_path / "outside.txt"
    folder.mkdir()
    if exists:
        (folder / ".env").write_text("KEY=1\n")
        outside.write_text("one\n")
    desk = Desk(folder)
    for name in (str(outside), ".env"):
        assert await desk.permits(EditTool(), edit("absent", "x", name)) is None
    assert len(desk.asked) == 2
    if exists:
        await desk.reads(str(outside))
        result = await desk.permits(EditTool(), edit("absent", "x", str(outside)))
        assert result is not None and "does not occur" in result.content


async def test_a_question_that_waited_shows_the_file_as_it_is_when_it_is_shown(
    desk: Desk,
) -> None:
    await desk.reads("a.txt")

    def change_it() -> None:
        (desk.folder / "a.txt").write_text("zero\none\ntwo\ntwo\n")
        desk.before_answer = nothing

    async def read_again() -> ToolUseResult | None:
        return await desk.permits(WriteTool(), {"file_path": "b.txt", "content": "x"})

    desk.before_answer = change_it
    _, second = await asyncio.gather(
        read_again(), desk.permits(EditTool(), edit("one", "1"), index=1)
    )
    assert second is not None and "was changed since" in second.content
    await desk.reads("a.txt")
    assert await desk.permits(EditTool(), edit("one", "1")) is None
    detail = desk.asked[-1].detail
    assert isinstance(detail, DiffDetail)
    assert detail.unified.split("\n")[1:3] == [" zero", "-one"]


async def test_the_call_looks_again_when_it_runs(desk: Desk) -> None:
    await desk.reads("a.txt")

    def change_it() -> None:
        (desk.folder / "a.txt").write_text("other\n")

    desk.before_answer = change_it
    change = edit("one", "1")
    assert await desk.permits(EditTool(), change) is None
    result = await EditTool().run(change, desk.context)
    assert result.error is not None and "was changed since" in result.error
    assert (desk.folder / "a.txt").read_text() == "other\n"


class SlowLook(EditTool):
    """Says on which thread it looks, and waits there until it may go on."""

    def __init__(self, entered: Callable[[], None]) -> None:
        super().__init__()
        self._entered = entered
        self.go_on = threading.Event()
        self.thread: int | None = None

    def foreseen_error(self, tool_input: JsonObject, context: ToolContext) -> str | None:
        self.thread = threading.get_ident()
        self._entered()
        self.go_on.wait(60)
        return "seen too late"


@pytest.mark.parametrize("cut", ["signal", "mode", "deny"])
async def test_a_slow_look_holds_nothing_up_and_permission_comes_before_what_it_saw(
    desk: Desk, cut: str
) -> None:
    entered, loop = asyncio.Event(), asyncio.get_running_loop()

    def has_entered() -> None:
        loop.call_soon_threadsafe(entered.set)

    tool = SlowLook(has_entered)
    task = asyncio.create_task(desk.permits(tool, edit("one", "1")))
    async with asyncio.timeout(60):
        await entered.wait()
        assert tool.thread != threading.get_ident()
        match cut:
            case "signal":
                desk.signal.trip(CancelReason.INTERRUPT)
            case "mode":
                desk.authorizer.set_mode(PermissionMode.ACCEPT_EDITS)
                tool.go_on.set()
            case _:
                rules = RuleSet.parse(deny=["Edit"])
                desk.authorizer.set_policy(replace(desk.authorizer.policy, rules=rules))
                tool.go_on.set()
        result = await task
        tool.go_on.set()
    assert desk.asked == []
    assert (result.outcome if result else None) is {
        "signal": Outcome.SKIPPED,
        "mode": None,
        "deny": Outcome.DENIED,
    }[cut]
