"""/queue log: what became of each input that waited in this session."""

from __future__ import annotations

from typing import assert_never

from midturn_cli.commands.command import Use
from midturn_cli.render.clean import beginning
from midturn_cli.render.words import duration
from midturn_core.queue.receipts import Receipt, ReceiptState

SHOWN_RECEIPTS = 50


def show_log(use: Use) -> None:
    receipts = use.engine.session_queue.receipts.all()
    if not receipts:
        use.say("Nothing has waited in this session yet.")
        return
    rows = [
        (
            f"{receipt.enqueued_at.astimezone():%H:%M:%S}",
            receipt.priority.name,
            outcome(receipt),
            _waited(receipt),
            beginning(receipt.text),
        )
        for receipt in receipts[-SHOWN_RECEIPTS:]
    ]
    older = len(receipts) - len(rows)
    footer = f"{older} older ones are not shown" if older > 0 else ""
    use.table("What became of it", ("typed", "tier", "state", "waited", "text"), rows, footer)


def outcome(receipt: Receipt) -> str:
    """The state of one input in words."""
    match receipt.state:
        case ReceiptState.WAITING:
            return "waiting"
        case ReceiptState.DELIVERED if receipt.cut:
            return f"delivered: cut the answer of step {receipt.step}"
        case ReceiptState.DELIVERED:
            after = f" ({', '.join(receipt.tools)})" if receipt.tools else ""
            return f"delivered after step {receipt.step}{after}"
        case ReceiptState.ABSORBED:
            return "absorbed at the turn's end"
        case ReceiptState.OWN_TURN:
            return "its own turn"
        case ReceiptState.CANCELLED:
            return "cancelled"
        case ReceiptState.EXPIRED:
            return "expired"
        case ReceiptState.RESTORED:
            return "expired, restored"
        case _:
            assert_never(receipt.state)


def _waited(receipt: Receipt) -> str:
    seconds = receipt.waited_seconds
    return "" if seconds is None else duration(seconds * 1000)
