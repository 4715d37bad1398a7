"""The rule that a lasting answer would add, in the words that are shown, and how long it may last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from midturn_core.permission.access import Access, CommandAccess, HostAccess, PathAccess
from midturn_core.permission.decision import Verdict
from midturn_core.permission.escape_flags import escape_in
from midturn_core.permission.path_patterns import literal_pattern
from midturn_core.permission.policy import PermissionPolicy
from midturn_core.permission.rules import MCP_PREFIX, exact_command, parse_rule
from midturn_core.permission.shell_words import (
    UnreadableCommandError,
    joined_words,
    plain_words,
)
from midturn_core.permission.shell_wrappers import program_name
from midturn_core.permission.word_set import word_set

_MAX_COMMAND = 100
"""Characters: a longer rule cannot be judged at a glance."""
_MAX_STORED = 200
"""Characters of a rule: what is stored has to be read whole beside the question."""

# Commands that only look, or run the project's own checks: asked once, then with any operands.
_OPEN_ENDED = {
    "git": word_set("status log diff show blame ls-files rev-parse describe shortlog"),
    "npm": word_set("test"),
    "cargo": word_set("test build check clippy fmt"),
    "go": word_set("test build vet"),
}
_OPEN_ENDED_PROGRAMS = word_set("ls pwd which pytest ruff mypy pyright tsc eslint")


# A stored rule holds in every folder: not for what destroys, overwrites or sends out.
_NEVER_STORED = word_set(
    "rm rmdir unlink shred truncate dd mkfs fdisk wipefs mv cp ln tee install chmod chown chgrp "
    "chattr kill killall pkill crontab at systemctl service launchctl mount umount reboot shutdown "
    "curl wget nc ncat netcat socat telnet sftp scp rsync ftp docker podman kubectl helm terraform "
    "aws gcloud az gh glab"
)
_STORED_OF_GIT = _OPEN_ENDED["git"] | {"add", "commit", "fetch"}


def suggest_rule(policy: PermissionPolicy, tool_name: str, accesses: Sequence[Access]) -> str:
    """A rule that would allow this call, or an empty string when none is offered.

    None is offered where no single rule would do: several different things at once, commands that
    no person can judge at a glance, and what the policy asks about in any case.
    """
    offers = {_offers(policy, tool_name, access) for access in accesses}
    if not accesses and tool_name.startswith(MCP_PREFIX):
        offers = {(tool_name,)}
    if len(offers) != 1:
        return ""
    return next((text for text in offers.pop() if _allows(policy, text, tool_name, accesses)), "")


def _allows(
    policy: PermissionPolicy, text: str, tool_name: str, accesses: Sequence[Access]
) -> bool:
    try:
        rule = parse_rule(text)
    except ValueError:
        return False
    return policy.decide(tool_name, accesses, [rule]).verdict is Verdict.ALLOW


def may_be_stored(
    policy: PermissionPolicy, text: str, tool_name: str, accesses: Sequence[Access]
) -> bool:
    """Whether the rule ``text``, as suggested, may be stored for all sessions in all folders (D40).

    Not what stays guarded (protected and secret files), nor a rule that would mean other things in
    another folder: paths of the workspace, programs by a relative path. Nor every use of a tool,
    nor commands that destroy, send out or run what an operand says.
    """
    if not 0 < len(text) <= _MAX_STORED or not accesses or policy.guards(tool_name, accesses):
        return False
    return all(_may_be_stored(policy, access) for access in accesses)


def _may_be_stored(policy: PermissionPolicy, access: Access) -> bool:
    match access:
        case HostAccess():
            return True
        case PathAccess(_, resolved):
            above = any(
                folder.is_relative_to(resolved) for folder in (policy.home, policy.workspace)
            )
            return not above and not resolved.is_relative_to(policy.workspace)
        case CommandAccess(command):
            try:
                return all(map(_runs_the_same_everywhere, joined_words(command.strip())))
            except UnreadableCommandError:
                return False


def _runs_the_same_everywhere(words: Sequence[str]) -> bool:
    program = program_name(words[0])
    of_folder = "/" in words[0] and not words[0].startswith("/")
    if of_folder or program in _NEVER_STORED or escape_in(words, 0):
        return False
    return program != "git" or (len(words) > 1 and words[1] in _STORED_OF_GIT)


def _offers(policy: PermissionPolicy, tool_name: str, access: Access) -> tuple[str, ...]:
    """The widest first."""
    match access:
        case CommandAccess(command):
            by_words = _offers_by_words(tool_name, command.strip())
            return (*by_words, *_offer_exactly(tool_name, command))
        case HostAccess():
            return (f"WebFetch(domain:{access.host})",)
        case PathAccess(_, resolved, True) if resolved.is_relative_to(policy.workspace):
            return ("Edit(**)",)
        case PathAccess():
            kind = "Edit" if access.writes else "Read"
            return (f"{kind}({literal_pattern(access.resolved, policy.workspace)})",)


def _offers_by_words(tool_name: str, command: str) -> Iterator[str]:
    try:
        words = plain_words(command)
    except UnreadableCommandError:
        return
    if words[0] in _OPEN_ENDED_PROGRAMS:
        yield f"{tool_name}({words[0]}:*)"
    if len(words) > 1 and words[1] in _OPEN_ENDED.get(words[0], ()):
        yield f"{tool_name}({words[0]} {words[1]}:*)"
    if len(command) <= _MAX_COMMAND and "\n" not in command:
        yield f"{tool_name}({command})"


def _offer_exactly(tool_name: str, command: str) -> Iterator[str]:
    """A chain is not offered rules for its parts: they would allow chains that nobody has seen.
    Several lines are offered nothing: such a command hardly ever comes again as it was.
    """
    if "\n" in command:
        return
    try:
        text = exact_command(tool_name, command)
    except ValueError:
        return
    if len(text) <= _MAX_STORED:
        yield text
