"""Paths that no wildcard opens: what would change the rules or run programs, and secrets."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from midturn_core.permission.word_set import word_set

_PROTECTED_FOLDERS = word_set(
    ".git .midturn .vscode .idea .zed .cursor .claude .codex .gemini .devcontainer .husky "
    ".ssh .gnupg .aws autostart launchagents launchdaemons"
)
_PROTECTED_FILES = word_set(
    ".mcp.json .gitmodules .gitconfig .envrc .bashrc .bash_profile .bash_login .bash_logout "
    ".profile .zshrc .zshenv .zprofile .zlogin .npmrc .yarnrc .yarnrc.yml .pypirc "
    ".git-credentials .netrc .inputrc .vimrc .exrc"
)
_SECRET_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".kube", ".docker"})
_SECRET_FILES = word_set(
    ".env .netrc .pgpass .pypirc .git-credentials .vault-token credentials.json "
    "id_rsa id_dsa id_ecdsa id_ed25519"
)
_SECRET_ENDINGS = (".pem", ".key", ".p12", ".pfx", ".kdbx", ".jks", ".ppk")
_ENV_FILE = re.compile(r"\.env\.(?!(?:.*\.)?(?:example|sample|template|dist|defaults?)$).+")


def protection(path: Path, workspace: Path) -> str:
    """Why writing to this path is always asked about; empty when it is an ordinary path.

    It does not matter whether the path exists. Names are compared as the most forgiving disks
    do: without case, invisible characters and trailing dots.
    """
    names = _names(path, workspace)
    for place, name in enumerate(names):
        is_last = place == len(names) - 1
        if name in _PROTECTED_FOLDERS or (name.endswith(".git") and not is_last):
            return f"files in {name} can change settings or run programs"
        if is_last and name in _PROTECTED_FILES:
            return f"{name} can change settings or run programs"
    return ""


def secrecy(path: Path, workspace: Path) -> str:
    """Why reading this path is asked about; empty when it does not look like a secret."""
    names = _names(path, workspace)
    for name in names[:-1]:
        if name in _SECRET_FOLDERS:
            return f"files in {name} usually hold secrets"
    name = names[-1] if names else ""
    if name in _SECRET_FILES or name.endswith(_SECRET_ENDINGS) or _ENV_FILE.fullmatch(name):
        return f"{name} usually holds secrets"
    return ""


def _names(path: Path, workspace: Path) -> list[str]:
    if path.is_relative_to(workspace):
        path = path.relative_to(workspace)
    return [_folded(name) for name in path.parts]


def _folded(name: str) -> str:
    visible = "".join(char for char in name if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", visible).casefold().rstrip(". ") or name
