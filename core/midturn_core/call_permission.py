"""The permission stage of a call: what it would touch, put before the authorizer (D30)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from midturn_core.call_runner import PendingCall, denied
from midturn_core.dispatch import results
from midturn_core.events import CallPhase
from midturn_core.ids import AgentRuntimeId
from midturn_core.model.messages import ToolUseResult
from midturn_core.permission.access import Access, CommandAccess, HostAccess, PathAccess
from midturn_core.permission.authorizer import (
    Allowed,
    Authorizer,
    Denied,
    PermissionRequest,
    Withdrawn,
)
from midturn_core.permission.decision import Verdict
from midturn_core.tool import PreviewingTool


class CallPermission:
    """Implements the call runner's ``Authorize`` for one agent."""

    def __init__(self, authorizer: Authorizer, context_id: AgentRuntimeId) -> None:
        self._authorizer = authorizer
        self._context_id = context_id

    async def __call__(self, pending: PendingCall) -> ToolUseResult | None:
        """None permits the call; otherwise the result that answers it."""
        request = permission_request(pending, self._context_id)
        asks = self._authorizer.decide(request).verdict is Verdict.ASK
        if asks:
            pending.call.announce(CallPhase.ASKING)
        authorization = await self._authorizer.authorize(request, pending.call.signal)
        if asks:
            pending.call.announce(CallPhase.WAITING)
        match authorization:
            case Allowed():
                return None
            case Denied(reason):
                return denied(pending.call.tool_use, reason)
            case Withdrawn(cause):
                return results.skipped(pending.call.tool_use, cause)
            case _:
                assert_never(authorization)


def permission_request(pending: PendingCall, context_id: AgentRuntimeId) -> PermissionRequest:
    """What the policy and, if it comes to that, a person has to know about a call."""
    call, tool = pending.call, pending.tool
    tool_input = call.tool_use.input
    title = tool.describe(tool_input)
    return PermissionRequest(
        context_id=context_id,
        tool_use_id=call.tool_use.id,
        tool=tool.name,
        title=title,
        body=_body(pending.accesses) or title,
        accesses=pending.accesses,
        index=call.index,
        count=call.count,
        order=(call.step, call.index),
        detail=tool.preview(tool_input) if isinstance(tool, PreviewingTool) else None,
    )


def _body(accesses: Sequence[Access]) -> str:
    """Everything the call would touch, whole: it is what a person says yes to."""
    return "\n".join(_in_words(access) for access in accesses)


def _in_words(access: Access) -> str:
    match access:
        case CommandAccess(command):
            return command
        case HostAccess(url):
            return url
        case PathAccess(written, resolved):
            return str(resolved) if written == resolved else f"{written} → {resolved}"
        case _:
            assert_never(access)
