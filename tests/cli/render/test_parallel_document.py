"""docs/parallel.md shows what the screen shows, and explains every key of [parallel]."""

from __future__ import annotations

from pathlib import Path

import pytest

from midturn_cli.render.blocks import PanelFooter
from midturn_cli.render.words import panel_footer
from midturn_core.config_keys import CONFIG_KEYS
from midturn_core.dispatch.types import BatchReport, GateVerdict, SequentialCause

PAGE = (Path(__file__).parents[3] / "docs" / "parallel.md").read_text(encoding="utf-8")
OFF = GateVerdict(parallel=False, cause=SequentialCause.DISABLED, would_pass=True)


@pytest.mark.parametrize(
    "verdict",
    [
        OFF,
        GateVerdict(False, SequentialCause.SEQUENTIAL_TOOL, 1, "Edit"),
        GateVerdict(False, SequentialCause.INTERRUPT_BEHAVIOR, 0, "X"),
        GateVerdict(False, SequentialCause.UNKNOWN_TOOL, 1, "Raed"),
        GateVerdict(False, SequentialCause.CLOSED),
        GateVerdict(parallel=True),
    ],
    ids=lambda verdict: verdict.cause.value if verdict.cause else "parallel",
)
def test_the_page_has_the_words_of_the_panel(verdict: GateVerdict) -> None:
    wall_ms = 156.0 if verdict.parallel else 311.0
    report = BatchReport("batch", verdict, (), wall_ms, 311.0, 120.0)
    words = panel_footer(PanelFooter(report))[1].removesuffix(" · /why")
    assert words in PAGE


def test_the_page_explains_every_key() -> None:
    keys = [key.name for key in CONFIG_KEYS if key.section == "parallel"]
    assert [key for key in keys if f"`{key}`" not in PAGE and f"] {key} = " not in PAGE] == []
