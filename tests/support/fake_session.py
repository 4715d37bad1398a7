"""A session without an agent: records what the keyboard did to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from midturn_cli.ports import CommandInfo, KeptPicture
from midturn_core.model.messages import ImageBlock
from midturn_core.queue.edits import QueueEdits
from midturn_core.queue.types import QueuedInputPriority

COMMANDS = (
    CommandInfo("help", "show what there is"),
    CommandInfo("history", "show earlier prompts"),
    CommandInfo("model", "choose the model", "NAME"),
)


@dataclass(frozen=True, slots=True)
class Submitted:
    text: str
    priority: QueuedInputPriority | None
    pasted: bool
    attachments: tuple[ImageBlock, ...] = ()


@dataclass(slots=True)
class FakeSession:
    """A ``SessionPort``."""

    busy: bool = False
    has_held: bool = False
    awaited_call: bool = False
    refusal: str = ""
    submitted: list[Submitted] = field(default_factory=list[Submitted])
    rows: QueueEdits | None = None
    acts: list[str] = field(default_factory=list[str])
    clipboard: Callable[[], Awaitable[KeptPicture | str]] | None = None
    on_submit: Callable[[str], None] = lambda text: None

    @property
    def texts(self) -> list[str]:
        return [line.text for line in self.submitted]

    def submit(
        self,
        text: str,
        priority: QueuedInputPriority | None,
        *,
        pasted: bool = False,
        attachments: Sequence[ImageBlock] = (),
    ) -> str:
        if not self.refusal:
            self.submitted.append(Submitted(text, priority, pasted, tuple(attachments)))
            self.on_submit(text)
        return self.refusal

    async def clipboard_picture(self) -> KeptPicture | str:
        assert self.clipboard is not None
        return await self.clipboard()

    def interrupt(self) -> bool:
        self.acts.append("interrupt")
        return self.busy

    def cancel_awaited_call(self) -> bool:
        if self.awaited_call:
            self.acts.append("cancel_awaited_call")
        return self.awaited_call

    def release_held(self) -> bool:
        self.acts.append("release_held")
        return self.has_held

    def commands(self) -> Sequence[CommandInfo]:
        return COMMANDS

    @property
    def queue(self) -> QueueEdits | None:
        return self.rows
