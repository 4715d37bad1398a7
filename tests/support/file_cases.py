"""Reads the cases of tests/corpora that are about files: recipes, set-up steps, expectations."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CORPORA = Path(__file__).parents[1] / "corpora"

# The corpora are plain JSON of many shapes: a true border.
Case = Mapping[str, Any]


def load_cases(name: str) -> list[Case]:
    cases: list[Case] = json.loads((CORPORA / name).read_text())["cases"]
    return cases


def case_id(case: Case) -> str:
    return str(case["id"])


def generated(recipe: Case) -> str:
    """A long string from its recipe."""
    if "rows" in recipe:
        template: str = recipe["template"]
        return "".join(template.replace("{i}", str(i)) for i in range(1, recipe["rows"] + 1))
    parts: Sequence[Sequence[Any]] = recipe["parts"]
    return "".join(text * times for text, times in parts)


def bytes_of(case: Case, name: str) -> bytes | None:
    """The bytes of a field that is given as base64 or as a recipe; None: there is no file."""
    if f"{name}_gen" in case:
        return generated(case[f"{name}_gen"]).encode()
    encoded = case.get(f"{name}_b64")
    return None if encoded is None else base64.b64decode(encoded)


def text_of(case: Case, name: str) -> str:
    return generated(case[f"{name}_gen"]) if f"{name}_gen" in case else str(case[name])


def set_up(steps: Sequence[Case], folder: Path) -> None:
    for step in steps:
        path = folder / step["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        match step["op"]:
            case "file":
                path.write_text(step["text"])
                if "mode" in step:
                    path.chmod(step["mode"])
            case "dir":
                path.mkdir()
            case "symlink":
                path.symlink_to(step["to"])
            case "sparse":
                with path.open("wb") as file:
                    os.truncate(file.fileno(), step["size"])
            case other:
                raise AssertionError(f"unknown set-up step {other}")
