"""``Engine``: one session without its front end, wired from a ``Launch``.

The REPL, plain mode and print mode all run on one. Importing this module loads the whole engine:
front ends do it after the first paint.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from midturn_cli.batch_history import BatchHistory
from midturn_cli.config_writes import ConfigWrites
from midturn_cli.finished_results import FinishedResults
from midturn_cli.launch import Launch
from midturn_cli.log_file import close_log, open_log
from midturn_cli.render.theme import ThemeChoice
from midturn_cli.session_calls import tool_batches
from midturn_cli.session_opening import open_session
from midturn_cli.session_permissions import session_authorizer
from midturn_cli.session_queue import SessionQueue
from midturn_cli.session_status import status_of
from midturn_cli.shown_number import ShownNumber
from midturn_cli.subagents import SessionSubagents
from midturn_cli.ui_events import StatusChanged, StatusInfo, UiEvent
from midturn_core import paths
from midturn_core.agent import Agent, AgentParts, ModelSettings
from midturn_core.batches import ToolBatches
from midturn_core.config import Config, WebConfig
from midturn_core.conversation import Cleared
from midturn_core.delivery import DeliveryRules, InputDelivery
from midturn_core.dispatch.config import ToolConcurrencyConfig
from midturn_core.dispatch.dispatcher import DefaultParallelToolDispatcher
from midturn_core.dispatch.speedup import SpeedupMeter
from midturn_core.events import (
    CompactionFinished,
    Event,
    Notice,
    NoticeLevel,
    TurnEnded,
    TurnStarted,
    UsageChanged,
)
from midturn_core.ids import AgentRuntimeId
from midturn_core.interceptors.interceptor import ToolInterceptors
from midturn_core.model.anthropic_client import AnthropicClient
from midturn_core.model.client import ModelClient
from midturn_core.model.client_settings import ClientSettings
from midturn_core.model.demo import DemoModel, DemoSite
from midturn_core.model.messages import Usage
from midturn_core.permission.ask import AskHandler
from midturn_core.permission.authorizer import Authorizer
from midturn_core.permission.decision import PermissionMode
from midturn_core.permission.gate import AskGate
from midturn_core.permission.rules import check_rules
from midturn_core.prompt import Surroundings, build_system_prompt
from midturn_core.queue.manager import MessageQueueManager
from midturn_core.queue.reminder import SystemReminderFormatter
from midturn_core.tool import ToolRegistry
from midturn_tools.standard import StandardTools, standard_tools


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """What an engine needs of whoever shows it."""

    emit: Callable[[UiEvent], None]
    ask_handler: AskHandler
    terminal_clipboard: bool = False
    """Whether a ``ClipboardText`` event reaches a terminal."""
    live: bool = False
    """Whether it has a live input line, with the keys of the configuration."""


ModelMaker: TypeAlias = Callable[["Engine"], ModelClient]


def configured_model(engine: Engine) -> ModelClient:
    """The model that the launch asks for: the demo's, or the service's."""
    if engine.launch.demo:
        return DemoModel(engine.workspace, engine.demo_site)
    return AnthropicClient(ClientSettings.from_config(engine.config.model))


class Engine:
    """The parts of one session, by name. Built on the loop's thread.

    ``make_model`` is called once, when the engine is wired.
    """

    def __init__(
        self, launch: Launch, front: FrontEnd, make_model: ModelMaker = configured_model
    ) -> None:
        self.launch = launch
        self.front = front
        self._make_model = make_model
        opened = open_session(launch)
        self.store, self.session, self.resumed = opened.store, opened.session, opened.resumed
        self.log_warning = open_log(launch.config.log, os.environ)
        self.session.log.on_trouble = self.warn
        self.context_id = AgentRuntimeId(self.session.id)
        self.conversation = opened.conversation()
        self.read_files = opened.read_files()
        self.session_queue = SessionQueue(
            self.config.queue, self.context_id, self.session, paths.queue_file(os.environ)
        )
        self.reminders = SystemReminderFormatter(self.session.head.nonce)
        self.model_settings = ModelSettings(
            self.config.model.name, self.config.model.max_tokens, self.config.model.effort
        )
        self.config_writes = ConfigWrites()
        self.theme: ThemeChoice = self.config.ui.theme
        self.finished = FinishedResults()
        self.batch_history = BatchHistory()
        self.speedup = SpeedupMeter()
        self.agent = Agent(self._agent_parts())
        if self.resumed:
            self.agent.session_usage = self.resumed.usage

    @property
    def config(self) -> Config:
        return self.launch.config

    @property
    def workspace(self) -> Path:
        return self.launch.workspace

    @property
    def queue(self) -> MessageQueueManager:
        return self.session_queue.manager

    @property
    def emit(self) -> Callable[[UiEvent], None]:
        return self.front.emit

    @cached_property
    def demo_site(self) -> DemoSite:
        return DemoSite()

    @cached_property
    def model(self) -> ModelClient:
        return self._make_model(self)

    def preload_model(self) -> None:
        """Begin what the first request would wait for; may be called again at no cost."""
        model = self.config.model
        if isinstance(self.model, AnthropicClient) and (model.api_key or model.auth_token):
            self.model.preload()

    @cached_property
    def tools(self) -> StandardTools:
        return standard_tools(self._web_config(), self.config.files)

    @cached_property
    def registry(self) -> ToolRegistry:
        return ToolRegistry((*self.tools.all(), self.subagents.task_tool))

    @cached_property
    def subagents(self) -> SessionSubagents:
        return SessionSubagents(self)

    @cached_property
    def dispatcher(self) -> DefaultParallelToolDispatcher:
        return DefaultParallelToolDispatcher(
            self.config.parallel, on_slots_changed=self._slot_use.changed
        )

    @cached_property
    def _slot_use(self) -> ShownNumber:
        return ShownNumber(lambda: self.dispatcher.slots_in_use, self.show_status)

    @cached_property
    def interceptors(self) -> ToolInterceptors:
        return ToolInterceptors(rewake=self.session_queue.rewake)

    @cached_property
    def gate(self) -> AskGate:
        return AskGate(self.front.ask_handler, self.observe)

    @cached_property
    def authorizer(self) -> Authorizer:
        return session_authorizer(self.launch, self.gate, self.emit, self.config_writes)

    @cached_property
    def batches(self) -> ToolBatches:
        return tool_batches(self)

    @cached_property
    def delivery(self) -> InputDelivery:
        queue = self.config.queue
        rules = DeliveryRules(queue.now_hastens, queue.next_delivery == "step", queue.one_per_turn)
        return InputDelivery(
            self.queue,
            self.context_id,
            self.reminders,
            rules,
            self.session.files.find,
            self.session_queue,
        )

    @cached_property
    def surroundings(self) -> Surroundings:
        return Surroundings.of(self.workspace, date.today())

    @property
    def parallel(self) -> ToolConcurrencyConfig:
        """The settings the next batch will use."""
        return self.dispatcher.config

    def set_parallel(self, config: ToolConcurrencyConfig) -> None:
        """Use other settings from the next batch on (D20)."""
        self.dispatcher.configure(config)
        self.show_status()

    def set_mode(self, mode: PermissionMode) -> None:
        self.authorizer.set_mode(mode)
        self.show_status()

    def set_model(self, name: str) -> None:
        self.model_settings.name = name
        self.show_status()

    def clear_history(self) -> str:
        """Begin a new history; returns the id under which the old one can be resumed (``/clear``).

        Raises:
            SessionError: the old one cannot be kept; nothing was changed.
        """
        kept_id = self.store.set_aside(self.session)
        if self.queue.size(self.context_id):
            self.session.keep()
        # Replayed: the new log begins with what comes now, not with a record of the clearing.
        self.conversation.replay([Cleared()])
        self.read_files.clear()
        self.agent.context_tokens = 0
        self.show_status()
        return kept_id

    def cancel_awaited_call(self) -> bool:
        """Cut what a waiting NOW input waits for (D1); False when none waits or nothing runs."""
        return self.delivery.now_is_waiting() and self.batches.cancel_open_calls()

    def observe(self, event: Event) -> None:
        """Every event of the core comes through here on its way to the screen."""
        receipts = self.session_queue.receipts
        for watcher in (self.finished, self.batch_history, self.speedup, receipts):
            watcher.observe(event)
        match event:
            case TurnEnded(usage=usage) | CompactionFinished(usage=usage):
                if usage != Usage():
                    self.session.record_usage(usage)
            case UsageChanged():
                self.show_status()
            case _:
                pass
        self.emit(event)
        if isinstance(event, TurnEnded):
            self.authorizer.end_turn()
        if isinstance(event, TurnStarted | TurnEnded):
            self.session.sync()

    def show_status(self) -> None:
        self.emit(StatusChanged(self.status()))

    def status(self) -> StatusInfo:
        return status_of(self)

    def rule_warnings(self) -> list[str]:
        """One sentence per permission rule that can never match (D42), and per thing that is wrong
        in the definition of a subagent.
        """
        rules = check_rules(self.authorizer.policy.rules, self.registry.names())
        return [*rules, *self.subagents.warnings]

    async def close(self) -> None:
        """Let go of everything; what waits in the queue stays there for the caller to report."""
        self.gate.close()
        await self.config_writes.wait()
        await self.dispatcher.close()
        self.interceptors.close()
        await self.model.close()
        if self.launch.demo:
            await self.demo_site.close()
        self.session.close()
        close_log()

    def _agent_parts(self) -> AgentParts:
        return AgentParts(
            context_id=self.context_id,
            conversation=self.conversation,
            model=self.model,
            model_settings=self.model_settings,
            system_prompt=self.system_prompt,
            tool_definitions=self.registry.definitions,
            batches=self.batches,
            delivery=self.delivery,
            reminders=self.reminders,
            emit=self.observe,
            max_steps=self.launch.max_steps,
        )

    def system_prompt(self) -> str:
        return build_system_prompt(
            self.surroundings, reminder_tag=self.reminders.tag, parallel=self.parallel.enabled
        )

    def _web_config(self) -> WebConfig:
        web = self.config.web
        if not self.launch.demo:
            return web
        # The site is on this machine, where no proxy leads.
        return replace(web, allow_hosts=(*web.allow_hosts, self.demo_site.host), proxy="none")

    def warn(self, text: str) -> None:
        self.emit(Notice(NoticeLevel.WARNING, text))
