"""Makes the pictures in docs/screens from the real program (``make screens``).

``midturn demo``, or ``midturn`` with a scripted service, runs in a pseudo-terminal, in a folder made
for it, and is driven by keys; the first frame that shows what a picture is about becomes an SVG
file. Times in it are those of this machine: a second run differs in nothing else.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), *(str(ROOT / name) for name in ("cli", "core", "tools"))]

from tests.support.live_midturn import GLYPH, LiveMidturn, Start, write_config  # noqa: E402
from tests.support.messages_script import Calls, Latch, Reply, Says  # noqa: E402
from tests.support.messages_server import MessagesServer  # noqa: E402
from tests.support.midturn_process import midturn_environment  # noqa: E402
from tests.support.terminal_svg import Theme, frames, to_svg  # noqa: E402

TARGET = ROOT / "docs" / "screens"
SIZES = ((80, 24), (60, 20), (140, 40))
THEMES: tuple[Theme, ...] = ("dark", "light")
FOLDER = "midturn-screens"
"""In the folder for temporary files; always the same, since the greeting shows it."""
FILES = {
    "장보기.md": "# 장보기\n\n- 두부 한 모\n- 우유 한 병\n- 대파 두 단\n- 참기름\n",
    "요리법.md": "# 된장찌개\n\n1. 두부를 썬다.\n2. 된장을 푼다.\n3. 끓인다.\n",
    "notes/tofu.md": "두부 keeps for three days in fresh water.\n",
    "upload.py": """\
from retry import attempts


def upload(path, send):
    for _ in attempts(limit=1):
        if send(path.read_bytes()):
            return True
    return False
""",
    "retry.py": """\
import time


def attempts(limit, pause=1.0, longest=30.0):
    for number in range(limit):
        yield number
        time.sleep(min(pause * 2**number, longest))
""",
}
ANSWER = """\
`upload()` gives up after **one** attempt: `attempts(limit=1)` in `upload.py`
leaves the loop before the first pause.

- `retry.py` itself is right: it doubles the pause, up to 30 seconds.
- A 429 is never tried again: `send` raises it, and nothing catches it.

I would set the limit to five, and let """
SLOW = 15
"""Words per second at which an answer still streams when three lines have been typed."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The first frame that shows all of ``shows`` (patterns; ``^`` is the start of a row).

    ``settled`` takes the last one instead: nothing moves any more in it.
    """

    name: str
    title: str
    shows: tuple[str, ...]
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """One run of the program, and the pictures that it gives."""

    pictures: tuple[Picture, ...]
    play: Callable[[LiveMidturn], None]
    config: str = ""
    service: Callable[[], Sequence[Reply]] | None = None
    """What a scripted service answers, where the demo would not do."""


def explained() -> Sequence[Reply]:
    """Three calls of one response, and an answer that has not come to its end."""
    calls = (
        Calls("Read", {"file_path": "upload.py"}),
        Calls("Read", {"file_path": "retry.py"}),
        Calls("Grep", {"pattern": "attempts"}),
    )
    return Reply(*calls), Reply(Says(ANSWER, Latch()))


def live_line(live: LiveMidturn) -> None:
    live.enter("why does the upload give up so early?")
    live.see("I would set the limit")
    live.enter("handle the 429 answer too")
    live.enter("keep the public API as it is")
    live.enter_as("LATER", "then update the changelog")
    live.type("change nothing but upload.py")
    live.key("tab")
    live.see(f"^NOW redirects at once {GLYPH} change")
    live.see("queue 2 NEXT 1 LATER")


def batch(live: LiveMidturn) -> None:
    live.enter("read 장보기.md and 요리법.md and find 두부 in .")
    live.see_anywhere("calls? succeeded|call\\(s\\) succeeded")
    live.see_idle()


def edit(live: LiveMidturn) -> None:
    live.enter("edit 장보기.md: 우유 한 병 -> 두유 두 병")
    live.see("y once")
    live.send("y")
    live.see_anywhere("call\\(s\\) succeeded")
    live.see_idle()


def queue(live: LiveMidturn) -> None:
    live.enter(f"rate {SLOW}")
    live.see("From now on")
    live.see_idle()
    live.enter("count to 60")
    live.see("line 00001")
    live.enter("두부 조림도 찾아 줘")
    live.enter_as("LATER", "run ls notes")
    live.enter_as("NOW", "쓴 것만 요약해 줘")
    live.type("그리고 ")
    live.see("line 00030")
    live.key("ctrl-u")
    live.key("esc")
    live.see_anywhere("Interrupted")


SCENES = (
    Scene(
        (
            Picture(
                "live",
                "Lines are typed while an answer streams: two for its next step, one for later, "
                "and one that will redirect it",
                ("^NEXT ", "^LATER ", f"^NOW redirects at once {GLYPH} change"),
                settled=True,
            ),
        ),
        live_line,
        '[parallel]\nenabled = true\n\n[model]\nname = "scripted"\n',
        explained,
    ),
    Scene(
        (
            Picture(
                "batch",
                "Three calls of one response run together; their panel says what that saved",
                ("Parallel Tool Execution", "saved"),
                settled=True,
            ),
        ),
        batch,
        "[parallel]\nenabled = true\n",
    ),
    Scene(
        (
            Picture("question", "A question about an edit, with the change", ("y once",)),
            Picture(
                "diff", "The change of a file, as it was made", ("4 \\+ - 두유",), settled=True
            ),
        ),
        edit,
    ),
    Scene(
        (
            Picture(
                "queue",
                "Three lines wait, each in its tier, while an answer streams",
                ("^NOW ", "^NEXT ", "^LATER ", "그리고", "line 00025"),
            ),
        ),
        queue,
        "[queue]\nnow_hastens = false\n",
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="NAME", help="one picture, such as queue")
    parser.add_argument("--target", type=Path, default=TARGET, help="folder for the files")
    arguments = parser.parse_args()
    arguments.target.mkdir(exist_ok=True)
    for path, svg in pictures(arguments.only):
        (arguments.target / path).write_text(svg, encoding="utf-8")
        print(path)


def pictures(only: str | None = None) -> Iterator[tuple[str, str]]:
    """The name and the content of every file."""
    for size in SIZES:
        for theme in THEMES:
            for scene in SCENES:
                if only is None or only in (picture.name for picture in scene.pictures):
                    yield from pictures_of(scene, theme, size)


def pictures_of(scene: Scene, theme: Theme, size: tuple[int, int]) -> Iterator[tuple[str, str]]:
    data = played(scene, theme, size)
    for picture in scene.pictures:
        name = f"{picture.name}-{size[0]}x{size[1]}-{theme}.svg"
        yield name, picture_of(picture, data, theme, size)


def played(scene: Scene, theme: Theme, size: tuple[int, int]) -> bytes:
    """Everything that the program wrote while a scene was played."""
    with prepared_folder() as workspace:
        write_config(f'[ui]\ntheme = "{theme}"\n{scene.config}')
        with ExitStack() as stack:
            start, environ = Start(("demo",), cols=size[0], rows=size[1]), {}
            if scene.service is not None:
                server = stack.enter_context(MessagesServer(*scene.service()))
                start, environ = replace(start, arguments=()), server.environment()
            live = stack.enter_context(
                LiveMidturn(workspace, start, midturn_environment(**environ))
            )
            live.see(GLYPH)
            scene.play(live)
            return bytes(live.log.data)


def picture_of(picture: Picture, data: bytes, theme: Theme, size: tuple[int, int]) -> str:
    """
    Raises:
        LookupError: no frame shows it.
    """
    svg = ""
    for screen in frames(data, *size):
        text = "\n".join(screen.screen_text())
        if all(re.search(pattern, text, re.MULTILINE) for pattern in picture.shows):
            if not picture.settled:
                return to_svg(screen, theme, picture.title)
            svg = to_svg(screen, theme, picture.title)
    if not svg:
        raise LookupError(f"no frame of {size} shows {picture.shows}")
    return svg


@contextmanager
def prepared_folder() -> Generator[Path]:
    """A folder with a few files, and a home of its own for the program."""
    before = dict(os.environ)
    folder = Path(tempfile.gettempdir(), FOLDER)
    folder.mkdir(mode=0o700)
    try:
        with tempfile.TemporaryDirectory() as home:
            kept = {n: v for n, v in before.items() if n in ("PATH", "LANG", "LC_ALL")}
            os.environ.clear()
            os.environ.update(kept, HOME=home)
            # Apart: the program makes the folder of its state, and so it is private.
            os.environ.update(XDG_CONFIG_HOME=f"{home}/config", XDG_STATE_HOME=f"{home}/state")
            for name, content in FILES.items():
                path = folder / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(content, encoding="utf-8")
            yield folder
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
