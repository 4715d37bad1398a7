"""/queue edit, rm, mv, now, next, later, hold, release, clear, restore and discard."""

from __future__ import annotations

from collections.abc import Sequence

from midturn_cli.commands.arguments import whole_number
from midturn_cli.commands.command import CommandError, Use
from midturn_cli.render.clean import beginning
from midturn_cli.render.words import queue_notes
from midturn_core.errors import QueueFullError
from midturn_core.queue.types import QueuedInput, QueuedInputPriority


def waiting(use: Use) -> list[QueuedInput]:
    return use.engine.queue.snapshot(use.engine.context_id)


def with_note(
    item: QueuedInput, unstored: frozenset[str] = frozenset(), fails: bool = False
) -> str:
    return " · ".join((beginning(item.input_text), *queue_notes(item, unstored, fails)))


def numbered(use: Use, word: str, what: str) -> QueuedInput:
    """The input that the list last showed under a number; without a list, what one would show.

    Raises:
        CommandError: it is no number of that list, or the input waits no more.
    """
    number = whole_number(word, f"the number after /queue {what}", f"/queue {what} 2")
    items = waiting(use)
    known = use.shown.queue or tuple(item.uuid for item in items)
    if number > len(known):
        ends = f"the list ends at {len(known)}; /queue shows it anew"
        raise CommandError(f"There is no number {number}: {ends if known else 'nothing waits'}")
    found = next((item for item in items if item.uuid == known[number - 1]), None)
    if found is None:
        raise CommandError(f"Number {number} of the list waits no more; /queue shows what does")
    return found


def edit(use: Use, word: str) -> None:
    """With a text after the number: that is the new one; otherwise in the input line."""
    item = numbered(use, word, "edit")
    parts = use.arguments.split(None, 2)
    if len(parts) == 2:
        if item.scheduled or not use.host.edit_row(item.uuid):
            raise CommandError(
                f"/queue edit {word} needs the new text here (example: /queue edit {word} TEXT)"
            )
        return
    if problem := use.edits.save(item.uuid, parts[2]):
        raise CommandError(problem)
    use.say(f"Number {word} is now: {beginning(parts[2])}")


def remove(use: Use, word: str) -> None:
    removed = use.edits.remove(numbered(use, word, "rm").uuid)
    if removed is None:
        raise CommandError(f"Number {word} of the list waits no more; /queue shows what does")
    use.say(f"Removed, never sent: {beginning(removed.input_text)}")


def move(use: Use, word: str, target_word: str) -> None:
    """To the place of another of the same tier."""
    item, target = numbered(use, word, "mv"), numbered(use, target_word, "mv 1")
    if item.priority is not target.priority:
        name = target.priority.name
        raise CommandError(
            f"Number {target_word} is {name}, and the order of the tiers is fixed: "
            f"/queue {name.lower()} {word} changes the tier"
        )
    tier = [other.uuid for other in waiting(use) if other.priority is item.priority]
    use.edits.move(item.uuid, tier.index(target.uuid) - tier.index(item.uuid))
    use.say(f"Moved to the place of number {target_word}: {beginning(item.input_text)}")


def change_tier(use: Use, tier: str, word: str) -> None:
    item = numbered(use, word, tier)
    use.edits.set_tier(item.uuid, QueuedInputPriority[tier.upper()])
    use.controller.wake()
    use.say(
        f"Now {tier.upper()}, behind what is {tier.upper()} already: {beginning(item.input_text)}"
    )


def hold(use: Use, word: str) -> None:
    target = numbered(use, word, "hold").uuid if word else use.engine.context_id
    held = use.engine.queue.hold(target)
    if not held:
        raise CommandError("Nothing was on its way; /queue shows what is held")
    use.say(f"Held: {counted(held)}. /queue release lets go.")


def release(use: Use, word: str) -> None:
    if word:
        item = numbered(use, word, "release")
        if not use.engine.queue.release(item.uuid):
            raise CommandError(f"Number {word} is not held; /queue shows what is")
        use.controller.wake()
        use.say(f"Released: {beginning(item.input_text)}")
        return
    held = sum(item.held and not item.scheduled for item in waiting(use))
    if not held:
        raise CommandError("Nothing is held; /queue shows what waits")
    use.controller.release_held()
    use.say(f"Released: {held} held input{'' if held == 1 else 's'}.")


def clear(use: Use) -> None:
    removed = use.engine.queue.clear(use.engine.context_id)
    use.shown.queue = ()
    if not removed:
        use.say("Nothing waits.")
        return
    rows = [(item.priority.name, with_note(item)) for item in removed]
    use.table("Removed, never sent", ("tier", "text"), rows)


def restore(use: Use, word: str) -> None:
    """Let one expired input wait again, or all of them (D11)."""
    chosen = _expired(use, word)
    for item in chosen:
        try:
            use.engine.session_queue.restore(item)
        except QueueFullError as error:
            raise CommandError(str(error)) from error
    use.controller.wake()
    use.say(f"Restored: {counted(len(chosen))}.")


def discard(use: Use, word: str) -> None:
    """Forget one expired input, or all of them."""
    chosen = _expired(use, word)
    for item in chosen:
        use.engine.session_queue.discard(item)
    rows = [(item.priority.name, with_note(item)) for item in chosen]
    use.table("Discarded, never sent", ("tier", "text"), rows)


def _expired(use: Use, word: str) -> Sequence[QueuedInput]:
    items = use.engine.session_queue.expired.items()
    if not items:
        raise CommandError("Nothing has expired")
    if not word:
        return items
    number = whole_number(word, "the number of the expired input", "/queue restore 1")
    shown = use.shown.expired or tuple(item.uuid for item in items)
    uuid = shown[number - 1] if number <= len(shown) else ""
    found = [item for item in items if item.uuid == uuid]
    if not found:
        raise CommandError(f"There is no expired number {number}; /queue shows what there is")
    return found


def counted(count: int) -> str:
    return "1 input" if count == 1 else f"{count} inputs"
