"""Signals of the terminal session: ending, stopping and going on."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

EXIT_HANGUP = 128 + signal.SIGHUP
EXIT_TERMINATED = 128 + signal.SIGTERM


@dataclass(frozen=True, slots=True)
class SignalHandlers:
    exit: Callable[[int], None]
    stop: Callable[[], None]
    """SIGTSTP: leave the terminal in order, then stop."""
    resumed: Callable[[], None]
    """SIGCONT after a stop that nobody could prepare, such as SIGSTOP."""


@contextmanager
def handled_signals(handlers: SignalHandlers) -> Generator[None]:
    """Handle SIGTERM, SIGHUP, SIGTSTP and SIGCONT on the running loop.

    SIGINT is a key of the application. Outside the main thread no signal is handled.
    """
    loop = asyncio.get_running_loop()
    table: dict[signal.Signals, Callable[[], None]] = {
        signal.SIGTERM: lambda: handlers.exit(EXIT_TERMINATED),
        signal.SIGHUP: lambda: handlers.exit(EXIT_HANGUP),
        signal.SIGTSTP: handlers.stop,
        signal.SIGCONT: handlers.resumed,
    }
    added: list[signal.Signals] = []
    before = {number: signal.getsignal(number) for number in table}
    try:
        for number, handler in table.items():
            try:
                loop.add_signal_handler(number, handler)
            except (RuntimeError, ValueError):
                break
            added.append(number)
        yield
    finally:
        for number in added:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])


def stop_process_group(handlers: SignalHandlers) -> None:
    """Stop as the shell expects it, and return when it lets the group go on.

    The default action must be in place: a shell without job control above us, or no shell at
    all, then makes this a no-op, where SIGSTOP would hang for ever.
    """
    loop = asyncio.get_running_loop()
    in_main_thread = loop.remove_signal_handler(signal.SIGTSTP)
    loop.remove_signal_handler(signal.SIGCONT)
    os.kill(0, signal.SIGTSTP)
    if in_main_thread:
        loop.add_signal_handler(signal.SIGTSTP, handlers.stop)
        loop.add_signal_handler(signal.SIGCONT, handlers.resumed)
