"""``midturn -p``: one turn, the answer on stdout, everything else on stderr or in JSON."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
import signal
import sys
from collections.abc import Callable
from typing import TypeAlias

from midturn_cli.commands.all_commands import all_commands
from midturn_cli.commands.registry import CommandRegistry, split_command
from midturn_cli.engine import Engine, FrontEnd
from midturn_cli.launch import Launch
from midturn_cli.options import UsageError
from midturn_cli.outside_queue import shared_store
from midturn_cli.render.cells import cut
from midturn_cli.render.clean import clean, one_line
from midturn_cli.session_status import cost_of
from midturn_cli.stream_json import event_to_json
from midturn_cli.ui_events import UiEvent
from midturn_core.errors import MidturnError, QueueStoreError
from midturn_core.events import (
    AskAnswered,
    Notice,
    NoticeLevel,
    RetryWaiting,
    SubagentEvent,
    TurnEnded,
    TurnEndReason,
)
from midturn_core.ids import new_id
from midturn_core.interrupt import CancelReason, InterruptCoordinator
from midturn_core.model.messages import AssistantMessage, JsonValue, Usage
from midturn_core.permission.ask import Ask, DenyingAskHandler
from midturn_core.queue.types import QueuedInput

EXIT_CODES = {TurnEndReason.DONE: 0, TurnEndReason.STEP_LIMIT: 1}
EXIT_FAILED = 1
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143
SHOWN_OF_A_CALL = 200
NOBODY = "nobody can be asked in print mode; allow it with --allow or --permission-mode"

Sink: TypeAlias = Callable[[UiEvent], None]


def run(launch: Launch) -> int:
    """Run one turn; returns the exit code.

    Raises:
        UsageError: the prompt is a slash command, which only an interactive session has.
        MidturnError: the session cannot be opened.
    """
    split = split_command(launch.prompt)
    if split is not None and CommandRegistry(all_commands()).find(split[0]) is not None:
        raise UsageError(f"/{split[0]} is a command of the interactive session, not a prompt")
    return asyncio.run(_PrintMode(launch).run())


class _PrintMode:
    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._terminated = False

    async def run(self) -> int:
        loop = asyncio.get_running_loop()

        def emit(event: UiEvent) -> None:
            with contextlib.suppress(RuntimeError):  # a worker that speaks after the end
                loop.call_soon_threadsafe(self._show, event)

        engine = Engine(self._launch, FrontEnd(emit, DenyingAskHandler(NOBODY)))
        interrupt = InterruptCoordinator(new_id("turn"))
        self._handle_signals(interrupt)
        resumed = engine.resumed.warnings if engine.resumed else ()
        given = (*self._launch.loaded.warnings, *engine.rule_warnings(), engine.log_warning)
        for warning in (*given, *resumed):
            if warning:
                _complain(f"warning: {warning}")
        prompt = QueuedInput(self._launch.prompt, engine.context_id)
        try:
            ended = await engine.agent.run_turn([prompt], interrupt)
            await asyncio.sleep(0)  # what was emitted last is shown before the result
        finally:
            left = await asyncio.to_thread(_left_in, engine)
            await engine.close()
        self._finish(engine, ended)
        if left:
            _complain(left)
        if ended.reason is TurnEndReason.INTERRUPTED:
            return EXIT_TERMINATED if self._terminated else EXIT_INTERRUPTED
        return EXIT_CODES.get(ended.reason, EXIT_FAILED)

    def _show(self, event: UiEvent) -> None:
        match event:
            case RetryWaiting(attempt, attempts, delay, reason):
                _complain(f"{reason} Waiting {delay:.0f} s (attempt {attempt} of {attempts}).")
            case AskAnswered(ask):
                _complain(denial(ask))
            case Notice(NoticeLevel.WARNING | NoticeLevel.ERROR, text):
                _complain(text)
            case SubagentEvent(
                context_id, _, Notice(NoticeLevel.WARNING | NoticeLevel.ERROR, text)
            ):
                _complain(f"{context_id.agent}: {text}")
            case _:
                pass
        if self._launch.output_format == "stream-json":
            data = event_to_json(event)
            if data is not None:
                _print_json(data)

    def _finish(self, engine: Engine, ended: TurnEnded) -> None:
        answer = last_answer(engine)
        error = " ".join(part for part in (ended.error, without_retry(ended.way_out)) if part)
        match self._launch.output_format:
            case "text":
                if answer and ended.reason is not TurnEndReason.FAILED:
                    _print(answer if answer.endswith("\n") else f"{answer}\n")
            case "json" | "stream-json":
                _print_json(result_json(engine, ended, answer, error))
        if ended.reason is not TurnEndReason.DONE:
            _complain(error or f"The turn ended early: {ended.reason.value}.")

    def _handle_signals(self, interrupt: InterruptCoordinator) -> None:
        loop = asyncio.get_running_loop()

        def terminate() -> None:
            self._terminated = True
            interrupt.interrupt(interrupt.turn_id, CancelReason.SHUTDOWN)

        # Windows has no signal handlers on its loop; Ctrl-C ends the program there.
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(
                signal.SIGINT, lambda: interrupt.interrupt(interrupt.turn_id) and None
            )
            loop.add_signal_handler(signal.SIGTERM, terminate)


def _left_in(engine: Engine) -> str:
    """That something waits in the session that was gone on with; a run without a prompt line
    delivers none of it.
    """
    if engine.resumed is None or engine.config.queue.backend == "memory":
        return ""
    try:
        with shared_store(engine.config.queue) as repository:
            waiting = repository.size(engine.context_id)
    except QueueStoreError:
        return ""
    demo = "demo " if engine.launch.demo else ""
    way = f"midturn {demo}-r {engine.session.id}"
    return f"{waiting} queued input(s) wait in this session: {way}" if waiting else ""


def denial(ask: Ask) -> str:
    """What a question was about that nobody could be asked, and how to allow it."""
    rule = f"--allow {shlex.quote(ask.session_rule)}" if ask.session_rule else "--permission-mode"
    what = cut(one_line(ask.body), SHOWN_OF_A_CALL)
    return f"not allowed: {ask.tool} {what}; nobody can be asked here, see {rule}"


def without_retry(way_out: str) -> str:
    """A way out in the words of a shell: there is no ``/retry`` once the command has ended."""
    return way_out.replace("/retry sends the step again", "Run it again").replace(
        "/retry", "run it again"
    )


def last_answer(engine: Engine) -> str:
    """The text of the newest message of the model; empty when it wrote none."""
    for message in reversed(engine.conversation.messages):
        if isinstance(message, AssistantMessage):
            return message.text
    return ""


def result_json(engine: Engine, ended: TurnEnded, answer: str, error: str) -> dict[str, JsonValue]:
    """The last (or only) JSON object of a run."""
    result: dict[str, JsonValue] = {
        "type": "result",
        "ok": ended.reason is TurnEndReason.DONE,
        "reason": ended.reason.value,
        "answer": answer,
        "error": error or None,
        "steps": ended.steps,
        "duration_ms": round(ended.duration_ms),
        "usage": usage_json(ended.usage),
        "session": engine.session.id,
        "model": engine.model_settings.name,
        "demo": engine.launch.demo,
    }
    cost = cost_of(engine)
    return result if cost is None else {**result, "cost": round(cost, 6)}


def usage_json(usage: Usage) -> dict[str, JsonValue]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
    }


def _print(text: str) -> None:
    """The answer as it is for a pipe or file; cleaned where a terminal would obey it."""
    shown = clean(text, expand_tabs=False) if sys.stdout.isatty() else text
    _write(shown.encode("utf-8", errors="replace"))


def _print_json(data: dict[str, JsonValue]) -> None:
    _write((json.dumps(data) + "\n").encode())


def _write(data: bytes) -> None:
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # the reader has seen enough, see ``main``
    except OSError as error:
        raise MidturnError(f"the answer cannot be written: {error.strerror}") from error


def _complain(text: str) -> None:
    sys.stderr.write(f"midturn: {clean(text)}\n")
    sys.stderr.flush()
