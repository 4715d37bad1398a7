"""Identifiers: which conversation something belongs to, and new unique names."""

from __future__ import annotations

import uuid
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AgentRuntimeId:
    """One execution context: the main agent of a session or one of its subagents (D14).

    The session is part of the identity, so that a shared queue never delivers to another
    conversation.
    """

    session: str
    agent: str = "main"

    def __str__(self) -> str:
        return f"{self.session}/{self.agent}"

    @classmethod
    def parse(cls, text: str) -> AgentRuntimeId:
        """Read ``<session>/<agent>``.

        Raises:
            ValueError: there is no slash, or one of the two parts is empty.
        """
        session, slash, agent = text.partition("/")
        if not (session and slash and agent):
            raise ValueError(f"not a context id: {text!r} (expected <session>/<agent>)")
        return cls(session, agent)


def new_id(prefix: str) -> str:
    """A name that is unique among all processes, such as ``turn-5f2c9a01b3d4``."""
    return f"{prefix}-{uuid.uuid4().hex[:12]}"
