"""The two ends of the terminal: where keys come from and frames go."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from prompt_toolkit.input import Input, create_input

from midturn_cli.terminal.frame_output import FrameOutput, color_depth, terminal_size
from midturn_cli.terminal.prepaint import TtyState, read_tty
from midturn_cli.terminal.resize import Rewrap, terminal_rewrap


@dataclass(frozen=True, slots=True)
class TerminalIO:
    """Where keys come from and frames go."""

    input: Input
    output: FrameOutput
    rewrap: Rewrap
    tty: TtyState | None
    """The modes to set again at the end; None without a terminal."""


def open_terminal(tty: TtyState | None = None) -> TerminalIO:
    """The terminal of the process. ``tty`` is the state before ``prepaint``, if that was used."""
    stdout = sys.stdout
    output = FrameOutput(stdout, lambda: terminal_size(stdout.fileno()), color_depth(os.environ))
    return TerminalIO(
        input=create_input(),
        output=output,
        rewrap=terminal_rewrap(os.environ),
        tty=tty or read_tty(sys.stdin.fileno()),
    )
