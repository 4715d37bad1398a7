from __future__ import annotations

from dataclasses import replace

from midturn_cli.greeting_hints import typing_hint
from midturn_core.config import Config, KeysConfig, QueueConfig


def test_the_first_rows_tell_the_keys_that_matter_while_it_works() -> None:
    hint = typing_hint(Config())
    assert hint == ("Type while it works: Enter steers, Tab: NOW or LATER, Esc interrupts. /help")
    assert len(hint) < 80


def test_the_first_rows_name_keys_and_tiers_as_the_configuration_has_them() -> None:
    keys = KeysConfig(submit=("f5",), cycle=(), cancel=("c-x c-c",))
    config = replace(Config(), keys=keys, queue=QueueConfig(enter="later"))
    assert typing_hint(config) == (
        "Type while it works: F5 queues a turn, Ctrl-X Ctrl-C interrupts. /help"
    )
    config = replace(Config(), queue=QueueConfig(enter="now"))
    assert "Enter redirects, Tab: NEXT or LATER," in typing_hint(config)
