"""Fixtures around the scripted Messages API. Import them in a ``conftest.py`` to enable them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.messages_connection import violations_of_all
from tests.support.messages_server import MessagesServer


@pytest.fixture(autouse=True)
def every_request_is_valid() -> Iterator[None]:
    """Fails a test in which any server refused a request, unless the test said it expects that."""
    before = len(violations_of_all)
    yield
    refused = violations_of_all[before:]
    assert not refused, f"the Messages API would have refused: {refused}"


@pytest.fixture
def messages_server() -> Iterator[MessagesServer]:
    """A running server with an empty script; fill it with ``add`` or ``always``."""
    with MessagesServer() as server:
        yield server
