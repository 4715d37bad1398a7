"""How long a thread that computes may keep the event loop waiting."""

from __future__ import annotations

import sys

import pytest

from midturn_cli.terminal.short_turns import SWITCH_SECONDS
from tests.support.live_terminal import live_terminal, within_deadline


async def test_threads_give_way_often_while_the_input_line_is_there() -> None:
    before = sys.getswitchinterval()
    async with live_terminal() as terminal:
        assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS)
        terminal.front.request_exit(0)
        await within_deadline(terminal.task)
    assert sys.getswitchinterval() == before
