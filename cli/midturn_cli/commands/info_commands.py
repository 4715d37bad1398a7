"""/status, /cost, /tools and /config: what holds now."""

from __future__ import annotations

import os
import platform
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from midturn_cli.commands.arguments import no_arguments
from midturn_cli.commands.command import Command, Use
from midturn_cli.session_status import cost_text
from midturn_cli.subcommands.config import config_rows
from midturn_core import paths
from midturn_core.config_loader import LoadedConfig
from midturn_core.dispatch.gate import may_run_together
from midturn_core.permission.rules import MCP_PREFIX
from midturn_core.version import VERSION

_SENTENCE_END = re.compile(r"(?<=[\w)])\.(?=\s|$)")


def status(use: Use) -> None:
    no_arguments(use, "/status")
    engine = use.engine
    info, log = engine.status(), engine.session.log
    config = engine.launch.loaded
    rows = [
        ("session", engine.session.id),
        ("folder", str(engine.workspace)),
        ("state", "at work" if use.controller.busy else "idle"),
        ("model", info.model),
        ("mode", info.mode),
        ("parallel", _parallel(use)),
        ("queue", _queue(use)),
        ("context", "unknown yet" if info.context_percent is None else f"{info.context_percent}%"),
        ("session file", f"{log.path}{' (nothing saved yet)' if log.empty else ''}"),
        ("log file", _log_file(use)),
        ("configuration", f"{config.file}{'' if config.file.exists() else ' (not there)'}"),
        ("version", f"Midturn {VERSION}, Python {platform.python_version()}, {platform.system()}"),
    ]
    use.table("Status", ("", ""), rows, "DEMO: a script answers, no model" if info.demo else "")


def _parallel(use: Use) -> str:
    config = use.engine.parallel
    state = "on" if config.enabled else "off"
    return f"{state}, max {config.max_concurrency}, per batch {config.batch_slots}"


def _queue(use: Use) -> str:
    items = use.engine.queue.snapshot(use.engine.context_id)
    counts = Counter(item.priority.name for item in items if not item.held)
    counts["held"] = sum(item.held and not item.scheduled for item in items)
    counts["for a time to come"] = sum(item.scheduled for item in items)
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "empty"


def _log_file(use: Use) -> str:
    log = use.engine.config.log
    file = Path(log.file) if log.file else paths.log_file(os.environ)
    return f"{file} (level {log.level})"


def cost(use: Use) -> None:
    no_arguments(use, "/cost")
    engine = use.engine
    usage, name = engine.agent.session_usage, engine.model_settings.name
    kinds = (
        ("input", usage.input_tokens),
        ("output", usage.output_tokens),
        ("read from the cache", usage.cache_read_tokens),
        ("written to the cache", usage.cache_write_tokens),
        ("all", usage.context_tokens),
    )
    rows = [(kind, f"{count:,}") for kind, count in kinds]
    money = cost_text(engine)
    if money:
        footer = f"{money} at your prices of {name}, in your currency"
    elif engine.launch.demo:
        footer = "the demo costs nothing; its figures are estimates"
    else:
        footer = f"[model] prices has none for {name}, so no money is shown"
    use.table("Tokens of this session", ("kind", "tokens"), rows, footer)


def tools(use: Use) -> None:
    no_arguments(use, "/tools")
    rows = [
        (
            tool.name,
            "together" if may_run_together(tool) else "one at a time",
            permission_kind(tool.name),
            first_sentence(tool.description),
        )
        for tool in use.engine.registry
    ]
    header = ("tool", "in parallel", "permission by", "what it does")
    use.table("Tools", header, rows, "/permissions shows the rules, /parallel what runs together")


def permission_kind(name: str) -> str:
    """What rules and questions about a tool speak of (D42)."""
    if name.startswith(MCP_PREFIX):
        return "its name"
    match name:
        case "Read" | "Glob" | "Grep":
            return "path, reads"
        case "Edit" | "Write" | "MultiEdit":
            return "path, writes"
        case "Bash":
            return "command"
        case "WebFetch":
            return "host"
        case "Task":
            return "what its own calls touch"
        case _:
            return "nothing: it touches no file"


def first_sentence(description: str) -> str:
    text = " ".join(description.split())
    end = _SENTENCE_END.search(text)
    return text[: end.end()] if end else text


def config(use: Use) -> None:
    no_arguments(use, "/config")
    loaded = use.engine.launch.loaded
    rows = [(key, value or "unset", origin) for key, value, origin in _effective_rows(use, loaded)]
    use.table("Configuration", ("key", "value", "set by"), rows, f"your file: {loaded.file}")


def _effective_rows(use: Use, loaded: LoadedConfig) -> Iterator[tuple[str, str, str]]:
    """As at the start, and what commands have changed since."""
    started = config_rows(loaded)
    for before, row in zip(started, config_rows(_as_it_is_now(use, loaded)), strict=True):
        origin = row.origin if row.value == before.value else "this session"
        yield row.key.id, row.value, origin


def _as_it_is_now(use: Use, loaded: LoadedConfig) -> LoadedConfig:
    engine, before = use.engine, loaded.config
    now = replace(
        before,
        parallel=engine.parallel,
        model=replace(before.model, name=engine.model_settings.name),
        ui=replace(before.ui, theme=engine.theme),
        permissions=replace(before.permissions, mode=engine.authorizer.mode.value),
    )
    return replace(loaded, config=now)


STATUS = Command("status", "see session, folder, files, versions", now=status)
COST = Command("cost", "see the tokens used, and their price", now=cost)
TOOLS = Command("tools", "see the tools of the model", now=tools)
CONFIG = Command("config", "see every setting and its origin", now=config)
