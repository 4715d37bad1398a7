"""``Conversation``: a history that cannot be invalid for the Messages API.

It changes only by operations, each of which keeps these rules: the first message is the user's,
roles alternate, every tool use has exactly one result in the very next user message, in call order
and before any text or picture, no text block is empty, no thinking block lacks its signature, no message ends
in thinking. Cancellation, recovery, compaction and resume all go through the same operations; the
session log stores exactly them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from midturn_core.errors import ConversationError
from midturn_core.model.messages import (
    AssistantBlock,
    AssistantMessage,
    ImageBlock,
    Message,
    Outcome,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUse,
    ToolUseResult,
    UserMessage,
    UserPart,
)


@dataclass(frozen=True, slots=True)
class UserTextAdded:
    """What the user said: texts, each followed by the pictures that belong to it.

    ``inputs`` are the uuids of the queued inputs that are in it, so that whoever reads the log
    knows that they were delivered (D12).
    """

    parts: tuple[UserPart, ...]
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AssistantAdded:
    blocks: tuple[AssistantBlock, ...]


@dataclass(frozen=True, slots=True)
class ResultsAdded:
    """The results of the pending tool uses in call order, and what the user said after them.

    ``inputs`` as in ``UserTextAdded``.
    """

    results: tuple[ToolUseResult, ...]
    parts: tuple[UserPart, ...] = ()
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compacted:
    """The whole history so far gives way to this text."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cleared:
    """The history starts anew."""


ConversationChange: TypeAlias = UserTextAdded | AssistantAdded | ResultsAdded | Compacted | Cleared

FreshId: TypeAlias = Callable[[str, Collection[str]], str]
"""``Conversation.fresh_id``."""


class Conversation:
    """The messages between a user, a model and its tools.

    ``journal`` is called with every change after it took effect; replaying the changes gives the
    same history. ``id_prefix`` begins every tool use id, so that the ids of several conversations
    of a session differ even where a service counts from 1.
    """

    def __init__(
        self,
        journal: Callable[[ConversationChange], None] | None = None,
        *,
        id_prefix: str = "",
    ) -> None:
        self._id_prefix = id_prefix
        self._messages: list[Message] = []
        self._ids: set[str] = set()
        self._journal = journal

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(self._messages)

    @property
    def pending(self) -> tuple[ToolUse, ...]:
        """The tool uses of the last message, which still need their results."""
        last = self._messages[-1] if self._messages else None
        return last.tool_uses if isinstance(last, AssistantMessage) else ()

    @property
    def awaits_model(self) -> bool:
        """Whether a request can be sent: the last word is the user's."""
        return bool(self._messages) and isinstance(self._messages[-1], UserMessage)

    def fresh_id(self, tool_use_id: str, before: Collection[str] = ()) -> str:
        """The id that ``add_assistant`` gives a tool use; ``before`` are those it gives to others
        of the same message. The service refuses an id that occurs twice; some gateways count from
        1 in every message.
        """
        own_id = f"{self._id_prefix}{tool_use_id}"
        name, count = own_id, 1
        while name in self._ids or name in before:
            count += 1
            name = f"{own_id}-{count}"
        return name

    def __len__(self) -> int:
        return len(self._messages)

    def add_user_text(self, *parts: UserPart, inputs: Sequence[str] = ()) -> None:
        """Append what the user says; merged into the last message when that is the user's.
        ``inputs`` are the uuids of the queued inputs among it.

        Raises:
            ConversationError: tool uses wait for their results.
        """
        self._require_no_pending()
        kept = _non_empty(parts)
        if kept:
            self._append_user(_user_blocks(kept))
            self._record(UserTextAdded(kept, tuple(inputs)))

    def add_assistant(self, blocks: Iterable[AssistantBlock]) -> AssistantMessage | None:
        """Append the model's message in the form in which it may be sent back.

        Empty text, unsigned thinking and thinking at the end are dropped and a repeated tool use
        id gets a new one. Returns what was stored; None when nothing is left.

        Raises:
            ConversationError: the last word is not the user's.
        """
        if not self.awaits_model:
            raise ConversationError("the model cannot speak twice in a row")
        kept = self._with_fresh_ids(_sendable(blocks))
        if not kept:
            return None
        message = AssistantMessage(kept)
        self._messages.append(message)
        self._ids.update(use.id for use in message.tool_uses)
        self._record(AssistantAdded(kept))
        return message

    def add_results(
        self,
        results: Sequence[ToolUseResult],
        parts: Sequence[UserPart] = (),
        inputs: Sequence[str] = (),
    ) -> None:
        """Answer the pending tool uses, in call order; ``parts`` follow in the same message.
        ``inputs`` are the uuids of the queued inputs among them.

        Raises:
            ConversationError: the results are not exactly those that are pending, in order.
        """
        wanted = [use.id for use in self.pending]
        given = [result.tool_use_id for result in results]
        if not wanted or given != wanted:
            raise ConversationError(f"results {given} do not answer the tool uses {wanted}")
        kept = _non_empty(parts)
        self._messages.append(UserMessage((*results, *_user_blocks(kept))))
        self._record(ResultsAdded(tuple(results), kept, tuple(inputs)))

    def close_pending(self, content: str, outcome: Outcome = Outcome.SKIPPED) -> int:
        """Answer every pending tool use with ``content``; returns how many there were."""
        pending = self.pending
        if pending:
            self.add_results([ToolUseResult(use.id, use.name, outcome, content) for use in pending])
        return len(pending)

    def compact(self, *texts: str) -> None:
        """Replace the whole history by ``texts`` of the user.

        Raises:
            ConversationError: there is no text.
        """
        kept = tuple(text for text in texts if text.strip())
        if not kept:
            raise ConversationError("a compaction needs a summary")
        self._reset()
        self._append_user(_user_blocks(kept))
        self._record(Compacted(kept))

    def clear(self) -> None:
        self._reset()
        self._record(Cleared())

    def replay(self, changes: Iterable[ConversationChange]) -> None:
        """Apply recorded changes without recording them again.

        Raises:
            ConversationError: a change does not fit the history before it.
        """
        journal, self._journal = self._journal, None
        try:
            for change in changes:
                self.apply(change)
        finally:
            self._journal = journal

    def apply(self, change: ConversationChange) -> None:
        """Do what the operation of this change does, and record it."""
        match change:
            case UserTextAdded(parts, inputs):
                self.add_user_text(*parts, inputs=inputs)
            case AssistantAdded(blocks):
                self.add_assistant(blocks)
            case ResultsAdded(results, parts, inputs):
                self.add_results(results, parts, inputs)
            case Compacted(texts):
                self.compact(*texts)
            case Cleared():
                self.clear()
            case _:
                assert_never(change)

    def _append_user(self, blocks: tuple[TextBlock | ImageBlock, ...]) -> None:
        last = self._messages[-1] if self._messages else None
        if isinstance(last, UserMessage):
            self._messages[-1] = UserMessage((*last.blocks, *blocks))
        else:
            self._messages.append(UserMessage(blocks))

    def _with_fresh_ids(self, blocks: Iterable[AssistantBlock]) -> tuple[AssistantBlock, ...]:
        given: set[str] = set()
        result: list[AssistantBlock] = []
        for block in blocks:
            if isinstance(block, ToolUse):
                block = replace(block, id=self.fresh_id(block.id, given))
                given.add(block.id)
            result.append(block)
        return tuple(result)

    def _require_no_pending(self) -> None:
        if self.pending:
            raise ConversationError("tool uses wait for their results")

    def _reset(self) -> None:
        self._messages.clear()
        self._ids.clear()

    def _record(self, change: ConversationChange) -> None:
        if self._journal is not None:
            self._journal(change)


def _non_empty(parts: Iterable[UserPart]) -> tuple[UserPart, ...]:
    return tuple(part for part in parts if isinstance(part, ImageBlock) or part.strip())


def _user_blocks(parts: Iterable[UserPart]) -> tuple[TextBlock | ImageBlock, ...]:
    return tuple(TextBlock(part) if isinstance(part, str) else part for part in parts)


def _sendable(blocks: Iterable[AssistantBlock]) -> list[AssistantBlock]:
    kept: list[AssistantBlock] = []
    for block in blocks:
        match block:
            case TextBlock(text):
                keep = bool(text.strip())
            case ThinkingBlock(_, signature):
                keep = bool(signature)
            case RedactedThinkingBlock() | ToolUse():
                keep = True
            case _:
                assert_never(block)
        if keep:
            kept.append(block)
    while kept and isinstance(kept[-1], ThinkingBlock | RedactedThinkingBlock):
        kept.pop()
    return kept
