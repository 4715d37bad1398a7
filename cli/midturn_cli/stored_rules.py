"""Keeping an "always" answer (D40): the rule goes to the user's configuration, never a project's."""

from __future__ import annotations

import os
from pathlib import Path

from midturn_core import paths
from midturn_core.config_loader import add_value
from midturn_core.errors import ConfigError
from midturn_core.permission.rules import Rule


def store_allow_rule(file: Path, rule: Rule, workspace: Path) -> None:
    """Add the rule to ``[permissions] allow`` of the file that the session was started with.

    Raises:
        ConfigError: the file belongs to the project, or cannot be read, understood or written.
    """
    of_user = paths.config_file(os.environ)
    if file != of_user and file.resolve().is_relative_to(workspace):
        raise ConfigError(f"{file} belongs to the project; rules are stored in {of_user} alone")
    add_value(file, "permissions", "allow", rule.text)
