"""Pictures of queued inputs: in the same message as their text, at every delivery point (D15)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from midturn_core.compaction import transcript
from midturn_core.events import MessageEnded, TextDelta, TurnEnded
from midturn_core.model.client import TextChunk
from midturn_core.model.messages import TextBlock, UserMessage
from midturn_core.pictures import read_picture
from midturn_core.queue.attachments import AttachmentRef, attachment_tags
from midturn_core.queue.types import QueuedInput, QueuedInputPriority
from tests.support.agent_kit import DEADLINE, AgentKit, until, unwrap
from tests.support.picture_files import png
from tests.support.scripted_model import ScriptedModel, calls, text, use

NOW, NEXT = QueuedInputPriority.NOW, QueuedInputPriority.NEXT


async def run(kit: AgentKit) -> TurnEnded:
    turn = kit.agent.run_turn([kit.item("do it")], kit.interrupt)
    return await asyncio.wait_for(turn, DEADLINE)


def with_picture(kit: AgentKit, text: str, priority: QueuedInputPriority = NEXT) -> QueuedInput:
    """An input with a picture, as it waits in the queue (D15)."""
    tags = attachment_tags([AttachmentRef(f"{text}.png", f"{text}.png")])
    return replace(kit.item(text, priority), metadata=tags)


def last_blocks(kit: AgentKit) -> list[str]:
    """Of the last message of the newest request: texts unwrapped, pictures and results by name."""
    last = kit.model.requests[-1].messages[-1]
    assert isinstance(last, UserMessage)
    return [
        unwrap(block.text) if isinstance(block, TextBlock) else f"<{block.name}>"
        for block in last.blocks
    ]


async def test_pictures_at_a_step_boundary_follow_the_results_each_after_its_text() -> None:
    kit = AgentKit(ScriptedModel(calls(use("a")), text("done")))
    kit.queue.enqueue(with_picture(kit, "second"))
    kit.queue.enqueue(with_picture(kit, "first", NOW))
    await run(kit)
    assert last_blocks(kit) == ["<Echo>", "first", "<first.png>", "second", "<second.png>"]


async def test_a_picture_comes_with_the_prompt_that_starts_a_turn() -> None:
    kit = AgentKit(ScriptedModel(text("done")))
    await kit.agent.run_turn([with_picture(kit, "look")], kit.interrupt)
    assert last_blocks(kit) == ["look", "<look.png>"]


async def test_a_picture_at_the_would_stop_comes_with_its_text() -> None:
    kit = AgentKit(ScriptedModel(text("done"), text("seen")))
    kit.on_event = lambda event: (
        kit.queue.enqueue(with_picture(kit, "look"))
        if isinstance(event, MessageEnded) and len(kit.model.requests) == 1
        else None
    )
    await run(kit)
    assert last_blocks(kit) == ["look", "<look.png>"]


async def test_a_now_input_with_a_picture_cuts_the_stream() -> None:
    kit = AgentKit(ScriptedModel([TextChunk("so "), asyncio.Event()], text("seen")))
    turn = asyncio.create_task(run(kit))
    await until(lambda: bool(kit.of(TextDelta)))
    kit.queue.enqueue(with_picture(kit, "look", NOW))
    await turn
    assert last_blocks(kit) == ["look", "<look.png>"]


async def test_a_summary_knows_of_pictures_by_name_and_size() -> None:
    shot = read_picture(png(), "shot.png")
    assert transcript((UserMessage((TextBlock("look"), shot)),)) == (
        "User: look\nUser: [picture shot.png: PNG, 3×2, 71 B]"
    )
