"""What the scripts of the Redis repository are told about inputs and selections, as JSON."""

from __future__ import annotations

from collections.abc import Mapping

from midturn_core.queue.record import to_json
from midturn_core.queue.types import QueuedInput, QueuedInputPriority, QueueFilter


def encoded(uuid: str) -> bytes:
    """A uuid as the scripts know it; any text has such a form."""
    return uuid.encode("utf-8", "surrogatepass")


def tags_of(item: QueuedInput, *, revision: str, arrival: str) -> bytes:
    tags: dict[str, object] = {
        "priority": int(item.priority),
        "held": item.held,
        "prompt": item.is_prompt,
        "metadata": dict(item.metadata),
        "revision": revision,
        "arrival": arrival,
    }
    if item.source_agent_id is not None:
        tags["source"] = item.source_agent_id
    return to_json(tags)


def selection_of(selection: QueueFilter, max_priority: QueuedInputPriority) -> bytes:
    wanted: dict[str, object] = {
        "max_priority": int(min(selection.max_priority, max_priority)),
        "exclude_held": selection.exclude_held,
        "prompts_only": selection.prompts_only,
        "metadata": dict(selection.metadata),
    }
    if selection.source_agent_id is not None:
        wanted["source"] = selection.source_agent_id
    if selection.uuids is not None:
        wanted["uuids"] = sorted(selection.uuids)
    return to_json(wanted)


def everything(max_priority: QueuedInputPriority) -> bytes:
    return to_json({"max_priority": int(max_priority), "metadata": {}})


def unchanged(revisions: Mapping[str, str]) -> bytes:
    """Exactly these inputs, each only as it was when it had this revision."""
    return to_json(
        {
            "max_priority": int(QueuedInputPriority.LATER),
            "metadata": {},
            "uuids": list(revisions),
            "revisions": dict(revisions),
        }
    )


def named(uuid: str) -> bytes:
    return to_json(
        {"max_priority": int(QueuedInputPriority.LATER), "metadata": {}, "uuids": [uuid]}
    )
