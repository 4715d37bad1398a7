"""Telling a person who looks elsewhere: by the terminal, or by a program of theirs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from midturn_cli.terminal.modes import RawOutput
from midturn_cli.terminal.notices import describe

NotifyWay = Literal["off", "bell", "osc9", "osc777", "command"]
COMMAND_SECONDS = 10.0
"""A program that takes longer is ended."""


@dataclass(frozen=True, slots=True)
class NotifyOptions:
    way: NotifyWay = "off"
    command: tuple[str, ...] = ()
    """A program and its arguments; the text becomes the last one."""
    in_tmux: bool = False
    """tmux keeps sequences that it does not know to itself, unless they are marked for passing."""


class Notifier:
    """Sends texts that are clean and on one line. Never waits, never raises."""

    def __init__(
        self, output: RawOutput, options: NotifyOptions, warn: Callable[[str], None]
    ) -> None:
        self._output = output
        self._options = options
        self._warn = warn
        self._warned = False
        self._running: set[asyncio.Task[None]] = set()

    def send(self, title: str, text: str) -> None:
        match self._options.way:
            case "off":
                pass
            case "bell":
                self._write("\x07")
            case "osc9":
                self._write(self._passing(f"\x1b]9;{title}: {text}\x1b\\"))
            case "osc777":
                # Its parts are told apart by semicolons.
                head, body = (part.replace(";", ",") for part in (title, text))
                self._write(self._passing(f"\x1b]777;notify;{head};{body}\x1b\\"))
            case "command":
                running = asyncio.get_running_loop().create_task(self._run(f"{title}: {text}"))
                self._running.add(running)
                running.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """End what is still running."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _passing(self, sequence: str) -> str:
        if not self._options.in_tmux:
            return sequence
        doubled = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{doubled}\x1b\\"

    def _write(self, data: str) -> None:
        self._output.write_raw(data)
        self._output.flush()

    async def _run(self, text: str) -> None:
        nothing = asyncio.subprocess.DEVNULL
        try:
            process = await asyncio.create_subprocess_exec(
                *self._options.command,
                text,
                stdin=nothing,
                stdout=nothing,
                stderr=nothing,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self._warn_once(f"The notify_command could not be started ({describe(error)}).")
            return
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                await process.wait()
        except TimeoutError:
            self._warn_once(f"The notify_command took longer than {COMMAND_SECONDS:g} s.")
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode and process.returncode > 0:
            self._warn_once(f"The notify_command ended with exit code {process.returncode}.")

    def _warn_once(self, text: str) -> None:
        if not self._warned:
            self._warned = True
            self._warn(text)
