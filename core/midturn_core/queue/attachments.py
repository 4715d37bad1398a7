"""What a queued input carries beside its text: references to files of the session (D15)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

from midturn_core.model.messages import UserPart
from midturn_core.queue.types import QueuedInput

ATTACHMENTS_KEY = "attachments"
"""Metadata tag: a JSON list of ``[id, name]`` pairs."""


@dataclass(frozen=True, slots=True)
class AttachmentRef:
    """A file of the session by its id; ``name`` is what the user calls it."""

    file_id: str
    name: str


AttachmentFinder: TypeAlias = Callable[[AttachmentRef], UserPart]
"""The picture of a reference, or a note in its place when it is lost."""


def attachment_tags(refs: Iterable[AttachmentRef]) -> Mapping[str, str]:
    """The metadata of an input with these attachments; nothing for none."""
    pairs = [[ref.file_id, ref.name] for ref in refs]
    return {ATTACHMENTS_KEY: json.dumps(pairs)} if pairs else {}


def attachments_of(item: QueuedInput) -> tuple[AttachmentRef, ...]:
    """The attachments of an input in the order of its text. What cannot be read is left out."""
    try:
        pairs: object = json.loads(item.metadata.get(ATTACHMENTS_KEY, "[]"))
    except ValueError:
        return ()
    refs: list[AttachmentRef] = []
    for pair in cast(list[object], pairs) if isinstance(pairs, list) else []:
        match pair:
            case [str(file_id), str(name)]:
                refs.append(AttachmentRef(file_id, name))
            case _:
                pass
    return tuple(refs)


def attachments_note(item: QueuedInput) -> str:
    """``+1 picture`` for the rows of the queue; empty without attachments."""
    count = len(attachments_of(item))
    return f"+{count} picture{'' if count == 1 else 's'}" if count else ""
