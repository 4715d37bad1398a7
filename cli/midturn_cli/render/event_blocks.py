"""Blocks that follow from one event alone, with its foreign text cleaned."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias, assert_never

from midturn_cli.render.blocks import (
    Block,
    CallInfo,
    EchoBlock,
    ExpandedBlock,
    GreetingBlock,
    NoticeBlock,
    OutputBlock,
    PromptBlock,
    RemarkBlock,
    TableBlock,
    TurnEndBlock,
)
from midturn_cli.render.clean import clean, one_line, reveal, reveal_line, shorten_blank_lines
from midturn_cli.render.open_batches import clean_detail, clean_diff
from midturn_cli.ui_events import (
    CommandOutput,
    CommandTable,
    Greeting,
    PromptReplayed,
    ResultExpanded,
    UserEcho,
)
from midturn_core.events import CompactionFinished, MessageEnded, Notice, NoticeLevel, TurnEnded
from midturn_core.model.messages import DiffDetail, StopReason, TranscriptDetail
from midturn_core.permission.ask import Ask

_Said: TypeAlias = (
    Notice | UserEcho | CommandOutput | CommandTable | PromptReplayed | ResultExpanded
)


def readable(text: str) -> str:
    """Text of several lines, cleaned, without long runs of empty lines."""
    return shorten_blank_lines(clean(text)).strip("\n")


def said_block(event: _Said) -> Block:
    """What an event has to say, whatever else is on the screen."""
    match event:
        case Notice():
            return NoticeBlock(event.level, readable(event.text))
        case UserEcho():
            return EchoBlock(readable(event.text))
        case CommandOutput():
            return OutputBlock(readable(event.text), event.markdown, event.error)
        case CommandTable():
            return table_block(event)
        case PromptReplayed():
            return PromptBlock(readable(event.text))
        case ResultExpanded():
            return expanded_block(event)
        case _:
            assert_never(event)


def cut_remark(event: MessageEnded, *, shown: bool) -> list[Block]:
    """The mark on an answer that did not come to its own end (D37).

    One that was cut before anything of it was ``shown`` needs none.
    """
    if event.stop_reason is StopReason.MAX_TOKENS:
        return [RemarkBlock("↑ cut: the answer reached the output limit")]
    if event.stop_reason is StopReason.CONTEXT_FULL:
        return [RemarkBlock("↑ cut: the context is full; /compact makes room")]
    return [RemarkBlock("↑ cut here")] if event.cut and shown else []


def compaction_block(event: CompactionFinished) -> Block:
    if event.error:
        error = one_line(event.error, line_end=" ")
        return NoticeBlock(NoticeLevel.ERROR, f"Compaction failed: {error}")
    return RemarkBlock(f"Compacted: {event.messages_before} messages → {event.messages_after}")


def cleaned_ask(ask: Ask) -> Ask:
    """The question with everything revealed: nothing may hide in what is approved."""
    return replace(
        ask,
        tool=one_line(ask.tool),
        title=reveal_line(ask.title),
        body=reveal(ask.body),
        reason=reveal_line(ask.reason),
        session_rule=reveal_line(ask.session_rule),
        detail=None if ask.detail is None else clean_detail(ask.detail, reveal),
    )


def expanded_block(event: ResultExpanded) -> ExpandedBlock:
    result, text = event.result, event.result.content
    if isinstance(result.detail, TranscriptDetail):
        # The answer of a subagent that succeeded is the end of what it wrote.
        written = "\n".join(result.detail.lines)
        text = f"{written}\n\n{text}" if result.is_error else written
    diff = None if not isinstance(result.detail, DiffDetail) else clean_diff(result.detail)
    return ExpandedBlock(
        CallInfo(one_line(result.name), reveal_line(event.title), 0, 1),
        result.outcome,
        result.duration_ms,
        clean(text).strip("\n"),
        diff,
        event.number,
    )


def table_block(event: CommandTable) -> TableBlock:
    return TableBlock(
        one_line(event.title),
        tuple(one_line(cell) for cell in event.header),
        tuple(tuple(one_line(cell) for cell in row) for row in event.rows),
        one_line(event.footer),
    )


def turn_end_block(event: TurnEnded) -> TurnEndBlock:
    return TurnEndBlock(
        event.reason,
        event.steps,
        event.duration_ms,
        one_line(event.error, line_end=" "),
        one_line(event.way_out, line_end=" "),
    )


def greeting_block(event: Greeting) -> GreetingBlock:
    hints = tuple(one_line(hint) for hint in event.hints)
    folder = reveal_line(event.folder)
    return GreetingBlock(one_line(event.version), folder, event.status, hints)
