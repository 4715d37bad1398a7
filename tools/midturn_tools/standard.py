"""The tools an agent has by default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from midturn_core.config import FilesConfig, WebConfig
from midturn_core.tool import Tool
from midturn_tools.bash import BashTool
from midturn_tools.edit import EditTool
from midturn_tools.glob import GlobTool
from midturn_tools.grep import GrepTool
from midturn_tools.read import ReadTool
from midturn_tools.todo_write import TodoWriteTool
from midturn_tools.web_fetch import WebFetchTool
from midturn_tools.write import WriteTool


@dataclass(frozen=True, slots=True)
class StandardTools:
    """The tools, and those of them that somebody needs to talk to by name."""

    bash: BashTool
    todos: TodoWriteTool
    web: WebFetchTool
    others: Sequence[Tool]

    def all(self) -> tuple[Tool, ...]:
        """In the order in which the model is told of them."""
        return (*self.others, self.web, self.bash, self.todos)


def standard_tools(web: WebConfig, files: FilesConfig) -> StandardTools:
    encodings = files.encodings
    return StandardTools(
        bash=BashTool(),
        todos=TodoWriteTool(),
        web=WebFetchTool(web),
        others=(
            ReadTool(encodings),
            GrepTool(),
            GlobTool(),
            EditTool(encodings),
            WriteTool(encodings),
        ),
    )
