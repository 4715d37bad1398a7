"""Writing the user's configuration file while a session runs: off the loop, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from midturn_core.errors import ConfigError


class ConfigWrites:
    """Each write reads the file, changes it and puts it back: two at a time would lose one."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()
        self._running: set[asyncio.Task[None]] = set()

    async def run(self, write: Callable[[], None]) -> None:
        """Do it on a thread, after those that were asked for before.

        Raises:
            ConfigError: as ``write`` does.
        """
        async with self._one_at_a_time:
            await asyncio.to_thread(write)

    def start(self, write: Callable[[], None], tell: Callable[[ConfigError | None], None]) -> None:
        """Do it without waiting; ``tell`` is called on the loop with what went wrong, or None."""
        task = asyncio.get_running_loop().create_task(self._run_and_tell(write, tell))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def wait(self) -> None:
        """Until everything that was started is written and told."""
        while self._running:
            await asyncio.wait(self._running)

    async def _run_and_tell(
        self, write: Callable[[], None], tell: Callable[[ConfigError | None], None]
    ) -> None:
        try:
            await self.run(write)
        except ConfigError as error:
            tell(error)
        else:
            tell(None)
