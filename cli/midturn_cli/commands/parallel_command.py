"""/parallel: whether and how far the tool uses of one response run together (D20, D21)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from midturn_cli.commands.arguments import MAX_DIGITS, quoted, unknown_word
from midturn_cli.commands.command import Command, CommandError, Form, Use
from midturn_cli.commands.saving import SAVE, overridden, start_saving
from midturn_core.config_loader import ConfigSource, load_config, save_value
from midturn_core.dispatch.config import (
    MAX_CONCURRENCY_LIMIT,
    CallStart,
    MixedBatches,
    ToolConcurrencyConfig,
)
from midturn_core.dispatch.dispatcher import DefaultParallelToolDispatcher
from midturn_core.dispatch.gate import describe_tools, explain
from midturn_core.errors import ConfigError

T = TypeVar("T")

WORDS = (
    "on",
    "off",
    "status",
    "max N",
    "per-batch N",
    "mixed sequential|segments",
    "start complete|streaming",
    SAVE,
)
EXAMPLE = "/parallel on"
SAVE_ALL = "/parallel --save saves all of these settings of this session."

MIXED: Mapping[str, MixedBatches] = {"segments": "segments", "sequential": "sequential"}
START: Mapping[str, CallStart] = {"streaming": "streaming", "complete": "complete"}


@dataclass(frozen=True, slots=True)
class _Changes:
    """The keys that a command sets; None: it does not."""

    enabled: bool | None = None
    max_concurrency: int | None = None
    per_batch_max: int | None = None
    mixed: MixedBatches | None = None
    start: CallStart | None = None

    def set_keys(self) -> list[tuple[str, bool | int | str]]:
        keys = (
            ("enabled", self.enabled),
            ("max_concurrency", self.max_concurrency),
            ("per_batch_max", self.per_batch_max),
            ("mixed", self.mixed),
            ("start", self.start),
        )
        return [(key, value) for key, value in keys if value is not None]


def parallel(use: Use) -> None:
    words = [word for word in use.words if word != SAVE]
    save = SAVE in use.words
    if words in ([], ["status"]) and not save:
        _show_status(use)
        return
    if "status" in words:
        raise CommandError("/parallel status only shows: it takes nothing else")
    changes = _changes(words)
    config = _changed(use.engine.parallel, changes)
    use.engine.set_parallel(config)
    use.say(_in_words(config))
    if save:
        _save(use, changes if words else _all_settings(config))


def _changes(words: list[str]) -> _Changes:
    """A later word wins."""
    changes = _Changes()
    rest = iter(words)
    for word in rest:
        match word:
            case "on" | "off":
                changes = replace(changes, enabled=word == "on")
            case "max":
                number = _number("max", next(rest, ""), example=4)
                changes = replace(changes, max_concurrency=number)
            case "per-batch":
                number = _number("per-batch", next(rest, ""), example=2)
                changes = replace(changes, per_batch_max=number)
            case "mixed":
                changes = replace(changes, mixed=_choice("mixed", next(rest, ""), MIXED))
            case "start":
                changes = replace(changes, start=_choice("start", next(rest, ""), START))
            case _:
                raise unknown_word("/parallel", word, WORDS, EXAMPLE)
    return changes


def _number(key: str, word: str, *, example: int) -> int:
    """The number after a key; which of them are allowed the configuration says."""
    if word.isascii() and word.isdecimal() and len(word) <= MAX_DIGITS:
        return int(word)
    raise CommandError(
        f"{key} needs a whole number 1..{MAX_CONCURRENCY_LIMIT}, not {quoted(word)} "
        f"(example: /parallel {key} {example}); nothing was changed"
    )


def _choice(key: str, word: str, choices: Mapping[str, T]) -> T:
    if word in choices:
        return choices[word]
    raise CommandError(
        f"{key} needs {' or '.join(choices)}, not {quoted(word)} "
        f"(example: /parallel {key} {next(iter(choices))}); nothing was changed"
    )


def _combined(config: ToolConcurrencyConfig, changes: _Changes) -> ToolConcurrencyConfig:
    """Raises ValueError when the keys do not go together."""
    return replace(
        config,
        enabled=config.enabled if changes.enabled is None else changes.enabled,
        max_concurrency=_given(changes.max_concurrency, config.max_concurrency),
        per_batch_max=_given(changes.per_batch_max, config.per_batch_max),
        mixed=changes.mixed or config.mixed,
        start=changes.start or config.start,
    )


def _changed(config: ToolConcurrencyConfig, changes: _Changes) -> ToolConcurrencyConfig:
    try:
        return _combined(config, changes)
    except ValueError as error:
        raise CommandError(f"{error}; nothing was changed{_way_out(config, changes)}") from error


def _given(value: int | None, otherwise: T) -> int | T:
    return otherwise if value is None else value


def _way_out(config: ToolConcurrencyConfig, changes: _Changes) -> str:
    most, slots = changes.max_concurrency, config.per_batch_max
    if most and slots is not None and most < slots and changes.per_batch_max is None:
        return f". Set both: /parallel max {most} per-batch {most}"
    if most and config.per_context_max is not None and most < config.per_context_max:
        return ". Lower [parallel] per_context_max in your configuration first"
    if changes.start == "streaming":
        return ". Set both: /parallel mixed segments start streaming"
    if changes.mixed == "sequential" and config.start == "streaming":
        return ". Set both: /parallel mixed sequential start complete"
    return " (example: /parallel max 4)"


def _in_words(config: ToolConcurrencyConfig) -> str:
    limits = f"at most {_calls(config.max_concurrency)} at once"
    if config.batch_slots != config.max_concurrency:
        limits += f", {config.batch_slots} of one response"
    if config.mixed == "segments":
        limits += ", safe neighbours in a mixed response too"
    if config.start == "streaming":
        limits += ", from the moment each is written"
    if config.enabled:
        return f"Parallel execution is on from the next batch: {limits}."
    return f"Parallel execution is off: one call at a time ({limits} when it is on)."


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count} calls"


def _all_settings(config: ToolConcurrencyConfig) -> _Changes:
    return _Changes(
        enabled=config.enabled,
        max_concurrency=config.max_concurrency,
        per_batch_max=config.per_batch_max,
        mixed=config.mixed,
        start=config.start,
    )


def _save(use: Use, changes: _Changes) -> None:
    """Write the keys to the user's file, unless that would make it unusable."""
    file = use.engine.launch.loaded.file
    values = ", ".join(f"{key} = {json.dumps(value)}" for key, value in changes.set_keys())
    over = overridden(use, [f"parallel.{key}" for key, _ in changes.set_keys()])
    saved = f"Saved to {file} for later sessions: {values}.{over}"
    start_saving(use, lambda: _write(file, changes), saved, f". {SAVE_ALL}")


def _write(file: Path, changes: _Changes) -> None:
    """
    Raises:
        ConfigError: the file cannot be read, understood or written, or what it holds does not go
            with the changes.
    """
    try:
        _combined(_settings_of(file), changes)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    for key, value in changes.set_keys():
        save_value(file, "parallel", key, value)


def _settings_of(file: Path) -> ToolConcurrencyConfig:
    """The settings of the file alone, over the built-in ones."""
    if not file.exists():
        return ToolConcurrencyConfig()
    return load_config(ConfigSource({}, file)).config.parallel


def _show_status(use: Use) -> None:
    engine = use.engine
    config, dispatcher, last = engine.parallel, engine.dispatcher, engine.batches.last
    abandoned = dispatcher.abandoned
    rows = [
        ("state", "on" if config.enabled else "off (/parallel on)"),
        ("max", f"{config.max_concurrency} (1..{MAX_CONCURRENCY_LIMIT}, at once altogether)"),
        ("per-batch", f"{config.batch_slots} (1..{config.max_concurrency}, of one response)"),
        ("per agent", f"{config.context_slots} ([parallel] per_context_max)"),
        ("mixed", _mixed(config)),
        ("start", _start(config)),
        ("calls", f"at most {config.max_calls} of one response"),
        ("time limits", f"{config.timeout_per_call:g} s per call, "
         f"{config.timeout_per_batch:g} s per batch"),
        ("after an error", _after_error(config)),
        ("in use", _in_use(dispatcher)),
        ("workers", f"{dispatcher.workers} now" + (f", {abandoned} abandoned" if abandoned else "")),
        ("last batch", explain(last.report.verdict) if last else "none yet"),
    ]  # fmt: skip
    use.table("Parallel execution", ("", ""), rows, describe_tools(engine.registry))


def _in_use(dispatcher: DefaultParallelToolDispatcher) -> str:
    most, in_use = dispatcher.config.max_concurrency, dispatcher.in_use_by_context
    by_whom = ", ".join(f"{context.agent} {count}" for context, count in in_use.most_common())
    waiting = dispatcher.waiting_for_slots
    return (
        f"{dispatcher.slots_in_use} of {most} slots"
        + (f" ({by_whom})" if by_whom else "")
        + (f", {waiting} waiting for one" if waiting else "")
    )


def _mixed(config: ToolConcurrencyConfig) -> str:
    if config.mixed == "segments":
        return "segments: neighbouring safe calls together, each other call by itself"
    return "sequential: one unsafe call makes its whole response run one after another"


def _start(config: ToolConcurrencyConfig) -> str:
    if config.start == "streaming":
        return "streaming: safe calls that need no question start while the model still writes"
    return "complete: calls start when the model's message is complete"


def _after_error(config: ToolConcurrencyConfig) -> str:
    parts = ["no further call starts" if config.fail_fast else "the other calls go on"]
    parts += ["a failed safe call is tried once more"] if config.retry_failed else []
    return ", ".join(parts)


PARALLEL = Command(
    "parallel",
    "run independent tool uses together",
    "[on | off | status | max N | per-batch N | mixed HOW | start WHEN] [--save]",
    now=parallel,
    forms=(
        Form("/parallel", "see the settings, what may run together, and the last batch"),
        Form("/parallel on, /parallel off", "switch it, from the next batch on"),
        Form("/parallel max N", "let at most N calls (1..10) run at once"),
        Form("/parallel per-batch N", "let one response hold at most N (1..max) of these places"),
        Form("/parallel on max 8 per-batch 2", "set several in one step"),
        Form(
            "/parallel mixed segments",
            "run safe neighbours together although the response also changes something; "
            "mixed sequential: all of it one after another",
        ),
        Form(
            "/parallel mixed segments start streaming",
            "start safe calls while the model still writes; start complete: afterwards",
        ),
        Form("... --save", "write what this line sets to your configuration file as well"),
        Form("/parallel --save", "write all of these settings of this session to it"),
    ),
)
