"""What a session says of itself in the status row, and what it has cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midturn_cli.ui_events import StatusInfo

if TYPE_CHECKING:
    from midturn_cli.engine import Engine

DEMO_MODEL_NAME = "built-in script"
CONTEXT_WINDOW = 200_000
"""Tokens; what the percentage in the status row refers to."""


def status_of(engine: Engine) -> StatusInfo:
    parallel, dispatcher = engine.parallel, engine.dispatcher
    tokens = engine.agent.context_tokens
    return StatusInfo(
        model=DEMO_MODEL_NAME if engine.launch.demo else engine.model_settings.name,
        demo=engine.launch.demo,
        mode=engine.authorizer.mode.value,
        parallel=parallel.enabled,
        max_concurrency=parallel.max_concurrency,
        per_batch_max=parallel.batch_slots,
        context_percent=round(100 * tokens / CONTEXT_WINDOW) if tokens else None,
        tokens=engine.agent.session_usage.context_tokens,
        cost=cost_text(engine),
        slots_in_use=dispatcher.slots_in_use,
        slots_by_agent=tuple(
            (context_id.agent, count)
            for context_id, count in dispatcher.in_use_by_context.most_common()
        ),
    )


def cost_of(engine: Engine) -> float | None:
    """Money spent in a session, subagents included; None without a price for its model."""
    price = engine.config.model.prices.get(engine.model_settings.name)
    if price is None or engine.launch.demo:
        return None
    usage = engine.agent.session_usage
    return (
        usage.input_tokens * price.input
        + usage.output_tokens * price.output
        + usage.cache_read_tokens * price.cache_read
        + usage.cache_write_tokens * price.cache_write
    ) / 1_000_000


def cost_text(engine: Engine) -> str:
    """The same to show; empty without a price."""
    cost = cost_of(engine)
    return "" if cost is None else f"{cost:.4f}"
