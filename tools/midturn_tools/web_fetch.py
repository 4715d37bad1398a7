"""WebFetch: reads one page of the web as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast
from urllib.parse import urlsplit

from midturn_core.config import WebConfig
from midturn_core.model.messages import JsonObject
from midturn_core.permission.access import HostAccess
from midturn_core.tool import (
    ConcurrencyBehavior,
    InterruptBehavior,
    InvalidInputError,
    ToolContext,
    ToolResult,
)
from midturn_tools._input import check_input, text

_SHOWN = 40_000
_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "minLength": 1, "description": "An http or https address."}
    },
    "required": ["url"],
    "additionalProperties": False,
}


class WebFetchTool:
    """Fetches text from loopback servers that ``allow_hosts`` names, and nothing else yet."""

    name = "WebFetch"
    description = "Fetches the text behind an http or https address."
    input_schema = _SCHEMA

    def __init__(self, config: WebConfig) -> None:
        self._config = config

    def get_concurrency_behavior(self) -> ConcurrencyBehavior:
        return ConcurrencyBehavior.SEQUENTIAL

    def get_interrupt_behavior(self) -> InterruptBehavior:
        return InterruptBehavior.COOPERATIVE

    def time_limit(self, tool_input: JsonObject) -> float | None:
        return self._config.timeout + 5.0

    def validate(self, tool_input: JsonObject) -> None:
        check_input(tool_input, _SCHEMA)
        parts = urlsplit(text(tool_input, "url"))
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInputError("url must be an http or https address")
        if parts.netloc not in self._config.allow_hosts:
            raise InvalidInputError(f"{parts.netloc} is not in allow_hosts of the configuration")

    def describe(self, tool_input: JsonObject) -> str:
        return text(tool_input, "url")

    def access(self, tool_input: JsonObject, context: ToolContext) -> Sequence[HostAccess]:
        url = text(tool_input, "url")
        return (HostAccess(url, cast(str, urlsplit(url).hostname)),)

    async def run(self, tool_input: JsonObject, context: ToolContext) -> ToolResult:
        import httpx  # 0.1 s: not before the first fetch

        try:
            async with httpx.AsyncClient(trust_env=False, timeout=self._config.timeout) as client:
                response = await client.get(text(tool_input, "url"))
        except httpx.HTTPError as error:
            return ToolResult(error=f"The page could not be fetched: {error}")
        if response.status_code >= 300:
            return ToolResult(error=f"The server answered {response.status_code}.")
        return ToolResult(response.text[:_SHOWN], summary=f"{len(response.content)} bytes")
