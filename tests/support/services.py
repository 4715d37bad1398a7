"""Programs that some tests need and a machine may lack."""

from __future__ import annotations

import os
import shutil

import pytest


def require(program: str) -> str:
    """The path of ``program``; without it the test is skipped, or fails where ``CI=true``."""
    path = shutil.which(program)
    if path is not None:
        return path
    reason = f"{program} is not installed"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
