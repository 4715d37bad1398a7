"""``SessionFiles``: the pictures of one session, each a file beside its log (D15).

A file is named by a digest of its content, so that the same picture is kept once and an id always
means the same content. The folder and its files are readable by the user alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from midturn_core.errors import PictureError, SessionError
from midturn_core.model.messages import ImageBlock, UserPart
from midturn_core.pictures import read_picture
from midturn_core.queue.attachments import AttachmentRef
from midturn_core.session.log import read_regular

FOLDER_SUFFIX = ".files"

_ID = re.compile(r"[0-9a-f]{32}\.(?:png|jpeg|gif|webp)")


def files_folder(log: Path) -> Path:
    """The folder of the files that belong to a session's log."""
    return log.with_name(log.name.removesuffix(".jsonl") + FOLDER_SUFFIX)


class SessionFiles:
    """Keeps pictures, and finds them again by their ids."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._kept: dict[AttachmentRef, ImageBlock] = {}
        self.lost = 0
        """How many pictures were asked for in vain."""

    def keep(self, picture: ImageBlock) -> AttachmentRef:
        """Write a picture to its file, unless it is there already.

        Raises:
            SessionError: it cannot be written.
        """
        digest = hashlib.sha256(picture.data).hexdigest()[:32]
        file_id = f"{digest}.{picture.media_type.removeprefix('image/')}"
        ref = AttachmentRef(file_id, picture.name)
        if ref not in self._kept:
            try:
                self._write(file_id, picture.data)
            except OSError as error:
                raise SessionError(
                    f"The picture {picture.name} cannot be kept in the session: {error.strerror} "
                    f"({self.folder})"
                ) from error
            self._kept[ref] = replace(picture, file_id=file_id)
        return ref

    def find(self, ref: AttachmentRef) -> UserPart:
        """The picture, or a note in its place when its file is missing or damaged."""
        if ref in self._kept:
            return self._kept[ref]
        try:
            if not _ID.fullmatch(ref.file_id):
                raise PictureError("has no valid id")
            picture = read_picture(read_regular(self.folder / ref.file_id), ref.name)
        except OSError:
            return self._note(ref, "is missing")
        except PictureError as error:
            return self._note(ref, str(error))
        self._kept[ref] = replace(picture, file_id=ref.file_id)
        return self._kept[ref]

    def copy_to(self, folder: Path) -> None:
        """Let another session have all files too.

        Raises:
            OSError: they cannot be copied.
        """
        if not self.folder.is_dir():
            return
        folder.mkdir(mode=0o700, exist_ok=True)
        for file in self.folder.iterdir():
            try:
                os.link(file, folder / file.name)
            except OSError:  # a file system without links
                shutil.copy2(file, folder / file.name)

    def _note(self, ref: AttachmentRef, why: str) -> str:
        self.lost += 1
        return f"[The picture {ref.name} was here; its file in the session {why}.]"

    def _write(self, file_id: str, data: bytes) -> None:
        """Whole or not at all, so that an id never means half a picture."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = self.folder / file_id
        if target.exists():
            return
        descriptor, name = tempfile.mkstemp(dir=self.folder)  # readable by the user alone
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            os.replace(name, target)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
