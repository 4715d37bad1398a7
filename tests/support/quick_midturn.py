"""``midturn`` with its waits shortened; everything else is the real command.

A silent service counts as dead after ``IDLE`` seconds instead of minutes, and what is tried again
is tried again almost at once. How often it is tried is not changed.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from midturn_core.config import ModelConfig
from midturn_core.model import reply
from midturn_core.model.client_settings import ClientSettings
from midturn_core.model.retry_policy import RetryPolicy

IDLE = 0.5
PAUSE = 0.02


def shorten_waits() -> None:
    """Call it before the engine is imported."""
    reply.RESTART_PAUSES = tuple(PAUSE for _ in reply.RESTART_PAUSES)  # type: ignore[assignment]  # as many as there are
    original = ClientSettings.from_config

    def quick(config: ModelConfig) -> ClientSettings:
        policy = RetryPolicy(first_delay=PAUSE, max_delay=PAUSE)
        return replace(original(config), idle_timeout=IDLE, retry=policy)

    ClientSettings.from_config = quick  # type: ignore[method-assign]  # a plain function will do


if __name__ == "__main__":
    shorten_waits()
    from midturn_cli.main import main

    sys.exit(main())
