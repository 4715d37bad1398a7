"""A git repository for tests, made with the git of the machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.services import require


class GitFolder:
    """A folder with a repository in it, made when this is constructed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._program = self.require()
        self.run("init", "--quiet", "--initial-branch=main")
        self.run("config", "user.name", "Test")
        self.run("config", "user.email", "test@example.com")

    @staticmethod
    def require() -> str:
        return require("git")

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [self._program, *arguments], cwd=self.folder, check=True, capture_output=True, text=True
        )
        return done.stdout

    def commit(self, name: str, content: str) -> None:
        """Write a file and commit it."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        self.run("add", "--", name)
        self.run("commit", "--quiet", "--message", f"add {name}")
