"""What the standard tools declare: the table of D25, every tool in it and none besides (S1.28)."""

from __future__ import annotations

from midturn_core.config import FilesConfig, WebConfig
from midturn_core.tool import ConcurrencyBehavior, InterruptBehavior
from midturn_tools.standard import standard_tools

SAFE, SEQUENTIAL = ConcurrencyBehavior.CONCURRENT_SAFE, ConcurrencyBehavior.SEQUENTIAL
REVIEWED = {
    "Read": (SAFE, InterruptBehavior.NON_INTERRUPTIBLE),
    "Grep": (SAFE, InterruptBehavior.COOPERATIVE),
    "Glob": (SAFE, InterruptBehavior.COOPERATIVE),
    "WebFetch": (SAFE, InterruptBehavior.COOPERATIVE),
    "Edit": (SEQUENTIAL, InterruptBehavior.NON_INTERRUPTIBLE),
    "Write": (SEQUENTIAL, InterruptBehavior.NON_INTERRUPTIBLE),
    "TodoWrite": (SEQUENTIAL, InterruptBehavior.NON_INTERRUPTIBLE),
    "Bash": (SEQUENTIAL, InterruptBehavior.EXTERNALLY_TERMINATED),
}
"""A new tool gets its row here after its own review by the checklist of S1.26."""


def test_every_tool_declares_what_its_review_found() -> None:
    declared = {
        tool.name: (tool.get_concurrency_behavior(), tool.get_interrupt_behavior())
        for tool in standard_tools(WebConfig(), FilesConfig()).all()
    }
    assert declared == REVIEWED


def test_a_tool_that_writes_or_runs_something_is_sequential() -> None:
    for name in ("Edit", "Write", "Bash", "TodoWrite"):
        assert REVIEWED[name][0] is SEQUENTIAL


def test_no_description_demands_an_order_between_tools() -> None:
    """S4.12: a model that believes in an order asks for one call at a time."""
    for tool in standard_tools(WebConfig(), FilesConfig()).all():
        words = tool.description.lower()
        assert "step by step" not in words
        assert "one at a time" not in words
