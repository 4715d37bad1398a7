"""Programs that read the clipboard, replaced by scripts that offer what a test wants."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

_BEGIN = """#!{python} -IS
import os, sys, time
me = os.path.abspath(__file__)
words = sys.argv[1:]
def give(kind):
    file = os.path.join(me + ".offers", kind.replace("/", "+"))
    if not os.path.exists(file):
        sys.exit({refusal!r})
    sys.stdout.buffer.write(open(file, "rb").read())
def kinds():
    return [name.replace("+", "/") for name in os.listdir(me + ".offers")]
{first}
"""
_WL_PASTE = """
if words == ["--list-types"]:
    if not kinds():
        sys.exit("Nothing is copied")
    print("\\n".join(kinds()))
elif words[0] == "--type":
    give(words[1])
else:
    sys.exit(f"cannot understand {words}")
"""
_XCLIP = """
if words[:4] != ["-selection", "clipboard", "-out", "-target"]:
    sys.exit(f"cannot understand {words}")
if words[4] == "TARGETS":
    if not kinds():
        sys.exit("Error: target TARGETS not available")
    print("\\n".join(["TIMESTAMP", "TARGETS", *kinds()]))
else:
    give(words[4])
"""
_PNGPASTE = """
if words != ["-"]:
    sys.exit("usage")
give("image/png")
"""
_OSASCRIPT = """
if words != ["-e", "the clipboard as \\xabclass PNGf\\xbb"]:
    sys.exit(f"cannot understand {words}")
file = os.path.join(me + ".offers", "image+png")
if not os.path.exists(file):
    sys.exit("execution error: Can't make some data into the expected type. (-1700)")
data = open(file, "rb").read().hex().upper()
sys.stdout.buffer.write(f"\\xabdata PNGf{data}\\xbb\\n".encode())
"""
_SCRIPTS = {
    "wl-paste": _WL_PASTE,
    "xclip": _XCLIP,
    "pngpaste": _PNGPASTE,
    "osascript": _OSASCRIPT,
}


def offer(folder: Path, name: str, offers: Mapping[str, bytes], first: str = "") -> None:
    """Put a program into ``folder`` that finds these media types on the clipboard; ``first`` is
    Python that it runs before all else.
    """
    program = folder / name
    begin = _BEGIN.format(python=sys.executable, refusal="not available", first=first)
    program.write_text(begin + _SCRIPTS[name], encoding="utf-8")
    program.chmod(0o755)
    contents = folder / f"{name}.offers"
    contents.mkdir(exist_ok=True)
    for file in contents.iterdir():
        file.unlink()
    for kind, data in offers.items():
        (contents / kind.replace("/", "+")).write_bytes(data)
