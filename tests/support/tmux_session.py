"""The judged command inside a private tmux server: a real emulator that re-wraps its rows."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.pty_harness import PtySession
from tests.support.services import require
from tests.support.terminal_screen import Rendered


class TmuxSession:
    """Run ``argv`` in a private tmux server: a real emulator with reflow."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cols: int = 100,
        rows: int = 30,
        env: dict[str, str] | None = None,
        cwd: str | None = None,
    ) -> None:
        self._dir = tempfile.TemporaryDirectory(prefix="harness-")
        self._socket = os.path.join(self._dir.name, "tmux")
        config = Path(self._dir.name, "conf")
        config.write_text(
            "set -g history-limit 200000\nset -g remain-on-exit on\n"
            "set -g escape-time 0\nset -g status off\n"
        )
        self._base = [require("tmux"), "-S", self._socket, "-f", str(config)]
        exports = [f"{k}={v}" for k, v in (env or {}).items()]
        command = shlex.join(["env", *exports, *argv])
        self._tmux(
            "new-session",
            "-d",
            "-x",
            str(cols),
            "-y",
            str(rows),
            *(["-c", cwd] if cwd else []),
            command,
        )
        self._tmux("set", "-g", "window-size", "manual")

    def _tmux(self, *args: str, stdin: str | None = None) -> str:
        done = subprocess.run([*self._base, *args], input=stdin, text=True, capture_output=True)
        if done.returncode:
            raise RuntimeError(f"tmux {args[0]}: {done.stderr.strip()}")
        return done.stdout

    def send(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def key(self, name: str) -> None:
        names = {"enter": "Enter", "esc": "Escape", "tab": "Tab", "backspace": "BSpace"}
        if name.startswith("ctrl-"):
            self._tmux("send-keys", "C-" + name[5:])
        else:
            self._tmux("send-keys", names.get(name, name.capitalize()))

    def paste(self, text: str) -> None:
        self._tmux("load-buffer", "-", stdin=text)
        self._tmux("paste-buffer", "-p", "-r")

    def resize(self, cols: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(cols), "-y", str(rows))

    def attached(self) -> PtySession:
        """A terminal that shows the session, as a person's does around tmux."""
        return PtySession([*self._base, "attach"], cols=100, rows=30)

    def buffer(self) -> str:
        """The newest paste buffer."""
        return self._tmux("show-buffer")

    def render(self) -> Rendered:
        everything = self._tmux("capture-pane", "-p", "-S", "-").split("\n")[:-1]  # one snapshot
        x, y, rows = self._tmux(
            "display-message", "-p", "#{cursor_x} #{cursor_y} #{pane_height}"
        ).split()
        shown = everything[-int(rows) :]
        return Rendered(everything[: len(everything) - len(shown)], shown, (int(x), int(y)))

    def wait_screen(self, pattern: str, timeout: float = 10, poll: float = 0.1) -> Rendered:
        deadline = time.perf_counter() + timeout
        while True:
            shown = self.render()
            if re.search(pattern, "\n".join(shown.screen), re.M):
                return shown
            if time.perf_counter() > deadline:
                raise TimeoutError(f"screen never showed {pattern!r}:\n" + "\n".join(shown.screen))
            time.sleep(poll)

    def close(self) -> None:
        with contextlib.suppress(RuntimeError):
            self._tmux("kill-server")
        self._dir.cleanup()

    def __enter__(self) -> TmuxSession:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
