"""Jupyter notebooks as readable cells: pictures and long outputs become notes with their size."""

from __future__ import annotations

import json
from collections.abc import Iterator

from midturn_core.model.messages import JsonValue
from midturn_tools._text import size_text

MAX_NOTEBOOK_BYTES = 10_000_000
"""Beyond it a notebook is shown as its raw lines: parsing it would take too long."""
_MAX_OUTPUT = 2_000
_MAX_CELL = 20_000


class NotANotebookError(Exception):
    """The file is no JSON of the notebook format."""


def read_cells(text: str) -> tuple[str, ...]:
    """The cells of a notebook as text, in order, each of bounded length.

    Raises:
        NotANotebookError: the text is no notebook.
    """
    try:
        document: JsonValue = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotANotebookError(str(error)) from None
    cells = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(cells, list):
        raise NotANotebookError("it has no list of cells")
    return tuple(_cell(number, cell) for number, cell in enumerate(cells, 1))


def would_break(before: str, after: str) -> bool:
    """Whether a notebook (of at most ``MAX_NOTEBOOK_BYTES``) would be one no longer."""
    return len(before) <= MAX_NOTEBOOK_BYTES and _is_json(before) and not _is_json(after)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _cell(number: int, cell: JsonValue) -> str:
    if not isinstance(cell, dict):
        return f"--- cell {number}: not readable ---"
    kind, identity = cell.get("cell_type"), cell.get("id")
    label = f", id {identity}" if isinstance(identity, str) else ""
    parts = [f"--- cell {number}: {kind}{label} ---", _joined(cell.get("source"))]
    outputs = cell.get("outputs")
    if isinstance(outputs, list):
        for output in outputs:
            parts += _output(output)
    shown = "\n".join(part for part in parts if part)
    if len(shown) > _MAX_CELL:
        shown = f"{shown[:_MAX_CELL]}\n[{len(shown) - _MAX_CELL:,} more characters not shown]"
    # JSON escapes can spell lone surrogates, which no request to the model may hold.
    return shown.encode("utf-8", "replace").decode()


def _output(output: JsonValue) -> Iterator[str]:
    if not isinstance(output, dict):
        return
    if "text" in output:
        yield _labelled("output", _joined(output.get("text")))
    if "traceback" in output:
        yield _labelled("error", f"{output.get('ename')}: {output.get('evalue')}")
    data = output.get("data")
    if not isinstance(data, dict):
        return
    for kind, content in data.items():
        if kind == "text/plain":
            yield _labelled("output", _joined(content))
        else:
            yield f"[output {kind}: {size_text(_size(content))}, not shown]"


def _labelled(label: str, text: str) -> str:
    if len(text) > _MAX_OUTPUT:
        rest = len(text) - _MAX_OUTPUT
        text = f"{text[:_MAX_OUTPUT]}\n[{rest:,} more characters of this output not shown]"
    return f"[{label}]\n{text}".rstrip("\n")


def _joined(value: JsonValue) -> str:
    """Notebooks keep a text as a string or as a list of lines."""
    if isinstance(value, list):
        value = "".join(part for part in value if isinstance(part, str))
    return value.rstrip("\n") if isinstance(value, str) else ""


def _size(content: JsonValue) -> int:
    return len(_joined(content)) if isinstance(content, str | list) else len(json.dumps(content))
