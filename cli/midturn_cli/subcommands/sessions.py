"""``midturn sessions``: which sessions run, and which have left something in the queue."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from midturn_cli.launch import load, workspace
from midturn_cli.leftovers import Leftover, leftovers_in
from midturn_cli.options import EXIT_FAILED, Arguments
from midturn_cli.outside_queue import running_sessions, shared_store
from midturn_cli.render.clean import one_line
from midturn_core import paths
from midturn_core.config import QueueConfig
from midturn_core.errors import QueueStoreError
from midturn_core.ids import AgentRuntimeId
from midturn_core.queue.open_store import store_name
from midturn_core.session.running import RunningSession


def run(arguments: Arguments) -> int:
    """List them; returns the exit code: 1 when the store cannot be used, and nothing is known of
    what waits.
    """
    config = load(arguments, os.environ).config.queue
    running = running_sessions().list()
    failure = ""
    waiting: dict[str, int] = {}
    left: list[Leftover] = []
    if config.backend != "memory":
        try:
            waiting, left = _looked_up(config, running)
        except QueueStoreError as error:
            failure = str(error)
    if arguments.is_on("json"):
        sys.stdout.write(_as_json(running, waiting, left))
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(running, waiting, left)))
    if failure:
        sys.stderr.write(f"midturn: {failure}\n")
    return EXIT_FAILED if failure else 0


def _looked_up(
    config: QueueConfig, running: Sequence[RunningSession]
) -> tuple[dict[str, int], list[Leftover]]:
    """How many inputs wait in each running session that uses this store, and the leftovers."""
    here = store_name(config, paths.queue_file(os.environ))
    with shared_store(config) as repository:
        waiting = {
            session.id: repository.size(AgentRuntimeId(session.id))
            for session in running
            if session.store == here
        }
        return waiting, leftovers_in(repository, workspace())


def _lines(
    running: Sequence[RunningSession], waiting: dict[str, int], left: Sequence[Leftover]
) -> list[str]:
    if not running:
        lines = ["No session runs."]
    else:
        rows = [
            (
                session.id,
                str(session.pid),
                session.state.value,
                str(waiting.get(session.id, "?")),
                one_line(session.folder) + (" (demo)" if session.demo else ""),
            )
            for session in running
        ]
        lines = _table([("id", "pid", "state", "waiting", "folder"), *rows])
    if left:
        lines.append("Not running, and something waits in them:")
        lines += [f"{item.id}  {item.waiting}  {item.way_back}" for item in left]
    return lines


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _as_json(
    running: Sequence[RunningSession], waiting: dict[str, int], left: Sequence[Leftover]
) -> str:
    listed = [
        {
            "id": session.id,
            "pid": session.pid,
            "folder": session.folder,
            "started": session.started,
            "state": session.state.value,
            "demo": session.demo,
            "waiting": waiting.get(session.id),
        }
        for session in running
    ]
    leftovers = [{"id": i.id, "waiting": i.waiting, "demo": i.demo} for i in left]
    return json.dumps({"running": listed, "leftovers": leftovers}) + "\n"
