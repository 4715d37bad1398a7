"""The list of all slash commands."""

from __future__ import annotations

from midturn_cli.commands.agents_command import AGENTS
from midturn_cli.commands.command import Command
from midturn_cli.commands.context_command import CONTEXT
from midturn_cli.commands.copy_command import COPY
from midturn_cli.commands.diff_command import DIFF
from midturn_cli.commands.expand_command import EXPAND
from midturn_cli.commands.export_command import EXPORT
from midturn_cli.commands.help_command import HELP
from midturn_cli.commands.info_commands import CONFIG, COST, STATUS, TOOLS
from midturn_cli.commands.model_command import MODEL
from midturn_cli.commands.parallel_command import PARALLEL
from midturn_cli.commands.permission_commands import MODE, PERMISSIONS
from midturn_cli.commands.queue_commands import LATER, NEXT, NOW, QUEUE
from midturn_cli.commands.remind_command import REMIND
from midturn_cli.commands.session_commands import CLEAR, EXIT, RESUME
from midturn_cli.commands.speedup_command import SPEEDUP
from midturn_cli.commands.theme_command import THEME
from midturn_cli.commands.turn_commands import COMPACT, INIT, RETRY
from midturn_cli.commands.why_command import WHY


def all_commands() -> list[Command]:
    """In the order in which /help lists them."""
    return [
        HELP,
        PARALLEL,
        WHY,
        SPEEDUP,
        QUEUE,
        NOW,
        NEXT,
        LATER,
        REMIND,
        RETRY,
        MODEL,
        MODE,
        PERMISSIONS,
        STATUS,
        COST,
        CONTEXT,
        CLEAR,
        COMPACT,
        RESUME,
        INIT,
        DIFF,
        EXPAND,
        COPY,
        EXPORT,
        THEME,
        TOOLS,
        AGENTS,
        CONFIG,
        EXIT,
    ]
