"""``SubagentType``: what types of subagents there are, and which tools each of them has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from midturn_core.tool import Tool

TASK_TOOL = "Task"
"""The tool that starts subagents. No subagent has it."""
READ_ONLY_TOOLS = ("Read", "Grep", "Glob", "WebFetch")
"""What a read-only subagent may have: nothing of it changes a file or runs a program."""
MAX_STEPS_LIMIT = 100
DEFAULT_MAX_STEPS = 50


@dataclass(frozen=True, slots=True)
class SubagentType:
    """One type of subagents.

    Raises:
        ValueError: it is read-only and has a tool that is not.
    """

    name: str
    description: str
    """For the model: when to use it."""
    instructions: str
    """What its system prompt says besides what every subagent is told."""
    tools: tuple[str, ...] = ()
    """Empty: every tool of the session, or every reading one of a read-only type."""
    read_only: bool = False
    model: str = ""
    """Empty: the model of the session."""
    max_steps: int = DEFAULT_MAX_STEPS
    source: str = "built in"
    """Where it is defined: a file, or these words."""

    def __post_init__(self) -> None:
        if self.read_only and (others := set(self.tools) - set(READ_ONLY_TOOLS)):
            raise ValueError(
                f"{', '.join(sorted(others))} can change something, and the type is read-only"
            )

    def has(self, tool_name: str) -> bool:
        """Whether subagents of this type have a tool of the session."""
        if tool_name == TASK_TOOL:
            return False
        return tool_name in self._named if self._named else True

    def tools_among(self, tools: Iterable[Tool]) -> tuple[Tool, ...]:
        """The tools of such a subagent, in the order of the session's."""
        return tuple(tool for tool in tools if self.has(tool.name))

    @property
    def _named(self) -> tuple[str, ...]:
        return self.tools or (READ_ONLY_TOOLS if self.read_only else ())


GENERAL = SubagentType(
    "general",
    "Does one piece of work on its own with every tool but Task: for a task of many steps "
    "whose steps you need not see, such as a change in several files.",
    "You may read, change and run what the task needs, and nothing beyond it.",
)
EXPLORE = SubagentType(
    "explore",
    "Finds out, and changes nothing (Read, Grep, Glob, WebFetch): for a question about the code "
    "or the web that takes many searches and reads, of which you need only the answer.",
    "You only read. Search broadly first, then read what matters. Give the answer with the paths "
    "and line numbers it rests on, and say where you did not look.",
    read_only=True,
)


class SubagentTypes:
    """The types of a session by name, in the order in which the model is told of them."""

    def __init__(self, defined: Iterable[SubagentType] = ()) -> None:
        """``defined`` come after the built-in types; one of the same name takes its place."""
        self._types = {kind.name: kind for kind in (GENERAL, EXPLORE, *defined)}

    def get(self, name: str) -> SubagentType | None:
        return self._types.get(name)

    def names(self) -> tuple[str, ...]:
        return tuple(self._types)

    def __iter__(self) -> Iterator[SubagentType]:
        return iter(self._types.values())
