"""``!command``: a line of the user's own, run in their shell. The model does not see it."""

from __future__ import annotations

from midturn_cli.engine import Engine
from midturn_cli.ui_events import CommandOutput, ShellLineFinished, ShellLineStarted
from midturn_core.ids import new_id
from midturn_core.interrupt import InterruptCoordinator
from midturn_tools.user_shell import run_user_command


def shell_command(text: str) -> str:
    """The command of a ``!`` line; empty when the text is none."""
    line = text.strip()
    return line[1:].strip() if line.startswith("!") else ""


async def run_shell_line(command: str, engine: Engine, interrupt: InterruptCoordinator) -> None:
    """Run it to its end or until the user interrupts, and show what it printed."""
    line_id = new_id("shell")
    engine.emit(ShellLineStarted(line_id, command))
    try:
        result = await run_user_command(command, engine.workspace, interrupt.signal)
    except OSError as error:
        engine.emit(CommandOutput(f"the shell cannot be started: {error}", error=True))
        engine.emit(ShellLineFinished(line_id, command, "", 127))
        return
    engine.emit(ShellLineFinished(line_id, command, result.output, result.exit_code))
