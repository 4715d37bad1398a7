"""What a streamed Markdown answer costs, against rendering the whole of it once.

The answer is 60 kB of prose, lists, tables and code. Frames come twenty a second on a clock that
only the work itself and the pace of the tokens move forward, so that the measurement takes as long
as the work. At a reading pace the 20 frames a second show what is not final again and again: that
share does not depend on the length of the answer and is bounded as a share of a core.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), *(str(ROOT / name) for name in ("cli", "core", "tools"))]


from midturn_cli.render.answer_markdown import AnswerMarkdown  # noqa: E402
from midturn_cli.render.canvas import Canvas  # noqa: E402
from midturn_cli.render.markdown_pieces import render_piece  # noqa: E402
from midturn_cli.render.markdown_stream import MarkdownStream  # noqa: E402

WIDTH = 100
TAIL_ROWS = 10
THEME = "ansi_dark"
FRAME_SECONDS = 1 / 20
TOKEN_CHARS = 4
READING = 100
FULL_SPEED = 50_000
"""Tokens per second."""
PART = """## Part {0}

Some words of *part {0}* with `code`, a [link](https://part{0}.example) and enough text that the
paragraph takes more than one row of the window in which it is read.

1. first of {0}
2. second, with **strength**
   - and a nested item
   - and one more

| name | value |
|---|---|
| part | {0} |
| next | `{0} + 1` |

```python
def part_{0}(value: int) -> int:
    \"\"\"Double it.\"\"\"
    return value * 2 + {0}  # and the number of the part
```

> A quotation that says what part {0} was about.

"""
ANSWER = "".join(PART.format(number) for number in range(90))[:60_000]
CANVAS = Canvas("truecolor")
T = TypeVar("T")


class FrameClock:
    """Stands still between frames, and runs while one is made."""

    def __init__(self) -> None:
        self._base = 0.0
        self._started = 0.0

    def begin(self, frame: int) -> None:
        self._base, self._started = frame * FRAME_SECONDS, time.perf_counter()

    def __call__(self) -> float:
        return self._base + time.perf_counter() - self._started


@dataclass(frozen=True, slots=True)
class Streamed:
    cpu_seconds: float
    worst_step: float
    """The longest that keys had to wait; a frame with too much to do goes on in the next one."""
    lasts: float
    """Seconds that the answer takes to arrive."""


def main() -> None:
    one_shot()
    whole = min(one_shot() for _ in range(3))
    print(f"60 kB rendered once              {1000 * whole:.0f} ms")
    for pace, factor, share in ((READING, 5, 0.10), (FULL_SPEED, 4, 0.0)):
        streamed = stream(pace)
        bound = factor * whole + share * streamed.lasts
        print(
            f"streamed at {pace:>6,} tokens/s     {1000 * streamed.cpu_seconds:.0f} ms"
            f" = {streamed.cpu_seconds / whole:.1f}x, {streamed.cpu_seconds / bound:.0%} of the bound"
            f" ({factor}x"
            + (f" + {share:.0%} of a core)" if share else ")")
            + f", longest step {1000 * streamed.worst_step:.0f} ms (target: <= 50 ms)"
        )


def one_shot() -> float:
    started = time.process_time()
    CANVAS.render([AnswerMarkdown(ANSWER, THEME)], WIDTH)
    return time.process_time() - started


def stream(pace: int) -> Streamed:
    clock = FrameClock()
    markdown = MarkdownStream(clock)
    size = max(1, int(pace * FRAME_SECONDS)) * TOKEN_CHARS
    parts = [ANSWER[start : start + size] for start in range(0, len(ANSWER), size)]
    steps: list[float] = []

    def timed(step: Callable[[], T]) -> T:
        begun = time.perf_counter()
        result = step()
        steps.append(time.perf_counter() - begun)
        return result

    started = time.process_time()
    for frame, part in enumerate(parts):
        clock.begin(frame)
        markdown.feed(part)
        for piece in timed(markdown.take):
            timed(partial(render_piece, piece, CANVAS, WIDTH, THEME))
        timed(partial(markdown.tail, CANVAS, WIDTH, TAIL_ROWS, THEME))
    for piece in timed(markdown.end):
        timed(partial(render_piece, piece, CANVAS, WIDTH, THEME))
    return Streamed(time.process_time() - started, max(steps), len(parts) * FRAME_SECONDS)


if __name__ == "__main__":
    main()
