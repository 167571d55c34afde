"""What the flows share."""

from collections.abc import Iterator

import pytest

from instar.testing.wire import BotApiServer


@pytest.fixture
def bot() -> Iterator[BotApiServer]:
    """A Bot API on loopback."""
    with BotApiServer() as server:
        yield server
