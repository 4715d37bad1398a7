"""What the policy says about a call."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum


class Verdict(IntEnum):
    """By strictness: of several, the greatest counts."""

    ALLOW = 0
    ASK = 1
    DENY = 2


@dataclass(frozen=True, slots=True)
class Decision:
    """``reason`` is a sentence or its fragment: for the question of an ASK, for the model of a
    DENY. ``rule`` is the text of the rule that decided, or empty.
    """

    verdict: Verdict
    reason: str = ""
    rule: str = ""


class PermissionMode(Enum):
    """What happens where no rule decides. The values are the words of the configuration."""

    DEFAULT = "default"
    """Reading the workspace is free, everything else asks."""
    ACCEPT_EDITS = "accept-edits"
    """Writing in the workspace is free as well."""
    PLAN = "plan"
    """Reads only: whatever writes or runs is denied."""
    YOLO = "yolo"
    """Nothing is asked; rules that deny or ask still hold."""


class Match(IntEnum):
    NO = 0
    MAYBE = 1
    """The text cannot tell."""
    YES = 2
