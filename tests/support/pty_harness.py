"""Drive any interactive command through a terminal and judge what a user sees.

``PtySession`` is a raw pseudo-terminal. Every byte is logged with its arrival time, so one run
gives keystroke-echo latency, bytes written, CPU time, flicker figures and (by replaying the log
through pyte) the final screen plus scrollback. pyte never re-wraps lines on resize, like xterm.
``TmuxSession`` in ``tmux_session.py`` has the same surface with a terminal that does.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

import pyte

from tests.support.terminal_log import Flicker, Latency, OutputLog, Traffic
from tests.support.terminal_screen import (
    Rendered,
    Screen,
    resize_like_xterm,
    split_unfinished,
    without_noise,
)

KEYS = {
    "enter": "\r",
    "tab": "\t",
    "esc": "\x1b",
    "backspace": "\x7f",
    "delete": "\x1b[3~",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "alt-enter": "\x1b\r",
    "shift-tab": "\x1b[Z",
    **{f"ctrl-{c}": chr(ord(c) - 96) for c in "abcdefghijklmnopqrstuvwxyz"},
}
PASTE_START, PASTE_END = "\x1b[200~", "\x1b[201~"
# Variables by which a program could take this terminal for the one around us.
OUTER_TERMINAL = (
    "TMUX",
    "STY",
    "TERM_PROGRAM",
    "VTE_VERSION",
    "KITTY_WINDOW_ID",
    "WT_SESSION",
    "ITERM_SESSION_ID",
    "COLORTERM",
)
CPR_QUERY = b"\x1b[6n"
SYNC_ON, SYNC_OFF = b"\x1b[?2026h", b"\x1b[?2026l"

# Letters that no English, Korean, Chinese or Japanese output contains, so the
# first time one shows up after it was typed, it is the echo of that keystroke.
ECHO_ALPHABET = "ĂăĄąĆćĈĉĊċČčĎďĐđĒēĔĕĖėĘęĚěĜĝĞğĠġĢģĤĥĦħĨĩĪīĬĭĮįĴĵĶķĹĺĻļĽľĿŀŁłŃń"


class PtySession:
    """Run ``argv`` on a new pseudo-terminal.

    cpr        how to answer cursor position queries: "screen" (live emulation,
               exact), "bottom" (always the last row, costs nothing), "none".
    read_rate  bytes per second this "terminal" accepts (a slow link), or None.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cols: int = 100,
        rows: int = 30,
        env: dict[str, str] | None = None,
        cwd: str | None = None,
        cpr: str = "bottom",
        read_rate: int | None = None,
    ) -> None:
        self.cols, self.rows, self.cpr, self.read_rate = cols, rows, cpr, read_rate
        self.log = OutputLog()
        self.log.resizes.append((0, cols, rows))
        self._live = Screen(cols, rows) if cpr == "screen" else None
        self._live_stream = pyte.ByteStream(self._live) if self._live else None
        self._send_lock = threading.Lock()
        self._stopping = threading.Event()
        self.master, slave = os.openpty()
        self._set_size(cols, rows)
        environ = {
            **os.environ,
            "TERM": "xterm-256color",
            "COLUMNS": "",
            "LINES": "",
            **(env or {}),
        }
        environ = {k: v for k, v in environ.items() if v != ""}
        for name in OUTER_TERMINAL:
            if name not in (env or {}):
                environ.pop(name, None)
        self.process = subprocess.Popen(
            list(argv),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environ,
            cwd=cwd,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read_loop, daemon=True)
        self._reader.start()

    def _read_loop(self) -> None:
        size = 65536 if self.read_rate is None else max(64, self.read_rate // 50)
        while not self._stopping.is_set():
            if not select.select([self.master], [], [], 0.1)[0]:
                continue
            try:
                chunk = os.read(self.master, size)
            except OSError:  # EIO: nobody has the other side open any more
                break
            if not chunk:
                break
            self.log.append(chunk)
            if self._live_stream is not None:
                self._live_stream.feed(without_noise(chunk))
            for _ in range(chunk.count(CPR_QUERY)):
                self._answer_cpr()
            if self.read_rate is not None:
                self._stopping.wait(len(chunk) / self.read_rate)
        self.log.close()

    def _answer_cpr(self) -> None:
        if self.cpr == "none":
            return
        row, col = self.rows, 1
        if self._live is not None:
            row, col = self._live.cursor.y + 1, self._live.cursor.x + 1
        self.send(f"\x1b[{row};{col}R")

    def _set_size(self, cols: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def send(self, text: str | bytes) -> None:
        data = text.encode() if isinstance(text, str) else text
        with self._send_lock:
            while data:
                _, writable, _ = select.select([], [self.master], [], 5)
                if not writable:
                    raise TimeoutError("the command does not read its input")
                data = data[os.write(self.master, data[:1024]) :]

    def key(self, name: str) -> None:
        self.send(KEYS[name])

    def paste(self, text: str) -> None:
        """A bracketed paste, with carriage returns for newlines as terminals send it."""
        self.send(PASTE_START + text.replace("\n", "\r") + PASTE_END)

    def resize(self, cols: int, rows: int) -> None:
        with self.log.changed:
            self.log.resizes.append((len(self.log.data), cols, rows))
        self.cols, self.rows = cols, rows
        if self._live is not None:
            self._live.resize(rows, cols)
        self._set_size(cols, rows)  # the kernel sends SIGWINCH

    def signal(self, sig: int) -> None:
        self.process.send_signal(sig)

    def mark(self) -> int:
        """The current end of the output, to wait for what comes after it."""
        return len(self.log.data)

    def wait(self, pattern: str, timeout: float = 10, start: int = 0) -> re.Match[bytes]:
        """Wait until the raw output (escape sequences included) matches."""
        regex = re.compile(pattern.encode())
        deadline = time.perf_counter() + timeout
        with self.log.changed:
            while True:
                match = regex.search(self.log.data, start)
                if match:
                    return match
                left = deadline - time.perf_counter()
                if left <= 0 or self.log.closed:
                    tail = bytes(self.log.data[-400:])
                    raise TimeoutError(f"no {pattern!r} within {timeout} s; output ends {tail!r}")
                self.log.changed.wait(left)

    def wait_screen(self, pattern: str, timeout: float = 10, poll: float = 0.1) -> Rendered:
        """Wait until the visible screen (as text) matches."""
        deadline = time.perf_counter() + timeout
        while True:
            shown = self.render()
            if re.search(pattern, "\n".join(shown.screen), re.M):
                return shown
            if time.perf_counter() > deadline:
                raise TimeoutError(f"screen never showed {pattern!r}:\n" + "\n".join(shown.screen))
            time.sleep(poll)

    def wait_idle(self, quiet: float = 0.5, timeout: float = 10) -> None:
        deadline = time.perf_counter() + timeout
        while time.perf_counter() < deadline and not self.log.closed:
            last = self.log.chunks[-1][0] if self.log.chunks else 0.0
            if time.perf_counter() - last >= quiet:
                return
            time.sleep(0.02)

    def wait_exit(self, timeout: float = 5) -> int:
        return self.process.wait(timeout)

    def echo(
        self,
        count: int = 60,
        interval: float = 0.05,
        timeout: float = 3.0,
        clear_every: int = 20,
        clear: str = "\x15",
    ) -> Latency:
        """Type ``count`` rare letters one by one; time each until it is painted."""
        return Latency.of(self.echo_samples(count, interval, timeout, clear_every, clear))

    def echo_samples(
        self,
        count: int = 60,
        interval: float = 0.05,
        timeout: float = 3.0,
        clear_every: int = 20,
        clear: str = "\x15",
    ) -> list[float | None]:
        """What ``echo`` measures, in seconds; None for a letter that never came."""
        samples: list[float | None] = []
        for i in range(count):
            letter = ECHO_ALPHABET[i % len(ECHO_ALPHABET)]
            start = self.mark()
            sent = time.perf_counter()
            self.send(letter)
            seen = self.log.wait_bytes(letter.encode(), start, timeout)
            samples.append(None if seen is None else seen - sent)
            if (i + 1) % clear_every == 0:
                self.send(clear)
            time.sleep(interval)
        self.send(clear)
        return samples

    def traffic(self, start: int = 0, end: int | None = None) -> Traffic:
        data = bytes(self.log.data[start:end])
        stop = start + len(data)
        return Traffic(
            bytes=len(data),
            reads=sum(start < offset <= stop for _, offset in self.log.chunks),
            erase_below=len(re.findall(rb"\x1b\[0?J", data)),
            erase_line=len(re.findall(rb"\x1b\[0?K", data)),
            cursor_queries=data.count(CPR_QUERY),
            sync_frames=data.count(SYNC_ON),
        )

    def cpu_seconds(self) -> float:
        """User plus system time of the command so far (Linux)."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0

    def _replay(self, end: int | None = None) -> Iterator[tuple[Screen, int]]:
        """Replay the log chunk by chunk; yields the screen after each chunk."""
        with self.log.changed:
            data = bytes(self.log.data[:end])
            chunks = [stop for _, stop in self.log.chunks if stop <= len(data)]
            resizes = list(self.log.resizes)
        _, cols, rows = resizes[0]
        screen = Screen(cols, rows)
        stream = pyte.ByteStream(screen)
        pending, position, carry = resizes[1:], 0, b""
        if not chunks or chunks[-1] != len(data):
            chunks.append(len(data))
        for stop in chunks:
            while pending and pending[0][0] <= position:
                _, cols, rows = pending.pop(0)
                resize_like_xterm(screen, cols, rows)
            piece = carry + data[position:stop]
            piece, carry = split_unfinished(piece)
            stream.feed(without_noise(piece))
            position = stop
            yield screen, stop
        for _, cols, rows in pending:
            resize_like_xterm(screen, cols, rows)
        yield screen, position

    def render(self, end: int | None = None) -> Rendered:
        *_, (screen, _) = self._replay(end)
        return Rendered(
            list(screen.scrollback), screen.screen_text(), (screen.cursor.x, screen.cursor.y)
        )

    def flicker(
        self, glyph: str, start: int = 0, end: int | None = None, honour_sync: bool = False
    ) -> Flicker:
        """Count paint opportunities at which ``glyph`` is nowhere on the screen."""
        with self.log.changed:
            data = bytes(self.log.data[:end])
        total = missing = vanished = 0
        visible = True
        for screen, stop in self._replay(end):
            if stop <= start:
                continue
            if honour_sync and data.rfind(SYNC_ON, 0, stop) > data.rfind(SYNC_OFF, 0, stop):
                continue
            shown = any(glyph in screen.row_text(y) for y in range(screen.lines))
            total += 1
            missing += not shown
            vanished += visible and not shown
            visible = shown
        return Flicker(total, missing, vanished, honour_sync)

    def most_rows(self, text: str, start: int = 0) -> int:
        """In how many rows at once the text has stood at the end of a frame."""
        with self.log.changed:
            data = bytes(self.log.data)
        most = 0
        for screen, stop in self._replay(None):
            in_frame = data.rfind(SYNC_ON, 0, stop) > data.rfind(SYNC_OFF, 0, stop)
            if stop > start and not in_frame:
                most = max(most, sum(text in screen.row_text(y) for y in range(screen.lines)))
        return most

    def close(self, grace: float = 2.0) -> int | None:
        """Hang up, then make sure that the command has ended."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGHUP)
            try:
                self.process.wait(grace)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._stopping.set()
        self._reader.join()  # before the descriptor can be reused
        os.close(self.master)
        return self.process.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
