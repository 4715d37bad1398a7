"""The configuration as frozen values; defaults are the built-in layer.

Reading files, environment and flags into these is ``config_loader.py``.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import Literal

from midturn_core.config_key_names import check_key_map
from midturn_core.dispatch.config import ToolConcurrencyConfig

PermissionModeName = Literal["default", "accept-edits", "plan", "yolo"]


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """Money per million tokens, in the user's currency."""

    input: float
    output: float
    cache_read: float = 0.0
    cache_write: float = 0.0


@dataclass(frozen=True, slots=True)
class ModelConfig:
    name: str = "claude-opus-5-5"
    base_url: str = ""
    """Empty: the service's own address."""
    max_tokens: int = 16_000
    effort: Literal["", "low", "medium", "high", "xhigh", "max"] = ""
    prices: dict[str, ModelPrice] = field(default_factory=dict[str, ModelPrice])
    api_key: str = field(default="", repr=False)
    """Environment only: ANTHROPIC_API_KEY."""
    auth_token: str = field(default="", repr=False)
    """Environment only: ANTHROPIC_AUTH_TOKEN."""


MAX_SUBAGENTS = 10


@dataclass(frozen=True, slots=True)
class SubagentsConfig:
    """
    Raises:
        ValueError: ``max`` is out of its range.
    """

    parallel: bool = False
    """Whether subagents take part in parallel execution (S1.11, D35)."""
    max: int = 3
    """How many run at once."""

    def __post_init__(self) -> None:
        if not 1 <= self.max <= MAX_SUBAGENTS:
            raise ValueError(f"max must be 1..{MAX_SUBAGENTS}, not {self.max}")


@dataclass(frozen=True, slots=True)
class QueueConfig:
    """
    Raises:
        ValueError: the backend is a server, and there is no address.
    """

    enter: Literal["now", "next", "later"] = "next"
    """What Enter means while a turn runs."""
    next_delivery: Literal["step", "turn_end"] = "step"
    later: Literal["idle", "manual"] = "idle"
    now_hastens: bool = True
    one_per_turn: bool = False
    """Each prompt that starts a turn is a turn of its own; otherwise neighbours go together (D4)."""
    cap: int = 1000
    """Waiting inputs per context; 0 means no cap (D11)."""
    ttl: int = 0
    """Seconds after which a waiting input expires; 0 is never (D11)."""
    backend: Literal["sqlite", "redis", "memory"] = "sqlite"
    path: str = ""
    """The file of SQLite; empty is queue.db in the state folder."""
    url: str = field(default="", repr=False)
    """The server of Redis; it may hold a password."""
    remote_commands: bool = False
    """Whether slash commands and ! lines may come from outside the session."""

    def __post_init__(self) -> None:
        if self.backend == "redis" and not self.url:
            raise ValueError('backend is "redis", which needs the address of the server in url')


@dataclass(frozen=True, slots=True)
class PermissionsConfig:
    mode: PermissionModeName = "default"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FilesConfig:
    encodings: tuple[str, ...] = ()
    """Tried in this order for a text file that is not UTF-8; one that fits the whole file counts."""


@dataclass(frozen=True, slots=True)
class WebConfig:
    allow_hosts: tuple[str, ...] = ()
    """Hosts (``name`` or ``name:port``) that may have private addresses (D45)."""
    ssrf_guard: bool = True
    timeout: float = 25.0
    """Seconds for one fetch, redirects and waiting included; below the limit of a call, so that
    its own sentence is what comes back."""
    per_host: int = 4
    """Pages of one host that are fetched at once."""
    proxy: Literal["environment", "none"] = "environment"
    """Whether HTTP_PROXY and its like are heeded."""


@dataclass(frozen=True, slots=True)
class UiConfig:
    """
    Raises:
        ValueError: a command is to notify, and there is none.
    """

    theme: Literal["auto", "dark", "light"] = "auto"
    keys: Literal["emacs", "vi"] = "emacs"
    plain: bool = False
    title: bool = False
    notify: Literal["off", "bell", "osc9", "osc777", "command"] = "off"
    notify_command: tuple[str, ...] = ()
    """A program and its arguments; what is told becomes the last one."""

    def __post_init__(self) -> None:
        if self.notify == "command" and not self.notify_command:
            raise ValueError('notify is "command", which needs a program in notify_command')


@dataclass(frozen=True, slots=True)
class KeysConfig:
    """The keys of each action, as ``config_key_names.read_key`` writes them.

    Raises:
        ValueError: two actions share a key, or nothing would submit the draft.
    """

    submit: tuple[str, ...] = ("enter",)
    newline: tuple[str, ...] = ("escape enter", "c-j")
    cycle: tuple[str, ...] = ("tab",)
    mode: tuple[str, ...] = ("s-tab",)
    cancel: tuple[str, ...] = ("escape",)
    leave: tuple[str, ...] = ("c-d",)
    stash: tuple[str, ...] = ("c-s",)
    undo: tuple[str, ...] = ("c-_", "c-x c-u")
    redo: tuple[str, ...] = ("escape _",)
    search: tuple[str, ...] = ("c-r",)
    expand: tuple[str, ...] = ("c-o",)
    editor: tuple[str, ...] = ("c-g",)
    picture: tuple[str, ...] = ("c-v",)
    repaint: tuple[str, ...] = ("c-l",)
    suspend: tuple[str, ...] = ("c-z",)
    remove_row: tuple[str, ...] = ("c-d",)
    row_up: tuple[str, ...] = ("escape up",)
    row_down: tuple[str, ...] = ("escape down",)

    def __post_init__(self) -> None:
        if not self.submit:
            raise ValueError("submit needs a key: without it nothing could be entered")
        chosen: dict[str, tuple[str, ...]] = {f.name: getattr(self, f.name) for f in fields(self)}
        built_in: dict[str, tuple[str, ...]] = {
            f.name: f.default for f in fields(self) if f.default is not MISSING
        }
        check_key_map(chosen, built_in)


@dataclass(frozen=True, slots=True)
class LogConfig:
    level: Literal["debug", "info", "warning", "error"] = "info"
    file: str = ""
    """Empty: midturn.log in the state folder."""


@dataclass(frozen=True, slots=True)
class Config:
    model: ModelConfig = field(default_factory=ModelConfig)
    parallel: ToolConcurrencyConfig = field(default_factory=ToolConcurrencyConfig)
    subagents: SubagentsConfig = field(default_factory=SubagentsConfig)
    queue: QueueConfig = field(default_factory=QueueConfig)
    permissions: PermissionsConfig = field(default_factory=PermissionsConfig)
    files: FilesConfig = field(default_factory=FilesConfig)
    web: WebConfig = field(default_factory=WebConfig)
    ui: UiConfig = field(default_factory=UiConfig)
    keys: KeysConfig = field(default_factory=KeysConfig)
    log: LogConfig = field(default_factory=LogConfig)
