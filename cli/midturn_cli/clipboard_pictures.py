"""Pictures from the clipboard: each gets a file of the session, for as long as it may be sent."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from midturn_cli.ports import KeptPicture
from midturn_core.errors import SessionError
from midturn_core.model.messages import ImageBlock
from midturn_core.queue.attachments import AttachmentRef
from midturn_core.session.files import SessionFiles
from midturn_tools.clipboard_picture import ClipboardPictureError, clipboard_picture


class ClipboardPictures:
    """Those of one session; used on the loop's thread."""

    def __init__(self, files: SessionFiles, workspace: Path) -> None:
        self._files = files
        self._workspace = workspace
        self._unsent: set[str] = set()
        """Files that are there for a draft alone: nothing that was ever entered has them."""

    async def take(self) -> KeptPicture | str:
        """The picture that is on the clipboard now, kept; one sentence why not."""
        try:
            picture = await clipboard_picture(self._workspace, os.environ)
            ref, is_new = await asyncio.to_thread(self._keep, picture)
        except ClipboardPictureError as error:
            return f"No picture was attached: {error}."
        except SessionError as error:
            return str(error)
        if is_new:
            self._unsent.add(ref.file_id)
        return KeptPicture(picture, self._files.folder / ref.file_id)

    def entered(self, refs: Iterable[AttachmentRef]) -> None:
        """They belong to an input now, and stay."""
        self._unsent.difference_update(ref.file_id for ref in refs)

    def remove_unsent(self, still_meant: str) -> None:
        """The session ends: remove what was taken out of its draft again, except what a text that is
        kept for later names by its path.
        """
        for name in self._unsent:
            file = self._files.folder / name
            if str(file) not in still_meant:
                # It is private: one that stays does no harm.
                with contextlib.suppress(OSError):
                    file.unlink()
        self._unsent.clear()

    def _keep(self, picture: ImageBlock) -> tuple[AttachmentRef, bool]:
        there = self._files.folder
        before = frozenset(os.listdir(there)) if there.is_dir() else frozenset[str]()
        ref = self._files.keep(picture)
        return ref, ref.file_id not in before
