"""Markdown into HTML in a process of its own, so that the input line stays live meanwhile.

Parsing and colouring a long session takes seconds, and in a thread some steps of it keep the
interpreter for half a second.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress

from midturn_cli.export.as_html import MarkdownToHtml

NICENESS = 10
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from {0} import serve; serve()"


@contextmanager
def markdown_child() -> Generator[MarkdownToHtml]:
    """A converter that blocks until the child has answered; for one thread.

    Where no child can be started, or it dies, the text is converted here.
    """
    try:
        child = _start()
    except OSError:
        yield _convert_here
        return
    try:
        yield lambda markdown: _ask(child, markdown)
    finally:
        child.kill()
        # What it has not taken any more.
        with suppress(BrokenPipeError):
            child.communicate()


def serve() -> None:
    """Be the child: a JSON string a line in, its HTML as another out, until there is no more."""
    os.nice(NICENESS)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_convert_here(json.loads(line))) + "\n")
        sys.stdout.flush()


def _start() -> subprocess.Popen[str]:
    # Isolated, and with the folders of this process alone: the child must not import what happens
    # to lie in the user's folder.
    folders = [folder for folder in sys.path if os.path.isabs(folder)]
    return subprocess.Popen(
        [sys.executable, "-I", "-c", _PROGRAM.format(__name__), *folders],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="ascii",
        start_new_session=True,
    )


def _ask(child: subprocess.Popen[str], markdown: str) -> str:
    assert child.stdin is not None and child.stdout is not None
    try:
        child.stdin.write(json.dumps(markdown) + "\n")
        child.stdin.flush()
        answer = child.stdout.readline()
        return str(json.loads(answer))
    except (OSError, ValueError):
        # It has died meanwhile.
        return _convert_here(markdown)


def _convert_here(markdown: str) -> str:
    # Imported here: the parser and the highlighter are for the child.
    from midturn_cli.export.html_markdown import html_of

    return html_of(markdown)
