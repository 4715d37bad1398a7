"""What a child process gets to see, and which program file a name means."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

_SECRET = re.compile(
    r"(^|_)(API_?KEY|TOKEN|SECRET|ACCESS_KEY|PRIVATE_KEY|PASSPHRASE)$"
    r"|_SECRET_|PASSWORD|PASSWD|^MYSQL_PWD$|^(ANTHROPIC|MIDTURN)_",
    re.IGNORECASE,
)
_CHANGES_THE_SHELL = re.compile(
    r"BASH_ENV|ENV|BASH_FUNC_.*|SHELLOPTS|BASHOPTS|CDPATH|GLOBIGNORE|PS4|PROMPT_COMMAND"
)
_OPENS_A_WINDOW = ("SSH_ASKPASS", "SUDO_ASKPASS", "GIT_ASKPASS")
_FORCES_COLOUR = ("FORCE_COLOR", "CLICOLOR_FORCE")
_SET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    # Nobody can type into an editor: `git commit` without a message has to fail at once, and a
    # rebase must not go through with a list that nobody saw.
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
}
_SYSTEM_FOLDERS = ("/usr/local/bin", "/usr/bin", "/bin", "/opt/homebrew/bin")


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name is withheld from children."""
    return _SECRET.search(name) is not None


def child_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of every child: no secrets, no pager, no editor, nothing that asks."""
    source = os.environ if environment is None else environment
    dropped = (*_OPENS_A_WINDOW, *_FORCES_COLOUR)
    kept = {
        name: value
        for name, value in source.items()
        if not (is_secret_name(name) or _CHANGES_THE_SHELL.fullmatch(name) or name in dropped)
    }
    return {**kept, **_SET}


def find_program(name: str, workspace: Path) -> Path | None:
    """The program ``name`` of the search path as an absolute path; None when there is none.

    Entries that are relative or lie inside the workspace are passed over, so that a repository
    cannot bring its own. The system's folders come last and count even when the workspace
    encloses them.
    """
    entries = os.environ.get("PATH", "").split(os.pathsep)
    outside = [entry for entry in entries if os.path.isabs(entry)]
    for entry in (*outside, *_SYSTEM_FOLDERS):
        program = Path(entry, name)
        if not (program.is_file() and os.access(program, os.X_OK)):
            continue
        if entry in _SYSTEM_FOLDERS or _is_outside(program, workspace):
            return program
    return None


def _is_outside(program: Path, workspace: Path) -> bool:
    places = (program, program.parent.resolve() / program.name, program.resolve())
    return not any(place.is_relative_to(workspace) for place in places)
