"""``StoreFollower``: takes over what others change in the store while a session runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from midturn_core.errors import QueueStoreError
from midturn_core.queue.mirror_parts import MirrorParts
from midturn_core.queue.outside import as_from_outside
from midturn_core.queue.take_over import TakeOver
from midturn_core.queue.types import QueuedInput
from midturn_core.queue.write_behind import WriteBehind


class StoreFollower:
    """Looks at the store when it is told to; what it finds there is marked and judged as foreign."""

    def __init__(self, parts: MirrorParts, write_behind: WriteBehind) -> None:
        self._parts = parts
        self._state = parts.state
        self._write_behind = write_behind
        self._take_over = TakeOver(parts)
        self._looking = False
        """A look at the store is in the line of jobs."""

    def look_soon(self) -> None:
        """Costs nothing while a look is due anyway. Thread-safe."""
        with self._parts.manager.atomic():
            if self._looking:
                return
            self._looking = True
        self._parts.client.submit(self._look)

    def _look(self) -> None:
        """Take over what others changed; once more when something of ours was on its way: then
        what was read is older than what is known here.
        """
        stored = self._found()
        with self._parts.manager.atomic():
            if self._state.on_the_way:
                self.look_soon()
                return
            present = [
                item for item in stored if not item.expired and item.uuid not in self._state.leaving
            ]
            refused = self._refused(present)
            waiting = self._parts.manager.snapshot(self._parts.context_id)
            here = {item.uuid: item for item in waiting}
            entering = (item for item in present if item.uuid not in refused)
            self._take_over.bring_in([self._wanted(item, here.get(item.uuid)) for item in entering])
        self._take_over.refuse(refused.values())

    def _found(self) -> list[QueuedInput]:
        """What is in the store and was not delivered, after it was given what it has lost."""
        with self._parts.manager.atomic():
            self._looking = False  # what changes from now on needs another look
        try:
            store = self._parts.client.store
            found = self._whole(store.generation())
            while (generation := store.generation()) != self._state.generation:
                found = self._whole(generation)
            again = [item.uuid for item in found if item.uuid in self._state.delivered]
            if again:
                store.confirm(again)
            return [item for item in found if item.uuid not in self._state.delivered]
        except QueueStoreError:
            with self._parts.manager.atomic():
                self._looking = True  # the job is tried again
            raise

    def _whole(self, generation: str) -> list[QueuedInput]:
        """What is in the store; one of another generation may have lost some, and gets all that
        waits here again, in the order it has here.
        """
        found = self._take_over.stored()
        if generation == self._state.generation:
            return found
        with self._parts.manager.atomic():
            waiting = self._parts.manager.snapshot(self._parts.context_id)
            here = [item for item in waiting if item.uuid in self._state.known]
        there = {item.uuid for item in found}
        lost = [item for item in here if item.uuid not in there]
        for item in lost:
            self._write_behind.store_new(item)
        if there and lost:
            for item in here:
                self._parts.client.store.move(item.uuid, None)
        with self._parts.manager.atomic():
            self._state.generation = generation
        return self._take_over.stored()

    def _refused(self, present: Iterable[QueuedInput]) -> dict[str, tuple[QueuedInput, str]]:
        """What is not known here and may not enter, with the reason."""
        new = [item for item in present if item.uuid not in self._state.known]
        judged = [(item, self._parts.hooks.refusal(item)) for item in new]
        return {item.uuid: (item, why) for item, why in judged if why}

    def _wanted(self, item: QueuedInput, here: QueuedInput | None) -> QueuedInput:
        """What to take over of an input that may enter, or that is known, and may wait here."""
        if item.uuid not in self._state.known:
            return as_from_outside(item)
        if here is None or here.input_text == item.input_text:
            return item
        if why := self._parts.hooks.refusal(here):
            # A command that the user typed must not become another one.
            self._parts.hooks.refused(item, why)
            self._write_behind.rewrite(here)
            return replace(item, input_text=here.input_text)
        return item
