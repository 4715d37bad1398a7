"""Blanks the secrets among the variables that Midturn itself was started with.

A child gets none of them (``_child_environment.py``), but it may look at its parent: the kernel
shows the start of the parent's memory to every process of the same user, as
``/proc/PARENT/environ``. Midturn and what it starts see their variables as before.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from midturn_tools._child_environment import is_secret_name

_STATUS = Path("/proc/self/stat")
_BEGIN, _END = 47, 48
"""Where the addresses of the variables stand among the fields after the name, see proc(5)."""


@cache
def blank_start_environment() -> None:
    """Do so once; where the system has no such file, or Python no ctypes, nothing is done."""
    try:
        fields = _STATUS.read_bytes().rpartition(b")")[2].split()
        begin, end = int(fields[_BEGIN]), int(fields[_END])
        # Imported here: few starts need it, and it costs time.
        import ctypes
    except (OSError, IndexError, ImportError):
        return
    position = begin
    for entry in ctypes.string_at(begin, end - begin).split(b"\0"):
        name, _, value = entry.partition(b"=")
        if value and is_secret_name(os.fsdecode(name)):
            _keep_elsewhere(name, value)
            ctypes.memset(position + len(name) + 1, 0, len(value))
        position += len(entry) + 1


def _keep_elsewhere(name: bytes, value: bytes) -> None:
    """A copy in other memory takes its place, unless the variable was changed meanwhile."""
    if os.environb.get(name) == value:
        os.putenv(name, value)
