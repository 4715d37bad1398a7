"""Runs a block without the superuser's rights, so that permission bits mean something."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_NOBODY = 65534


@contextmanager
def ordinary_user_folder() -> Generator[Path]:
    """A fresh folder of a user who is not the superuser, who runs the block."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if os.geteuid() != 0:
            yield folder
            return
        # Loaded before the rights are gone: the interpreter's own files may be out of reach then.
        importlib.import_module("concurrent.futures.thread")
        os.chown(folder, _NOBODY, -1)
        os.seteuid(_NOBODY)
        try:
            yield folder
        finally:
            os.seteuid(0)


@contextmanager
def case_folder(*, ordinary_user: bool) -> Generator[Path]:
    """A fresh folder for one case; as an ordinary user only where rights are the matter."""
    if ordinary_user:
        with ordinary_user_folder() as folder:
            yield folder
    else:
        with tempfile.TemporaryDirectory() as name:
            yield Path(name)
