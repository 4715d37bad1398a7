"""Who decides over the calls of a session: the rules and the mode of its configuration."""

from __future__ import annotations

import os
from collections.abc import Callable

from midturn_cli.config_writes import ConfigWrites
from midturn_cli.launch import Launch
from midturn_cli.stored_rules import store_allow_rule
from midturn_core import paths
from midturn_core.errors import ConfigError
from midturn_core.events import Notice, NoticeLevel
from midturn_core.permission.authorizer import Authorizer
from midturn_core.permission.decision import PermissionMode
from midturn_core.permission.gate import AskGate
from midturn_core.permission.policy import PermissionPolicy
from midturn_core.permission.rules import Rule, RuleSet


def session_authorizer(
    launch: Launch, gate: AskGate, tell: Callable[[Notice], None], writes: ConfigWrites
) -> Authorizer:
    """Asks at ``gate``; what is answered with "always" goes to the user's file, which is told.

    The call does not wait for that: the rule holds from the answer on, and for the session alone
    once it turns out that the file cannot have it.
    """
    file = launch.loaded.file

    def store(rule: Rule) -> bool:
        def told(error: ConfigError | None) -> None:
            if error is None:
                tell(Notice(NoticeLevel.INFO, f"Always allowed: {rule.text}, stored in {file}"))
                return
            authorizer.session_rules.add(rule)
            authorizer.stored_rules.remove(rule.text)
            text = f"{rule.text} is allowed for this session, but was not stored: {error}"
            tell(Notice(NoticeLevel.WARNING, text))

        writes.start(lambda: store_allow_rule(file, rule, launch.workspace), told)
        return True

    authorizer = Authorizer(_policy(launch), gate, store_rule=store)
    return authorizer


def _policy(launch: Launch) -> PermissionPolicy:
    permissions = launch.config.permissions
    return PermissionPolicy(
        workspace=launch.workspace,
        rules=RuleSet.parse(permissions.allow, permissions.ask, permissions.deny),
        mode=PermissionMode(permissions.mode),
        home=paths.home_folder(os.environ).resolve(),
        own_folders=(
            paths.config_folder(os.environ).resolve(),
            paths.state_folder(os.environ).resolve(),
        ),
    )
