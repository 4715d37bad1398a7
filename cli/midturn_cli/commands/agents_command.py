"""/agents: the types of subagents that the model can start."""

from __future__ import annotations

import os

from midturn_cli.commands.arguments import no_arguments
from midturn_cli.commands.command import Command, Use
from midturn_cli.commands.info_commands import first_sentence
from midturn_core import paths
from midturn_core.subagent.definition_files import FOLDER


def agents(use: Use) -> None:
    no_arguments(use, "/agents")
    engine = use.engine
    names = engine.registry.names()
    rows = [
        (
            kind.name,
            _tools([name for name in names if kind.has(name)], len(names) - 1),
            kind.model or "as the session",
            str(kind.max_steps),
            kind.source,
            first_sentence(kind.description),
        )
        for kind in engine.subagents.types
    ]
    header = ("type", "tools", "model", "steps", "from", "what it does")
    folder = paths.config_folder(os.environ) / FOLDER
    running = len(engine.subagents.executor.running)
    now = f"{running} running now; " if running else ""
    use.table("Subagents", header, rows, f"{now}your own types are *.md files in {folder}")


def _tools(names: list[str], every: int) -> str:
    return "all but Task" if len(names) == every else ", ".join(names) or "none"


AGENTS = Command("agents", "see the types of subagents", now=agents)
