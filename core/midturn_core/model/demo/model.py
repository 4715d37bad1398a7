"""``DemoModel``: plays the steps of a plan; the history alone decides which is next."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from midturn_core.compaction import HEADER, REQUEST
from midturn_core.model.client import (
    BlockFinished,
    MessageFinished,
    ModelEvent,
    ModelRequest,
    TextChunk,
    ToolUseStarting,
)
from midturn_core.model.demo.plan import Call, Places, Plan, Step, next_step, plan_for
from midturn_core.model.demo.site import DemoSite
from midturn_core.model.messages import (
    AssistantMessage,
    ImageBlock,
    Message,
    Outcome,
    StopReason,
    TextBlock,
    ToolUse,
    ToolUseResult,
    Usage,
    UserMessage,
)
from midturn_core.pictures import described
from midturn_core.queue.reminder import MID_TURN_INJECTION_KEY

DEFAULT_RATE = 40.0
"""Words per second."""
CHARS_PER_TOKEN = 4
SUGGESTED_FILES = ("README.md", "pyproject.toml", "Makefile", "package.json", "Cargo.toml")

_REMINDER = re.compile(r'<(system-reminder-[0-9A-Za-z]+) key="([a-z-]+)">\n(.*)\n</\1>', re.DOTALL)
_PICTURE = re.compile(r"\[Picture #\d+ [^\[\]]*\]")
"""How the terminal writes a picture into the text."""
_STOP_WORDS = re.compile(r"(?i)\b(stop|instead|forget|not that|cancel|never mind)\b")


@dataclass(slots=True)
class _State:
    """What is left to do after a prefix of the history."""

    steps: list[Step] = field(default_factory=list[Step])
    heard: list[str] = field(default_factory=list[str])
    """What was typed while the demo worked and is not yet answered."""
    pictures: list[ImageBlock] = field(default_factory=list[ImageBlock])
    """What was given to look at and is not yet answered."""
    results: tuple[ToolUseResult, ...] = ()
    rate: float = DEFAULT_RATE
    working: bool = False


class DemoModel:
    """A scripted model client. ``rate`` is words per second; ``rate N`` in a prompt changes it."""

    label = "DEMO"

    def __init__(self, workspace: Path, site: DemoSite, rate: float = DEFAULT_RATE) -> None:
        self._site = site
        self._rate = rate
        self._places = Places(site.url, _files_of(workspace))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        await self._site.start()
        state = self._follow(request.messages)
        if _wants_summary(request.messages):
            step = Step(_summary(request.messages))
        else:
            planned, _ = next_step(state.steps)
            step = planned or Step(_report(state.results))
        parts = (_heard(state.heard), _seen(state.pictures), step.say)
        words = "\n\n".join(part for part in parts if part)
        async for chunk in _paced(words, state.rate):
            yield chunk
        yield BlockFinished(TextBlock(words))
        uses = [
            ToolUse(f"demo-{len(request.messages)}-{n}", call.tool, call.input)
            for n, call in enumerate(step.calls)
        ]
        for use in uses:
            yield ToolUseStarting(use.id, use.name)
            yield BlockFinished(use)
        stop = StopReason.TOOL_USE if uses else StopReason.END_TURN
        yield MessageFinished(stop, _usage(request, words, step.calls))

    async def close(self) -> None:
        await self._site.close()

    def _follow(self, messages: Sequence[Message]) -> _State:
        """Replay the history to find out what is left of which plan."""
        state = _State(rate=self._rate)
        for message in messages:
            if isinstance(message, AssistantMessage):
                _, state.steps = next_step(state.steps)
                state.heard, state.pictures = [], []
                state.results = ()
                state.working = bool(message.tool_uses)
            else:
                self._listen(state, message)
        return state

    def _listen(self, state: _State, message: UserMessage) -> None:
        state.results = tuple(b for b in message.blocks if isinstance(b, ToolUseResult))
        for block in message.blocks:
            if isinstance(block, TextBlock):
                self._hear(state, block.text)
            elif isinstance(block, ImageBlock):
                state.pictures.append(block)
        state.working = False

    def _hear(self, state: _State, text: str) -> None:
        if text.startswith(HEADER) or REQUEST in text:
            return
        reminder = _REMINDER.fullmatch(text)
        if reminder and reminder[2] != MID_TURN_INJECTION_KEY:
            if "interrupted" in reminder[3]:
                state.steps = []
            return
        steering = reminder is not None
        words = reminder[3] if reminder else text
        wish = _PICTURE.sub("", words).strip()
        plan = plan_for(wish, self._places) if wish else Plan()
        if plan.rate is not None:
            state.rate = plan.rate
        if not steering and not state.steps:
            state.steps = list(plan.steps)
            return
        state.heard.append(words)
        if _STOP_WORDS.search(words):
            state.steps = []
        if plan.understood:
            state.steps += plan.steps


def _wants_summary(messages: Sequence[Message]) -> bool:
    last = messages[-1].blocks[-1] if messages and messages[-1].blocks else None
    return isinstance(last, TextBlock) and REQUEST in last.text


def _summary(messages: Sequence[Message]) -> str:
    """What was asked for, in the user's words: all that a script can tell."""
    texts = [
        block.text
        for message in messages
        if isinstance(message, UserMessage)
        for block in message.blocks
        if isinstance(block, TextBlock)
        and REQUEST not in block.text
        and not block.text.startswith("<system-reminder")
    ]
    asked = "\n".join(f"- {_first_line(text.removeprefix(HEADER))}" for text in texts)
    return f"The demo was asked for:\n\n{asked}"


def _heard(texts: Sequence[str]) -> str:
    quoted = [f"> {line}" for text in texts for line in text.split("\n")]
    return "You wrote while I was at work:\n\n" + "\n".join(quoted) if quoted else ""


def _seen(pictures: Sequence[ImageBlock]) -> str:
    lines = [f"- `{picture.name.replace('`', ' ')}` ({described(picture)})" for picture in pictures]
    return "\n".join(["I got, and cannot look at:", "", *lines]) if lines else ""


def _report(results: Sequence[ToolUseResult]) -> str:
    """What came of the last step, for the message that ends a turn."""
    if not results:
        return "Done."
    good = sum(result.outcome is Outcome.SUCCEEDED for result in results)
    lines = [f"{good} of {len(results)} call(s) succeeded:", ""]
    for result in results:
        mark = "done" if result.outcome is Outcome.SUCCEEDED else result.outcome.value
        lines.append(f"- **{result.name}** ({mark}): `{_first_line(result.content)}`")
    return "\n".join(lines)


def _first_line(content: str) -> str:
    lines = [line.strip() for line in content.split("\n") if line.strip()]
    first = lines[0].replace("`", "'")[:80] if lines else "nothing"
    return f"{first} … {len(lines)} lines" if len(lines) > 1 else first


async def _paced(text: str, rate: float) -> AsyncGenerator[ModelEvent, None]:
    """The text word by word; a fast rate sends several words at once."""
    words = re.findall(r"\S+\s*|\s+", text)
    at_once = max(1, round(rate / 50))
    for start in range(0, len(words), at_once):
        yield TextChunk("".join(words[start : start + at_once]))
        await asyncio.sleep(at_once / rate)


def _usage(request: ModelRequest, words: str, calls: Sequence[Call]) -> Usage:
    """An estimate by length, so that the figures on screen move as with a real model."""
    sent = len(request.system) + sum(len(str(message)) for message in request.messages)
    said = len(words) + sum(len(str(call.input)) for call in calls)
    return Usage(input_tokens=sent // CHARS_PER_TOKEN, output_tokens=said // CHARS_PER_TOKEN)


def _files_of(workspace: Path) -> tuple[str, ...]:
    """A few files of the folder that are worth reading in a tour."""
    known = [name for name in SUGGESTED_FILES if (workspace / name).is_file()]
    try:
        entries = sorted(workspace.iterdir())
    except OSError:
        entries = []
    others = [
        entry.name
        for entry in entries
        if entry.is_file() and not entry.name.startswith(".") and entry.name not in known
    ]
    return tuple([*known, *others][:3])
