"""Read, Edit and Write over one folder and one memory of read files, as a turn has them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from midturn_core.model.messages import JsonValue
from midturn_core.tool import Tool, ToolContext, ToolResult
from midturn_tools.edit import EditTool
from midturn_tools.read import ReadTool
from midturn_tools.write import WriteTool
from tests.support.tool_context import make_tool_context


class FileBench:
    """Paths are given relative to the folder. Every call goes through ``validate`` first."""

    def __init__(self, folder: Path, fallbacks: Sequence[str] = ()) -> None:
        self.context: ToolContext = make_tool_context(folder)
        self.folder = self.context.workspace
        self._read = ReadTool(fallbacks)
        self._edit = EditTool(fallbacks)
        self._write = WriteTool(fallbacks)

    def put(self, path: str, content: bytes | str) -> Path:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target

    def bytes_of(self, path: str) -> bytes:
        return (self.folder / path).read_bytes()

    async def read(self, path: str, **more: JsonValue) -> ToolResult:
        return await self._run(self._read, {"file_path": path, **more})

    async def edit(self, path: str, old: str, new: str, **more: JsonValue) -> ToolResult:
        given = {"file_path": path, "old_string": old, "new_string": new}
        return await self._run(self._edit, {**given, **more})

    async def write(self, path: str, content: str) -> ToolResult:
        return await self._run(self._write, {"file_path": path, "content": content})

    async def _run(self, tool: Tool, tool_input: dict[str, JsonValue]) -> ToolResult:
        tool.validate(tool_input)
        return await tool.run(tool_input, self.context)


def output(result: ToolResult) -> str:
    """The output of a call that must have succeeded."""
    assert result.error is None, result.error
    assert result.output is not None
    return result.output


def error(result: ToolResult) -> str:
    """The error of a call that must have failed."""
    assert result.error is not None, result.output
    return result.error
