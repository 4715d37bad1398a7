"""The subagents of one session, wired to the parts that it shares with them."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

from midturn_core import paths
from midturn_core.conversation import AssistantAdded
from midturn_core.model.messages import ToolUse, Usage
from midturn_core.prompt import build_system_prompt
from midturn_core.subagent.definition_files import FOLDER, DefinedTypes, read_definitions
from midturn_core.subagent.executor import DEFAULT_TIME_LIMIT, SubagentExecutor, SubagentParts
from midturn_core.subagent.prompt import subagent_base
from midturn_core.subagent.types import TASK_TOOL, SubagentType, SubagentTypes
from midturn_tools.task import TaskTool

if TYPE_CHECKING:
    from midturn_cli.engine import Engine


class SessionSubagents:
    """The types, the executor and the tool that the model starts subagents with."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @cached_property
    def _defined(self) -> DefinedTypes:
        folder = paths.config_folder(os.environ) / FOLDER
        return read_definitions(folder, [tool.name for tool in self._engine.tools.all()])

    @property
    def types(self) -> SubagentTypes:
        return self._defined.types

    @property
    def warnings(self) -> tuple[str, ...]:
        """One sentence per thing that is wrong in the user's definitions."""
        return self._defined.warnings

    @cached_property
    def task_tool(self) -> TaskTool:
        return TaskTool(
            self.types,
            self.executor,
            time_limit=DEFAULT_TIME_LIMIT,
            together=self._engine.config.subagents.parallel,
        )

    @cached_property
    def executor(self) -> SubagentExecutor:
        engine = self._engine
        executor = SubagentExecutor(
            SubagentParts(
                session=engine.session.id,
                workspace=engine.workspace,
                model=engine.model,
                model_settings=engine.model_settings,
                tools=lambda: engine.registry,
                authorizer=engine.authorizer,
                queue=engine.queue,
                reminders=engine.reminders,
                system_prompt=self._system_prompt,
                emit=engine.observe,
                on_usage=self._count,
                interceptors=engine.interceptors,
                record_batch=engine.session.record_batch,
                parallel=lambda: engine.parallel.enabled,
                first_number=1 + self._started_before(),
                most=engine.config.subagents.max,
            )
        )
        shared = engine.dispatcher if engine.config.subagents.parallel else None
        return executor.with_parallel_tool_dispatcher(shared)

    def _started_before(self) -> int:
        """At most so many subagents the session had before it was resumed."""
        changes = self._engine.resumed.changes if self._engine.resumed else ()
        return sum(
            isinstance(block, ToolUse) and block.name == TASK_TOOL
            for change in changes
            if isinstance(change, AssistantAdded)
            for block in change.blocks
        )

    def _system_prompt(self, kind: SubagentType, parallel: bool) -> str:
        engine = self._engine
        return build_system_prompt(
            engine.surroundings,
            reminder_tag=engine.reminders.tag,
            parallel=parallel,
            base=subagent_base(kind),
        )

    def _count(self, usage: Usage) -> None:
        self._engine.agent.add_delegated(usage)
        self._engine.show_status()
