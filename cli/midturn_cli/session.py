"""One interactive session: engine, controller and commands together, for any front end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

from midturn_cli.clipboard_pictures import ClipboardPictures
from midturn_cli.commands.all_commands import all_commands
from midturn_cli.commands.arguments import age
from midturn_cli.commands.command import CommandHost
from midturn_cli.commands.lines import CommandLines
from midturn_cli.commands.registry import CommandRegistry
from midturn_cli.engine import Engine, FrontEnd, ModelMaker, configured_model
from midturn_cli.greeting_hints import greeting_hints
from midturn_cli.launch import Launch, SessionStart
from midturn_cli.leftovers import leftover_notice
from midturn_cli.picture_paths import pictures_in
from midturn_cli.ports import CommandInfo, KeptPicture
from midturn_cli.render.clean import beginning
from midturn_cli.session_presence import PresenceHooks, SessionPresence
from midturn_cli.session_queue import QueueHooks
from midturn_cli.ui_events import (
    AnswerReplayed,
    CommandTable,
    Greeting,
    PromptReplayed,
    QueueChanged,
    UiEvent,
)
from midturn_core.controller import ControllerParts, ControllerRules, SessionController
from midturn_core.errors import SessionError
from midturn_core.events import AskAnswered, AskRequested, AskWithdrawn, Notice, NoticeLevel
from midturn_core.model.messages import AssistantMessage, ImageBlock, TextBlock, UserMessage
from midturn_core.queue.edits import QueueEdits
from midturn_core.queue.events import QueueEvent
from midturn_core.queue.reminder import MID_TURN_INJECTION_KEY
from midturn_core.queue.types import QueuedInput, QueuedInputPriority
from midturn_core.version import VERSION

_log = logging.getLogger(__name__)

REPLAYED_MESSAGES = 20
"""Messages of a resumed session that are shown again."""


class _QueueScreen:
    """Shows the waiting inputs after each change; many changes in a row are shown once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._loop = asyncio.get_running_loop()
        self._scheduled = False

    def on_event(self, event: QueueEvent) -> None:
        self.refresh()

    def refresh(self) -> None:
        """Show it soon; may be called on any thread."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon_threadsafe(self._show)

    def _show(self) -> None:
        self._scheduled = False
        queue = self._engine.session_queue
        items = self._engine.queue.snapshot(self._engine.context_id)
        # What is scheduled waits for its time; until then it would only take the rows of the rest.
        waiting = tuple(item for item in items if not item.scheduled)
        self._engine.emit(
            QueueChanged(waiting, self._engine.config.queue, queue.unstored, queue.fails)
        )


class InteractiveSession:
    """What the keyboard acts on. Constructed on the loop's thread."""

    def __init__(
        self,
        launch: Launch,
        front: FrontEnd,
        host: CommandHost,
        make_model: ModelMaker = configured_model,
    ) -> None:
        shown = replace(front, emit=partial(self._emit, front.emit))
        self.engine = Engine(launch, shown, make_model)
        self._lines = CommandLines(self.engine, host, CommandRegistry(all_commands()))
        queue = self.engine.config.queue
        self.controller = SessionController(
            ControllerParts(
                context_id=self.engine.context_id,
                agent=self.engine.agent,
                queue=self.engine.queue,
                lines=self._lines,
                emit=self.engine.observe,
                cancel_awaited_call=self.engine.cancel_awaited_call,
                rules=ControllerRules(
                    QueuedInputPriority[queue.enter.upper()],
                    queue.later == "idle",
                    queue.one_per_turn,
                ),
                claims=self.engine.session_queue,
                busy_changed=lambda: self._presence.changed(),
            )
        )
        self._presence = SessionPresence(
            self.engine,
            PresenceHooks(
                busy=lambda: self.controller.busy,
                look=self.engine.session_queue.look,
                warn=self.engine.warn,
            ),
        )
        self._clipboard = ClipboardPictures(self.engine.session.files, self.engine.workspace)
        self._opening: asyncio.Task[bool] | None = None
        self._offering: asyncio.Task[None] | None = None
        self._lost: tuple[str, ...] = ()
        self._lines.controller = self.controller
        self._edits = self._lines.edits
        self._queue_screen = _QueueScreen(self.engine)
        self.engine.queue.add_listener(self._queue_screen)

    def open(self) -> None:
        """Greet, show what was resumed, and start with the first prompt if there is one."""
        engine, launch = self.engine, self.engine.launch
        hints = tuple(greeting_hints(engine))
        engine.emit(Greeting(VERSION, str(engine.workspace), engine.status(), hints))
        engine.show_status()
        for warning in filter(
            None, (*launch.loaded.warnings, *engine.rule_warnings(), engine.log_warning)
        ):
            self.engine.warn(warning)
        if engine.resumed:
            self._show_resumed(engine.resumed.warnings)
        self._opening = asyncio.create_task(self._open_queue())
        if launch.session is SessionStart.CHOOSE:
            self.submit("/resume", None)
        if launch.prompt and (problem := self.submit_line(launch.prompt)):
            engine.warn(problem)

    def commands(self) -> Sequence[CommandInfo]:
        return [command.info for command in self._lines.registry.all()]

    @property
    def queue(self) -> QueueEdits:
        return self._edits

    @property
    def busy(self) -> bool:
        return self.controller.busy

    @property
    def has_held(self) -> bool:
        return self.controller.has_held

    def submit(
        self,
        text: str,
        priority: QueuedInputPriority | None,
        *,
        pasted: bool = False,
        attachments: Sequence[ImageBlock] = (),
    ) -> str:
        try:
            kept = [self.engine.session.files.keep(picture) for picture in attachments]
        except SessionError as error:
            return str(error)
        problem = self.controller.submit(text, priority, pasted=pasted, attachments=kept)
        if not problem:
            self._clipboard.entered(kept)
        return problem

    async def clipboard_picture(self) -> KeptPicture | str:
        return await self._clipboard.take()

    def submit_line(self, text: str) -> str:
        """Take a line that no draft has shown: pictures are what it names with ``@``."""
        pictures = pictures_in(text, self.engine.workspace, self.engine.warn)
        return self.submit(text, None, attachments=pictures)

    def interrupt(self) -> bool:
        return self.controller.interrupt()

    def cancel_awaited_call(self) -> bool:
        return self.controller.cancel_awaited_call()

    def release_held(self) -> bool:
        return self.controller.release_held()

    async def queue_opened(self) -> None:
        """Until what an earlier run left in the queue is shown; no longer than a few seconds, and
        not at all where the store fails.
        """
        if self._opening is None or not await asyncio.shield(self._opening):
            return
        if self._offering is not None:
            await asyncio.shield(self._offering)

    async def wait_idle(self) -> None:
        """Until no turn, command or ``!`` line runs any more."""
        await self.controller.wait_idle()
        await self._lines.wait_beside()
        await self.engine.config_writes.wait()

    async def close(self, still_meant: str = "") -> list[str]:
        """End what runs and let go of everything; the inputs that were never delivered.

        ``still_meant`` is a draft that outlives the session, with its pictures as paths.
        """
        self._clipboard.remove_unsent(still_meant)
        await self._lines.close()
        await self.controller.close()
        await _whatever_happens(self.queue_opened())
        if self._offering is not None:
            self._offering.cancel()
        self._edits.end_all()
        waiting = self._undelivered()
        if waiting:
            self.engine.session.keep()
        await _whatever_happens(self._presence.close())
        await _whatever_happens(self.engine.session_queue.close())
        self._lost = tuple(
            item.input_text for item in self.engine.session_queue.lost_at_end(waiting)
        )
        await _whatever_happens(self.engine.close())
        return [item.input_text for item in waiting]

    @property
    def lost(self) -> tuple[str, ...]:
        """Of what was never delivered: the texts that no store has. Known once it is closed."""
        return self._lost

    def _undelivered(self) -> list[QueuedInput]:
        """What waits, and what expired without having been restored."""
        session_queue = self.engine.session_queue
        return [*self._edits.waiting(), *session_queue.expired.items()]

    async def _open_queue(self) -> bool:
        """Connect the queue to its store, and be seen by others; whether the store has answered.

        What others send is taken for left by an earlier run, and held, while the store has not told
        what that is; so the session is seen only afterwards, unless the store is slow.
        """
        resumed = self.engine.resumed
        hooks = QueueHooks(
            self.engine.warn,
            self.controller.wake,
            self._tell_expired,
            self._queue_screen.refresh,
        )
        queue = self.engine.session_queue
        await queue.open(resumed.delivered if resumed else frozenset(), hooks)
        self._offering = asyncio.create_task(self._offer_leftovers())
        answered = await queue.answered()
        await self._presence.open()
        return answered

    async def _offer_leftovers(self) -> None:
        """Show what an earlier run left in the queue, whenever its store has told."""
        leftovers = await self.engine.session_queue.leftovers()
        held = [item for item in leftovers if not self._still_set(item)]
        if held:
            self.engine.emit(left_over(held))
        if count := len(leftovers) - len(held):
            reminders = "1 reminder is" if count == 1 else f"{count} reminders are"
            self.engine.emit(Notice(NoticeLevel.INFO, f"{reminders} still set; /remind shows them"))
        if expired := self.engine.session_queue.expired.items():
            self.engine.emit(left_expired(expired))
        if self.engine.resumed is None:
            notice = await asyncio.to_thread(
                leftover_notice, self.engine.config.queue, self.engine.workspace
            )
            if notice:
                self.engine.emit(Notice(NoticeLevel.INFO, notice))

    def _still_set(self, item: QueuedInput) -> bool:
        return item in self.engine.session_queue.rewake.pending(self.engine.context_id)

    def _tell_expired(self, item: QueuedInput) -> None:
        ttl = self.engine.config.queue.ttl
        self.engine.warn(
            f"Expired after {ttl} s (queue.ttl), not sent: {beginning(item.input_text)} "
            "→ /queue restore lets it wait again"
        )

    def _emit(self, show: Callable[[UiEvent], None], event: UiEvent) -> None:
        show(event)
        if isinstance(event, AskRequested | AskAnswered | AskWithdrawn):
            self._presence.observe(event)

    def _show_resumed(self, warnings: Sequence[str]) -> None:
        for warning in warnings:
            self.engine.warn(warning)
        for event in replayed(self.engine, REPLAYED_MESSAGES):
            self.engine.emit(event)


async def _whatever_happens(step: Awaitable[None]) -> None:
    try:
        await step
    except Exception:
        # Isolation wall: what was typed and never sent is still to be told.
        _log.exception("a step of closing the session failed")


def left_over(items: Sequence[QueuedInput]) -> CommandTable:
    """What an earlier run left in the queue; nothing of it is sent by itself."""
    rows = [
        (str(number), item.priority.name, age(item.enqueued_at), beginning(item.input_text))
        for number, item in enumerate(items, start=1)
    ]
    return CommandTable(
        "Left from last time, held",
        ("", "tier", "age", "text"),
        tuple(rows),
        "Enter on an empty line sends them; /queue shows and removes them one by one, "
        "/queue clear discards them all",
    )


def left_expired(items: Sequence[QueuedInput]) -> CommandTable:
    """What expired in an earlier run (D11)."""
    return CommandTable(
        "Expired, not sent",
        ("", "tier", "age", "text"),
        left_over(items).rows,
        "/queue restore N lets one wait again, /queue discard forgets them",
    )


def replayed(engine: Engine, most: int) -> list[UiEvent]:
    """The last messages of the history as the screen shows them."""
    messages = engine.conversation.messages
    events: list[UiEvent] = []
    for message in messages[-most:]:
        match message:
            case AssistantMessage():
                if message.text.strip():
                    events.append(AnswerReplayed(message.text))
            case UserMessage(blocks):
                texts = [block.text for block in blocks if isinstance(block, TextBlock)]
                events += [
                    PromptReplayed(engine.reminders.unwrap(text))
                    for text in texts
                    # Our own notes to the model are nothing that the user said.
                    if engine.reminders.key_of(text) in ("", MID_TURN_INJECTION_KEY)
                ]
    if len(messages) > most:
        events.insert(0, Notice(NoticeLevel.INFO, f"{len(messages) - most} older messages"))
    return events
