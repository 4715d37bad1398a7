"""Commands that run the model themselves: /retry, /compact and /init."""

from __future__ import annotations

from functools import partial

from midturn_cli.commands.arguments import takes_nothing
from midturn_cli.commands.command import Command, CommandError, Form, Use

INIT_PROMPT = """\
The project in this folder needs a file AGENTS.md with what another coding assistant has to know \
about it. Get to know the project and write that file: what the project is; how to build, run, test and check \
it, with the exact commands; how the code is laid out and where to start for the usual changes; \
the conventions that the code itself shows.

Look at the build files, the existing documentation and some of the code first, and state nothing \
that you did not see there. Keep it short: what is true of every project does not belong into it. \
If there is an AGENTS.md or CLAUDE.md already, keep what is still right in it and improve the rest."""


async def retry(use: Use) -> None:
    if not use.engine.conversation.awaits_model:
        raise CommandError("There is nothing to retry: the last answer is complete")
    await use.controller.retry(use.turn)


async def compact(use: Use) -> None:
    if not len(use.engine.conversation):
        raise CommandError("There is nothing to compact: the history is empty")
    if await use.engine.agent.compact(use.turn, use.arguments):
        # How much the summary occupies is known after the next request.
        use.engine.agent.context_tokens = 0
        use.engine.show_status()


async def init(use: Use) -> None:
    wish = f"\n\nThe user adds: {use.arguments}" if use.arguments else ""
    await use.controller.run_prompt(INIT_PROMPT + wish, use.turn)


RETRY = Command(
    "retry",
    "send the failed step again",
    own_turn=retry,
    check=partial(takes_nothing, "/retry"),
)
COMPACT = Command(
    "compact",
    "replace the history by a summary",
    "[WISHES]",
    own_turn=compact,
    forms=(
        Form("/compact", "let the model sum up the conversation and go on from the summary"),
        Form("/compact WISHES", "the same, and say what the summary must keep"),
    ),
)
INIT = Command(
    "init",
    "let the model write AGENTS.md",
    "[WISHES]",
    own_turn=init,
    forms=(
        Form("/init", "let the model look around and write or improve AGENTS.md"),
        Form("/init WISHES", "the same, and say what matters to you"),
    ),
)
