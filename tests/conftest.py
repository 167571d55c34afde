"""What every suite shares: a clean environment, no network beyond loopback, a home, a clock."""

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from instar.testing.builders import UnindexedMemory, embedded_at
from instar.testing.clock import MovingClock, numbered_ids
from instar.wiring.embedded import Embedded

UNIT = Path(__file__).parent / "unit"
_connect = socket.socket.connect
_LOOPBACK = ("127.", "::1", "localhost")


class NoNetwork(AssertionError):
    """A test reached for an address that it may not use."""


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine's settings gets in; AWS clients find a region and fake credentials."""
    for name in list(os.environ):
        if name.startswith(("INSTAR_", "AWS_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(autouse=True)
def guarded_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback only; nothing at all in tests/unit."""
    is_unit = UNIT in request.path.parents

    def connect(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else None
        if host is not None and (is_unit or not str(host).startswith(_LOOPBACK)):
            raise NoNetwork(f"{request.node.name} wants to connect to {address!r}")
        return _connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of an empty home."""
    return tmp_path / "home"


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Embedded]:
    """The agent on an empty home: real adapters, words alone."""
    opened = embedded_at(tmp_path / "home")
    yield opened
    opened.stores.database.close()


@pytest.fixture
def folder(embedded: Embedded) -> Path:
    """The folder of the embedded home."""
    return embedded.stores.home.path


@pytest.fixture
def memory(embedded: Embedded) -> UnindexedMemory:
    """Memory's write path alone, quick: the index is not told."""
    return UnindexedMemory(embedded)


@pytest.fixture
def clock() -> MovingClock:
    """A clock that a test moves."""
    return MovingClock()


@pytest.fixture
def new_id() -> Callable[[], str]:
    """Identifiers that count."""
    return numbered_ids()
