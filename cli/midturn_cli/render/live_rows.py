"""The live region: its parts as rows, and how they share the height."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from rich.text import Text

from midturn_cli.ask_keyboard import AskKeyboard
from midturn_cli.render.block_rows import Look, wrap_hard_lines
from midturn_cli.render.blocks import LiveCall
from midturn_cli.render.call_rows import detail_rows, live_call_row, live_title_row, spinner
from midturn_cli.render.cells import cell_width, cut
from midturn_cli.render.clean import beginning, one_line
from midturn_cli.render.diff_rows import fitting_diff_rows
from midturn_cli.render.early_calls import EarlyCall
from midturn_cli.render.open_message import Activity
from midturn_cli.render.theme import Theme
from midturn_cli.render.words import Waiting, duration, elapsed, queue_notes, waits_until
from midturn_cli.ui_state import ShellLine, UiState
from midturn_core.model.messages import DiffDetail
from midturn_core.permission.ask import Ask

MAX_TAIL_ROWS = 10
MAX_TOOL_ROWS = 8
MAX_QUEUE_ROWS = 3
MAX_RULE_ROWS = 5
MAX_NESTED_ROWS = 3
ASK_RULE = "│ "
LONGEST_BEGINNING = 2_000
"""Letters of a waiting text that each paint looks at; more than any screen is wide."""
QUIET_SECONDS = 3.0
"""An answer that has been still for so long may have stopped: from then on a row says it is not."""
EDITED_MARK = "▸ "
"""Before the row of the queue that is being edited."""
NESTED = "  └ "
"""Before the row of a call that a subagent runs."""

RowMaker: TypeAlias = Callable[[], Text]
"""Makes a row: of many that could be shown, only those for which there is room are made."""


@dataclass(frozen=True, slots=True)
class Heights:
    """How many rows each part gets."""

    tail: int
    tools: int
    queue: int
    ask: int
    status: int

    @property
    def rows(self) -> int:
        return self.tail + self.tools + self.queue + self.ask + self.status


def share_height(wanted: Heights, max_rows: int) -> Heights:
    """Status and question first, then a row for every part, then as much as there is."""
    left = max(max_rows, 0)
    status = min(wanted.status, left)
    left -= status
    ask = min(wanted.ask, left)
    left -= ask
    wishes = {"tools": wanted.tools, "queue": wanted.queue, "tail": wanted.tail}
    given = dict.fromkeys(wishes, 0)
    for name, wish in wishes.items():
        given[name] = min(wish, 1, left)
        left -= given[name]
    for name, wish in wishes.items():
        more = min(wish - given[name], left)
        given[name] += more
        left -= more
    return Heights(given["tail"], given["tools"], given["queue"], ask, status)


def tool_rows(
    state: UiState, theme: Theme, width: int, now: float, cancel_key: str = ""
) -> list[RowMaker]:
    """Running calls in start order, ``!`` lines, and what the model is doing.

    The call that the question below is about is shown there.
    """
    asked = state.asks[0].tool_use_id if state.asks else ""
    calls: list[RowMaker] = []
    for call in state.calls:
        if call.id != asked:
            calls.append(partial(live_call_row, call, theme, width, now))
            calls += _nested_rows(state.nested_calls(call.id), theme, width, now)
    title = state.coming_title if calls else None
    rows: list[RowMaker] = [partial(live_title_row, title, theme, width)] if title else []
    rows += calls
    rows += [partial(_early_row, call, theme, width, now) for call in state.early_calls]
    rows += [partial(_shell_row, line, theme, width, now) for line in state.shell_lines]
    if state.activity is not None:
        hint = f" · {cancel_key} interrupts" if cancel_key and state.busy else ""
        rows.append(partial(_activity_row, state.activity, theme, width, now, hint))
    elif state.text_at is not None and now - state.text_at >= QUIET_SECONDS:
        words = f"waiting for more of the answer {elapsed(now - state.text_at)}"
        rows.append(partial(_model_row, words, theme, now))
    return rows


def _shell_row(line: ShellLine, theme: Theme, width: int, now: float) -> Text:
    time = elapsed(now - line.started)
    command = cut(line.command, width - len(time) - 6)
    return Text.assemble((f"{spinner(now)} ! ", theme.accent), command, f" {time}")


def _early_row(call: EarlyCall, theme: Theme, width: int, now: float) -> Text:
    """A call of the message that is still being written (D24)."""
    if call.duration_ms is None:
        sign, how = spinner(now), f" · started early {elapsed(now - call.started)}"
    else:
        sign, how = "•", f" · ran early ({duration(call.duration_ms)})"
    label = cut(call.label, max(width - cell_width(how) - 2, 8))
    return Text.assemble((f"{sign} ", theme.accent), label, (how, theme.dim))


def _nested_rows(
    calls: tuple[LiveCall, ...], theme: Theme, width: int, now: float
) -> list[RowMaker]:
    """What a subagent runs at the same time, under the row of its call; the newest if many."""
    return [partial(_nested_row, call, theme, width, now) for call in calls[-MAX_NESTED_ROWS:]]


def _nested_row(call: LiveCall, theme: Theme, width: int, now: float) -> Text:
    row = live_call_row(call, theme, width - len(NESTED), now)
    return Text.assemble((NESTED, theme.panel), row)


def _activity_row(activity: Activity, theme: Theme, width: int, now: float, hint: str = "") -> Text:
    """What the model's side is doing; ``hint`` after it where nothing else stands and there is
    room.
    """
    time = elapsed(now - activity.since)
    words = {
        "waiting": f"waiting for the model {time}",
        "thinking": f"thinking {time}",
        "writing": f"writing a call of {cut(activity.text, 30)} {time}",
        "retrying": f"trying again in {max((activity.until or now) - now, 0):.0f}s",
        "compacting": f"compacting {time}",
    }[activity.kind]
    if activity.kind in ("thinking", "retrying") and activity.text.strip():
        newest = one_line(activity.text.strip().rpartition("\n")[2])
        words += f" · {cut(newest, max(width - cell_width(words) - 6, 0))}"
    elif cell_width(words + hint) + 3 <= width:
        words += hint
    return _model_row(words, theme, now)


def _model_row(words: str, theme: Theme, now: float) -> Text:
    return Text.assemble((f"{spinner(now)} ", theme.accent), (words, theme.dim))


def limited(rows: list[RowMaker], max_rows: int, theme: Theme) -> list[Text]:
    """The first rows; when some are missing the last row says how many."""
    if len(rows) <= max_rows:
        return [row() for row in rows]
    if max_rows <= 0:
        return []
    shown = max_rows - 1
    return [*(row() for row in rows[:shown]), _more(len(rows) - shown, theme)]


def queue_rows(state: UiState, theme: Theme, width: int, max_rows: int) -> list[Text]:
    """The newest waiting inputs in delivery order, each with its tier and when it goes; the one
    that is being edited is always among them, and marked.
    """
    count, edited = len(state.queue.items), state.queue.edited
    if max_rows <= 0 or not count:
        return []
    if max_rows == 1 and count > 1 and edited is None:
        return [_more(count, theme)]
    for size in range(min(MAX_QUEUE_ROWS, count), 1, -1):
        first = count - size if edited is None else min(count - size, edited)
        rows = _queue_window(state, theme, width, range(first, first + size))
        if len(rows) <= max_rows:
            return rows
    only = count - 1 if edited is None else edited
    rows = _queue_window(state, theme, width, range(only, only + 1))
    return rows if len(rows) <= max_rows else [_queue_row(state, only, theme, width)]


def _queue_window(state: UiState, theme: Theme, width: int, places: range) -> list[Text]:
    """These rows, and how many there are above and below."""
    below = len(state.queue.items) - places.stop
    return [
        *([_more(places.start, theme)] if places.start else []),
        *(_queue_row(state, place, theme, width) for place in places),
        *([_more(below, theme)] if below else []),
    ]


def _more(count: int, theme: Theme) -> Text:
    return Text(f"+{count} more", theme.dim)


def _queue_row(state: UiState, place: int, theme: Theme, width: int) -> Text:
    queue = state.queue
    item = queue.items[place]
    waiting = Waiting(
        state.busy,
        item.uuid in queue.barred,
        queue.settings,
        item.uuid in queue.behind_edited,
    )
    when = waits_until(item, state.calls, waiting)
    when = " · ".join((*queue_notes(item, queue.unstored, queue.store_fails), when))
    tag = f"{_mark(place, queue.edited)}{item.priority.name:<5} "
    room = max(width - len(tag) - cell_width(when) - 3, 8)
    text = cut(beginning(item.input_text, LONGEST_BEGINNING), room)
    return Text.assemble((tag, theme.accent), text, (f" · {when}", theme.dim))


def _mark(place: int, edited: int | None) -> str:
    if edited is None:
        return ""
    return EDITED_MARK if place == edited else " " * len(EDITED_MARK)


_UNARMED = {
    AskKeyboard.NOT_YET: "wait…",
    AskKeyboard.NEEDS_TAB: "Tab to answer",
    AskKeyboard.REASONING: "Enter says no with this reason · Esc goes back",
}


_TOO_LOW = "make the window higher to read it"
_TOO_SMALL = "make the window larger to read what they allow"


@dataclass(frozen=True, slots=True)
class AskView:
    """A question and what decides how it looks."""

    ask: Ask
    waiting: int
    """How many questions wait behind it."""
    keyboard: AskKeyboard


def ask_rows(view: AskView, look: Look, width: int, max_rows: int) -> list[Text]:
    """The question in at most ``max_rows`` rows: title and keys, and as much between as there is
    room for.
    """
    if max_rows <= 0:
        return []
    if max_rows == 1:
        return [Text(cut(f"? {_TOO_LOW}: {view.ask.title}", width), look.theme.ask)]
    keys = _key_rows(view, look, width, max_rows)
    title = _ask_title(view, look.theme, width)
    if max_rows <= len(keys):
        return [title, *keys[len(keys) - max_rows + 1 :]]
    room = max_rows - 1 - len(keys)
    reason = _first(_reason_rows(view.ask, look, width), room // 3, width)
    body = _ask_body(view.ask, look, width, room - len(reason))
    return [title, *body, *reason, *keys]


def _ask_title(view: AskView, theme: Theme, width: int) -> Text:
    ask = view.ask
    remarks = [f"{ask.index + 1} of {ask.count}"] if ask.count > 1 else []
    if view.waiting:
        remarks.append("1 more waits" if view.waiting == 1 else f"{view.waiting} more wait")
    suffix = f"  ({', '.join(remarks)})" if remarks else ""
    title = cut(ask.title, max(width - len(suffix) - 2, 10))
    return Text.assemble(("? ", theme.ask), (title, theme.ask), (suffix, theme.dim))


def _reason_rows(ask: Ask, look: Look, width: int) -> list[Text]:
    why = Text(f"why: {ask.reason}", look.theme.dim)
    return look.canvas.wrap(why, width) if ask.reason else []


def _first(rows: list[Text], count: int, width: int) -> list[Text]:
    """The first rows of a sentence; where more were, the last one says so."""
    if count <= 0 or len(rows) <= count:
        return rows[:count]
    last = rows[count - 1].copy()
    last.truncate(max(width - 2, 0))
    last.append(" …")
    return [*rows[: count - 1], last]


def _ask_body(ask: Ask, look: Look, width: int, room: int) -> list[Text]:
    """The whole command, path or address, then the change; a cut keeps both ends and counts."""
    inner = width - len(ASK_RULE)
    lines = wrap_hard_lines(ask.body.strip("\n"), inner) if ask.body.strip() else []
    body = [Text(line) for line in lines]
    room_for_detail = max(room - len(body), room // 2)
    if isinstance(ask.detail, DiffDetail):
        detail = fitting_diff_rows(ask.detail, look.theme, inner, room_for_detail)
    else:
        detail = detail_rows(ask.detail, look.theme, inner, max_rows=10_000)
    for_detail = min(len(detail), room_for_detail)
    shown = [
        *_both_ends(body, room - for_detail, look.theme),
        *_both_ends(detail, for_detail, look.theme),
    ]
    return [Text.assemble((ASK_RULE, look.theme.panel), row) for row in shown]


def _both_ends(rows: list[Text], room: int, theme: Theme) -> list[Text]:
    if len(rows) <= room:
        return rows
    if room <= 0:
        return []
    if room == 1:
        return [Text(f"… {len(rows)} rows, make the window higher to read them", theme.warning)]
    last = (room - 1) // 2 or 1
    first = room - 1 - last
    left_out = len(rows) - first - last
    mark = Text(f"… {left_out} rows not shown …", theme.warning)
    return [*rows[:first], mark, *rows[len(rows) - last :]]


def _key_rows(view: AskView, look: Look, width: int, max_rows: int) -> list[Text]:
    theme = look.theme
    if view.keyboard is not AskKeyboard.ARMED:
        return [Text(_UNARMED[view.keyboard], theme.dim)]
    if not shows_rule(view, look, width, max_rows):
        # What would be allowed from now on has to be read whole.
        hint = Text(cut(f"t, s: {_TOO_SMALL}", width), theme.dim)
        return [
            *([hint] if view.ask.session_rule else []),
            Text("y once · n no · r no, with a reason", "bold"),
        ]
    stored = " · a always" if view.ask.may_store else ""
    keys = Text(
        f"y once · t this turn · s this session{stored} · n no · r no, with a reason", "bold"
    )
    if keys.cell_len > width:
        keys = Text(f"y once · t turn · s session{stored} · n no · r no + why", "bold")
    return [*_rule_rows(view.ask, look, width), keys]


def _rule_rows(ask: Ask, look: Look, width: int) -> list[Text]:
    lasting = "t, s, a" if ask.may_store else "t, s"
    return look.canvas.wrap(Text(f"{lasting} allow {ask.session_rule}"), width)


def shows_rule(view: AskView, look: Look, width: int, max_rows: int) -> bool:
    """Whether ``ask_rows`` shows the whole rule of an answer that lasts, beside title and keys."""
    if view.keyboard is not AskKeyboard.ARMED or not view.ask.session_rule:
        return False
    return len(_rule_rows(view.ask, look, width)) <= min(MAX_RULE_ROWS, max_rows - 2)
