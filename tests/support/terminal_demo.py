"""A live terminal with a fake session, to be driven through a PTY.

Lines: ``go COUNT RATE`` streams numbered lines (RATE per second, 0 at full speed), ``ask TITLE``
asks, ``print TEXT`` and ``warn TEXT`` use the process's own streams, ``raise`` fails in the loop,
``die`` kills the writer; anything else is reported with its length and hash.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import sys
import time
import warnings
from pathlib import Path

from midturn_cli.terminal.prepaint import prepaint

TTY = prepaint()

from midturn_cli.terminal.app import TerminalFrontEnd  # noqa: E402  # after the prompt is on screen
from midturn_cli.terminal.options import TerminalOptions  # noqa: E402
from midturn_cli.terminal.terminal_io import open_terminal  # noqa: E402
from midturn_cli.ui_events import CommandOutput  # noqa: E402
from midturn_core.config import KeysConfig, QueueConfig  # noqa: E402
from midturn_core.events import (  # noqa: E402
    AskAnswered,
    AskRequested,
    AskWithdrawn,
    TextDelta,
    TurnEnded,
    TurnEndReason,
    TurnStarted,
)
from midturn_core.ids import AgentRuntimeId  # noqa: E402
from midturn_core.model.messages import Usage  # noqa: E402
from midturn_core.permission.ask import Ask  # noqa: E402
from tests.support.fake_presenter import FakePresenter  # noqa: E402
from tests.support.fake_session import FakeSession  # noqa: E402

CONTEXT = AgentRuntimeId("demo")


class Demo(FakeSession):
    """Runs the lines of the module docstring."""

    front: TerminalFrontEnd
    turn: asyncio.Task[None] | None = None

    def start(self, text: str) -> None:
        words = text.split()
        if words[:1] == ["go"]:
            self.turn = asyncio.create_task(self.stream(int(words[1]), float(words[2])))
        elif words[:1] == ["ask"]:
            self.turn = asyncio.create_task(self.question(words[1]))
        elif words[:1] == ["print"]:
            print(text)  # noqa: T201  # what a library might do
        elif words[:1] == ["warn"]:
            warnings.warn(text, stacklevel=1)
        elif words == ["raise"]:
            asyncio.get_running_loop().call_soon(self.fail)
        else:
            self.report(text)

    def fail(self) -> None:
        raise ValueError("planted failure")

    def report(self, text: str) -> None:
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        self.front.emit(CommandOutput(f"GOT {len(text)} {digest} {text[:30]!r}"))

    def interrupt(self) -> bool:
        if self.turn is not None:
            self.turn.cancel()
        return self.busy

    async def stream(self, count: int, rate: float) -> None:
        self.busy = True
        self.front.emit(TurnStarted(CONTEXT, "turn", ()))
        reason = TurnEndReason.DONE
        started = time.perf_counter()
        try:
            for number in range(count):
                for piece in (f"L{number:05} ", "streamed ", "text\n"):
                    self.front.emit(TextDelta(piece))
                due = started + (number + 1) / rate if rate else 0.0
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
        except asyncio.CancelledError:
            reason = TurnEndReason.INTERRUPTED
        self.end(reason)

    async def question(self, title: str) -> None:
        self.busy = True
        ask = Ask(title, CONTEXT, "use", "Bash", title, title, "", session_rule="Bash(x)")
        self.front.emit(TurnStarted(CONTEXT, "turn", ()))
        self.front.emit(AskRequested(ask))
        reason = TurnEndReason.DONE
        try:
            reply = await self.front.ask_handler.resolve(ask)
            self.front.emit(AskAnswered(ask, reply))
        except asyncio.CancelledError:
            self.front.emit(AskWithdrawn(ask, "interrupted"))
            reason = TurnEndReason.INTERRUPTED
        self.end(reason)

    def end(self, reason: TurnEndReason) -> None:
        self.busy = False
        self.front.emit(TurnEnded(CONTEXT, "turn", reason, 1, Usage(), 0.0))


async def run() -> int:
    demo = Demo()
    demo.on_submit = demo.start
    options = TerminalOptions(workspace=Path.cwd(), key_map=KeysConfig(), queue=QueueConfig())
    demo.front = TerminalFrontEnd(demo, FakePresenter, options, open_terminal(TTY))
    return await demo.front.run()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(asyncio.run(run()))
