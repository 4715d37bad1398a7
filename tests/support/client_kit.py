"""The real client of the Messages API, quick to retry, and what a test asks and collects with it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace

from midturn_core.config import ModelConfig
from midturn_core.errors import ModelError
from midturn_core.model.anthropic_client import AnthropicClient
from midturn_core.model.client import (
    BlockFinished,
    MessageFinished,
    ModelEvent,
    ModelRequest,
    RequestCounted,
    RetryScheduled,
    TextChunk,
    ToolDefinition,
)
from midturn_core.model.client_settings import ClientSettings
from midturn_core.model.messages import (
    AssistantBlock,
    Message,
    TextBlock,
    Usage,
    UserMessage,
)
from midturn_core.model.retry_policy import RetryPolicy
from tests.support.messages_server import KEY, MessagesServer

MODEL = "claude-opus-5-5"
QUICK = RetryPolicy(first_delay=0.001, max_delay=0.002)

READ = ToolDefinition(
    "Read",
    "Read a file.",
    {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]},
)


def settings_for(url: str, key: str = KEY, token: str = "") -> ClientSettings:
    config = ModelConfig(name=MODEL, base_url=url, api_key=key, auth_token=token)
    return replace(ClientSettings.from_config(config), retry=QUICK)


@contextlib.asynccontextmanager
async def client_of(
    target: MessagesServer | ClientSettings,
) -> AsyncGenerator[AnthropicClient, None]:
    settings = settings_for(target.url) if isinstance(target, MessagesServer) else target
    client = AnthropicClient(settings)
    try:
        yield client
    finally:
        await client.close()


def ask(*messages: Message | str, model: str = MODEL, effort: str = "") -> ModelRequest:
    """A request with these messages; a string is a message of the user."""
    history = tuple(
        UserMessage((TextBlock(message),)) if isinstance(message, str) else message
        for message in messages or ("Hello",)
    )
    return ModelRequest("You help.", history, (READ,), model, 1000, effort)


@dataclass
class Heard:
    """All that came of one request; ``counted`` is what each try was said to cost at its start."""

    events: list[ModelEvent] = field(default_factory=list[ModelEvent])
    counted: list[Usage] = field(default_factory=list[Usage])
    error: ModelError | None = None

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextChunk))

    @property
    def blocks(self) -> list[AssistantBlock]:
        return [event.block for event in self.events if isinstance(event, BlockFinished)]

    @property
    def retries(self) -> list[RetryScheduled]:
        return [event for event in self.events if isinstance(event, RetryScheduled)]

    @property
    def finish(self) -> MessageFinished:
        assert self.events, f"nothing came, but {self.error!r}"
        last = self.events[-1]
        assert isinstance(last, MessageFinished), f"{last} is no end; then came {self.error!r}"
        return last


async def hear(client: AnthropicClient, request: ModelRequest | None = None) -> Heard:
    """Send a request and take everything, up to its end or its error."""
    heard = Heard()
    try:
        async with contextlib.aclosing(client.stream(request or ask())) as events:
            async for event in events:
                if isinstance(event, RequestCounted):
                    heard.counted.append(event.usage)
                else:
                    heard.events.append(event)
    except ModelError as error:
        heard.error = error
    return heard
