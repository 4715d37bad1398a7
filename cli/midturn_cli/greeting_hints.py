"""What the first rows of a session tell: how to type while it works, or what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from midturn_cli.key_labels import key_label

if TYPE_CHECKING:
    from midturn_cli.engine import Engine
    from midturn_core.config import Config

DEMO_HINT = "A script, no model. Say: tour · read README.md and find TODO · count to 60"
MISSING_KEY_HINTS = (
    "No API key is set: export ANTHROPIC_API_KEY=... and start again (midturn doctor helps),",
    "or try the built-in demo model without one: midturn demo",
)
_ENTER = {"now": "redirects", "next": "steers", "later": "queues a turn"}
"""What entering a line means while a turn runs, by ``queue.enter``."""


def greeting_hints(engine: Engine) -> Sequence[str]:
    typing = typing_hint(engine.config) if engine.front.live else ""
    if engine.launch.demo:
        return [DEMO_HINT, *filter(None, [typing])]
    model = engine.config.model
    if not (model.api_key or model.auth_token):
        return MISSING_KEY_HINTS
    return [typing] if typing else []


def typing_hint(config: Config) -> str:
    """The keys that matter while a turn runs, as the configuration has them; one row of 80."""
    keys, enter = config.keys, config.queue.enter
    others = " or ".join(tier.upper() for tier in _ENTER if tier != enter)
    parts = [f"{key_label(keys.submit[0])} {_ENTER[enter]}"]
    parts += [f"{key_label(keys.cycle[0])}: {others}"] if keys.cycle else []
    parts += [f"{key_label(keys.cancel[0])} interrupts"] if keys.cancel else []
    return f"Type while it works: {', '.join(parts)}. /help"
