"""``midturn`` on a machine without ripgrep; everything else is the real command."""

from __future__ import annotations

import sys
from pathlib import Path

from midturn_tools._ripgrep import RipgrepInfo
from midturn_tools._search import SEARCH_SECONDS
from midturn_tools.glob import GlobTool
from midturn_tools.grep import GrepTool


def no_ripgrep(_: Path) -> RipgrepInfo | None:
    return None


if __name__ == "__main__":
    for tool in (GrepTool, GlobTool):
        tool.__init__.__defaults__ = (no_ripgrep, SEARCH_SECONDS)
    from midturn_cli.main import main

    sys.exit(main())
