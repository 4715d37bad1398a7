"""What a tool is given and gives cannot be changed by anybody else (S1.29, S1.33)."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.model.messages import Outcome, ToolUse, ToolUseResult
from midturn_core.tool import ToolRegistry, ToolResult
from tests.core.dispatch.kit import ProbeTool
from tests.support.tool_context import make_tool_context


def test_a_context_is_immutable_and_so_are_its_attributes(tmp_path: Path) -> None:
    context = make_tool_context(tmp_path)
    with pytest.raises(dataclasses.FrozenInstanceError):
        context.workspace = Path("/")  # type: ignore[misc]  # what the test is about
    with pytest.raises(TypeError):
        context.attributes["seen"] = 1  # type: ignore[index]  # what the test is about


@pytest.mark.parametrize(
    "value",
    [
        ToolUse("1", "Read"),
        ToolResult("text"),
        ToolUseResult("1", "Read", Outcome.SUCCEEDED, "text"),
        ToolConcurrencyConfig(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_goes_between_threads_is_frozen(value: object) -> None:
    field = dataclasses.fields(value)[0].name  # type: ignore[arg-type]  # dataclasses all
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, field, "changed")


def test_an_unknown_name_is_no_tool_and_a_name_is_given_once() -> None:
    registry = ToolRegistry([ProbeTool("Read")])
    assert registry.get("read") is None
    with pytest.raises(ValueError, match="two tools are named Read"):
        ToolRegistry([ProbeTool("Read"), ProbeTool("Read")])
