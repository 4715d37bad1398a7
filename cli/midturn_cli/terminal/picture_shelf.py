"""Pictures in the draft: each is a placeholder there, and goes along when the draft is entered."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from midturn_cli.picture_paths import at_paths, pasted_paths, picture_at, takes_pictures

if TYPE_CHECKING:
    from midturn_cli.ports import KeptPicture
    from midturn_core.model.messages import ImageBlock

MAX_NAME = 40

_PLACEHOLDER = re.compile(r"\[Picture #\d+ [^\[\]\n]+\]")
_JUST_TYPED = re.compile(r"@[^\n]+\s\Z")


@dataclass(frozen=True, slots=True)
class _Attached:
    path: Path
    picture: ImageBlock


class PictureShelf:
    """Keeps the attached pictures of a session as they were when they were attached.

    Args:
        workspace: where relative paths begin.
        complain: told in one sentence why a file was not attached, once per file and draft.
    """

    def __init__(self, workspace: Path, complain: Callable[[str], None]) -> None:
        self._workspace = workspace
        self._complain = complain
        self._attached: dict[str, _Attached] = {}
        self._told: set[str] = set()

    def fold_dropped(self, pasted: str, draft: str) -> str | None:
        """Placeholders for a paste that is nothing but paths of pictures; None for any other."""
        if not takes_pictures(draft):
            return None
        for way in pasted_paths(pasted):
            shown = [self._placeholder(path) for path in way]
            if any(shown):
                kept = [place or _written(path) for place, path in zip(shown, way, strict=True)]
                return f"{' '.join(kept)} "
        return None

    def fold_typed(self, before: str, draft: str) -> str | None:
        """The text before the cursor with its ``@`` path folded, when white space has just ended
        one; None when nothing changes.
        """
        if not _JUST_TYPED.search(before) or not takes_pictures(draft):
            return None
        found = [at for at in at_paths(before) if at.end == len(before) - 1]
        place = self._placeholder(found[0].path, must_exist=True) if found else None
        return before[: found[0].start] + place + before[-1] if place else None

    def fold_all(self, draft: str) -> str:
        """The draft with every ``@`` path of a picture folded."""
        if "@" not in draft or not takes_pictures(draft):
            return draft
        for at in reversed(at_paths(draft)):
            place = self._placeholder(at.path, must_exist=True)
            if place:
                draft = draft[: at.start] + place + draft[at.end :]
        return draft

    def fold_kept(self, kept: KeptPicture) -> str:
        """The placeholder for a picture that already has a file of its own."""
        return self._place(_Attached(kept.path, kept.picture))

    def in_draft(self, draft: str) -> tuple[ImageBlock, ...]:
        """The pictures whose placeholders stand in the draft, each once."""
        places = dict.fromkeys(_PLACEHOLDER.findall(draft))
        return tuple(self._attached[place].picture for place in places if place in self._attached)

    def as_paths(self, draft: str) -> str:
        """The draft with its pictures as ``@`` paths, which another draft can attach again."""
        return _PLACEHOLDER.sub(self._at_path, draft)

    def draft_ended(self) -> None:
        self._told.clear()

    def _at_path(self, place: re.Match[str]) -> str:
        known = self._attached.get(place[0])
        return f"@{_written(str(known.path))}" if known else place[0]

    def _placeholder(self, path: str, *, must_exist: bool = False) -> str | None:
        found = picture_at(path, self._workspace, must_exist=must_exist)
        if found is None:
            return None
        if isinstance(found, str):
            if found not in self._told:
                self._told.add(found)
                self._complain(found)
            return None
        return self._place(_Attached(self._workspace / Path(path).expanduser(), found))

    def _place(self, attached: _Attached) -> str:
        for place, known in self._attached.items():
            # The name may differ: the file of a kept picture is named by its content.
            if known.path == attached.path and known.picture.data == attached.picture.data:
                return place
        place = _shown(len(self._attached) + 1, attached.picture)
        self._attached[place] = attached
        return place


def _shown(number: int, picture: ImageBlock) -> str:
    from midturn_core.pictures import size_text

    name = picture.name
    if len(name) > MAX_NAME:
        name = f"{name[: MAX_NAME // 2]}…{name[-(MAX_NAME // 2 - 1) :]}"
    size = size_text(len(picture.data))
    return f"[Picture #{number} {name} {picture.width}×{picture.height} {size}]"


def _written(path: str) -> str:
    return f'"{path}"' if re.search(r"\s", path) else path
