"""The one table of configuration keys: name, what a value may be, and what it does.

Loading, environment names, ``midturn config``, the documentation and the example file all follow
this table. It holds no defaults: those are in ``config.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from midturn_core.config import MAX_SUBAGENTS
from midturn_core.config_values import (
    Choice,
    Encodings,
    FilePath,
    Hosts,
    KeyNames,
    Kind,
    Prices,
    ProgramWords,
    RedisAddress,
    Rules,
    Seconds,
    Switch,
    Text,
    WebAddress,
    Whole,
)
from midturn_core.dispatch.config import MAX_CALLS_PER_BATCH, MAX_CONCURRENCY_LIMIT

ENVIRONMENT_PREFIX = "MIDTURN_"


@dataclass(frozen=True, slots=True)
class ConfigKey:
    section: str
    name: str
    kind: Kind
    help: str
    other_variable: str = ""
    """A variable besides ``MIDTURN_<SECTION>_<KEY>``, which wins over it."""

    @property
    def id(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        return f"{ENVIRONMENT_PREFIX}{self.section}_{self.name}".upper()

    @property
    def adds_up(self) -> bool:
        """Whether the values of all layers count, not only the topmost."""
        return isinstance(self.kind, Rules)


_EFFORTS = ("", "low", "medium", "high", "xhigh", "max")
_MODES = ("default", "accept-edits", "plan", "yolo")

CONFIG_KEYS: tuple[ConfigKey, ...] = (
    ConfigKey("model", "name", Text("a model name"), "The model to talk to."),
    ConfigKey(
        "model",
        "base_url",
        WebAddress(),
        "Address of a service that speaks the Messages API; empty is the service's own.",
        "ANTHROPIC_BASE_URL",
    ),
    ConfigKey("model", "max_tokens", Whole(1), "Longest answer of one step, in tokens."),
    ConfigKey(
        "model", "effort", Choice(_EFFORTS), "How hard the model thinks; empty leaves it to it."
    ),
    ConfigKey(
        "model",
        "prices",
        Prices(),
        "Money per million tokens for each model name; /cost shows money only with it.",
    ),
    ConfigKey("parallel", "enabled", Switch(), "Run independent safe tool uses together."),
    ConfigKey(
        "parallel",
        "max_concurrency",
        Whole(1, MAX_CONCURRENCY_LIMIT),
        "Tools that run at once, altogether.",
    ),
    ConfigKey(
        "parallel",
        "per_batch_max",
        Whole(1, MAX_CONCURRENCY_LIMIT),
        "Slots that one batch may hold at once, at most max_concurrency; unset is the same as it.",
    ),
    ConfigKey(
        "parallel",
        "per_context_max",
        Whole(1, MAX_CONCURRENCY_LIMIT),
        "Slots that one agent may hold at once, at most max_concurrency; unset is the same as it.",
    ),
    ConfigKey(
        "parallel",
        "max_calls",
        Whole(1, MAX_CALLS_PER_BATCH),
        "Calls of one response that are run; the others get an error that says so.",
    ),
    ConfigKey(
        "parallel",
        "mixed",
        Choice(("sequential", "segments")),
        "How a response runs that also changes something: all one after another, or neighbouring "
        "safe calls together with each other call as a barrier.",
    ),
    ConfigKey(
        "parallel",
        "start",
        Choice(("complete", "streaming")),
        'When safe calls start: when the response is complete, or while it streams; "streaming" '
        'needs mixed = "segments".',
    ),
    ConfigKey(
        "parallel", "fail_fast", Switch(), "Start no further call of a batch after an error."
    ),
    ConfigKey("parallel", "retry_failed", Switch(), "Try a failed safe call once more."),
    ConfigKey("parallel", "timeout_per_call", Seconds(), "Time limit of one safe call."),
    ConfigKey("parallel", "timeout_per_batch", Seconds(), "Time limit of a batch of safe calls."),
    ConfigKey(
        "subagents",
        "parallel",
        Switch(),
        "With parallel execution on: let the calls of a subagent run together, and subagents that "
        "only read.",
    ),
    ConfigKey("subagents", "max", Whole(1, MAX_SUBAGENTS), "Subagents that run at once."),
    ConfigKey(
        "queue", "enter", Choice(("now", "next", "later")), "What Enter means while a turn runs."
    ),
    ConfigKey(
        "queue",
        "next_delivery",
        Choice(("step", "turn_end")),
        "When a NEXT input is delivered: at the next step, or when the turn ends.",
    ),
    ConfigKey(
        "queue",
        "later",
        Choice(("idle", "manual")),
        "Whether LATER inputs start by themselves when idle, or only on /later run.",
    ),
    ConfigKey(
        "queue",
        "now_hastens",
        Switch(),
        "Whether a NOW input cuts the answer short; otherwise it only goes first.",
    ),
    ConfigKey(
        "queue",
        "one_per_turn",
        Switch(),
        "Whether each prompt that waits for a turn gets its own; otherwise neighbours go together.",
    ),
    ConfigKey("queue", "cap", Whole(0), "Most inputs waiting at once; 0 is no limit."),
    ConfigKey(
        "queue",
        "ttl",
        Whole(0),
        "Seconds after which a waiting input expires and is set aside; 0 is never.",
    ),
    ConfigKey(
        "queue",
        "backend",
        Choice(("sqlite", "redis", "memory")),
        "Where inputs wait: in a file, on a server, or in memory only, lost with the program.",
    ),
    ConfigKey("queue", "path", FilePath(), "The SQLite file; empty is in the state folder."),
    ConfigKey(
        "queue", "url", RedisAddress(), "The server of the redis backend, with user and password."
    ),
    ConfigKey(
        "queue",
        "remote_commands",
        Switch(),
        "Whether midturn send may give slash commands and ! lines to a session.",
    ),
    ConfigKey("permissions", "mode", Choice(_MODES), "The permission mode of a new session."),
    ConfigKey("permissions", "allow", Rules(), "Rules for what is done without asking."),
    ConfigKey("permissions", "ask", Rules(), "Rules for what is always asked."),
    ConfigKey("permissions", "deny", Rules(), "Rules for what is never done; they win."),
    ConfigKey(
        "files",
        "encodings",
        Encodings(),
        "Encodings to try, in this order, for a text file that is not UTF-8.",
    ),
    ConfigKey(
        "web",
        "allow_hosts",
        Hosts(),
        "Hosts that WebFetch may reach although they have a private address.",
    ),
    ConfigKey("web", "ssrf_guard", Switch(), "Refuse private and local addresses."),
    ConfigKey(
        "web", "timeout", Seconds(), "Time limit of one fetch, redirects and waiting included."
    ),
    ConfigKey("web", "per_host", Whole(1, 10), "Pages of one host that are fetched at once."),
    ConfigKey(
        "web",
        "proxy",
        Choice(("environment", "none")),
        "Whether WebFetch goes through the proxies that the environment names.",
    ),
    ConfigKey("ui", "theme", Choice(("auto", "dark", "light")), "Colours."),
    ConfigKey("ui", "keys", Choice(("emacs", "vi")), "Editing keys of the input line."),
    ConfigKey("ui", "plain", Switch(), "Plain lines: no live region, no colours."),
    ConfigKey("ui", "title", Switch(), "Show the state and the folder in the window's title."),
    ConfigKey(
        "ui",
        "notify",
        Choice(("off", "bell", "osc9", "osc777", "command")),
        "How to tell that a turn has ended or a question waits while the window has no focus.",
    ),
    ConfigKey(
        "ui",
        "notify_command",
        ProgramWords(),
        'The program of notify = "command"; what is told becomes its last argument.',
    ),
    ConfigKey("keys", "submit", KeyNames(), "Send the draft; while a turn runs it is queued."),
    ConfigKey("keys", "newline", KeyNames(), "Begin a new line in the draft."),
    ConfigKey(
        "keys",
        "cycle",
        KeyNames(),
        "While a turn runs: NEXT, NOW or LATER for the draft; in the queue editor: for the row. "
        "When idle: complete. A question comes first: it gets the keyboard.",
    ),
    ConfigKey(
        "keys",
        "mode",
        KeyNames(),
        "The next permission mode: default, accept-edits, plan. In the menu: the entry before.",
    ),
    ConfigKey(
        "keys",
        "cancel",
        KeyNames(),
        "Close the menu; else leave the queue editor; else stop the call that a NOW waits for; "
        "else interrupt the turn.",
    ),
    ConfigKey("keys", "leave", KeyNames(), "Leave Midturn, when idle and the draft is empty."),
    ConfigKey(
        "keys", "stash", KeyNames(), "Put the draft aside; again: bring it back, or swap the two."
    ),
    ConfigKey("keys", "undo", KeyNames(), "Take back the last change of the draft."),
    ConfigKey("keys", "redo", KeyNames(), "Make the change again that was taken back."),
    ConfigKey("keys", "search", KeyNames(), "Search in earlier lines; again: the one before."),
    ConfigKey("keys", "expand", KeyNames(), "Show the newest tool result whole, as /expand does."),
    ConfigKey("keys", "editor", KeyNames(), "Write the draft in your editor, when idle."),
    ConfigKey("keys", "picture", KeyNames(), "Attach the picture on the clipboard to the draft."),
    ConfigKey("keys", "repaint", KeyNames(), "Paint the screen anew."),
    ConfigKey("keys", "suspend", KeyNames(), "Put Midturn in the background of the shell."),
    ConfigKey("keys", "remove_row", KeyNames(), "In the queue editor: remove the row, never sent."),
    ConfigKey(
        "keys", "row_up", KeyNames(), "In the queue editor: the row goes sooner in its tier."
    ),
    ConfigKey(
        "keys", "row_down", KeyNames(), "In the queue editor: the row goes later in its tier."
    ),
    ConfigKey(
        "log", "level", Choice(("debug", "info", "warning", "error")), "What goes to the log."
    ),
    ConfigKey("log", "file", FilePath(), "The log file; empty is midturn.log in the state folder."),
)

KEYS_BY_ID: Mapping[str, ConfigKey] = {key.id: key for key in CONFIG_KEYS}
SECTIONS: tuple[str, ...] = tuple(dict.fromkeys(key.section for key in CONFIG_KEYS))
