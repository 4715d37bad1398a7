"""``midturn`` with a queue that is full from the beginning; everything else is the real command.

``FULL_MIDTURN_COUNT`` LATER inputs wait. They stay where the configuration says ``later =
"manual"``, and need ``cap = 0``.
"""

from __future__ import annotations

import os
import sys

from midturn_core.queue.types import QueuedInput, QueuedInputPriority

COUNT = "FULL_MIDTURN_COUNT"
CONFIG = '[queue]\nlater = "manual"\ncap = 0\n'


def fill_each_session(count: int) -> None:
    """Call it before a session is opened."""
    from midturn_cli.session import InteractiveSession

    original = InteractiveSession.open

    def open_full(self: InteractiveSession) -> None:
        original(self)
        context_id = self.engine.context_id
        for number in range(count):
            item = QueuedInput(f"waits {number}", context_id, QueuedInputPriority.LATER)
            self.engine.queue.enqueue(item)

    InteractiveSession.open = open_full  # type: ignore[method-assign]  # a plain function will do


if __name__ == "__main__":
    fill_each_session(int(os.environ[COUNT]))
    from midturn_cli.main import main

    sys.exit(main())
