"""A whole embedded Instar behind a real server on loopback, with a scripted model behind it."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from websockets.sync.client import ClientConnection, connect

from instar.access.keyring import SETUP
from instar.ids import MAIN_AGENT
from instar.testing.wire import ScriptedModelServer
from instar.web.app import create_app
from instar.web.services import Services
from instar.wiring.embedded import Embedded
from instar.wiring.serve import services_of
from instar.wiring.workers import Workers


@dataclass
class Instar:
    """A running Instar and ways to talk to it."""

    url: str
    model: ScriptedModelServer
    embedded: Embedded

    def key(self, *scopes: str, tools: list[str] | None = None) -> str:
        return self.embedded.keyring.create(scopes or ("owner",), tools)[0]

    def client(self, *scopes: str, tools: list[str] | None = None) -> httpx.Client:
        """A client with a key of these scopes, the owner's unless named."""
        bearer = {"authorization": f"Bearer {self.key(*scopes, tools=tools)}"}
        return httpx.Client(base_url=self.url, headers=bearer, timeout=20)

    def stranger(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=20)

    @contextmanager
    def browser(self) -> Iterator[httpx.Client]:
        """A client that came through the set-up link, as a page of this server."""
        origin = {"origin": self.url}
        with httpx.Client(base_url=self.url, headers=origin, timeout=20) as client:
            code = self.embedded.keyring.grant(SETUP)
            assert client.post("/v1/setup", json={"code": code}).status_code == 200
            yield client

    @contextmanager
    def socket(self, client: httpx.Client, **options: Any) -> Iterator["Socket"]:
        ticket = client.post("/v1/ticket").json()
        with connect(f"{ticket['url']}?ticket={ticket['ticket']}", **options) as connection:
            yield Socket(connection)


@dataclass
class Socket:
    """One end of a socket."""

    connection: ClientConnection

    def send(self, **frame: Any) -> None:
        self.connection.send(json.dumps(frame))

    def receive(self, seconds: float = 10) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.connection.recv(timeout=seconds))
        return found

    def until(self, kind: str) -> list[dict[str, Any]]:
        """All frames up to one of that kind."""
        frames = [self.receive()]
        while frames[-1]["kind"] != kind:
            frames.append(self.receive())
        return frames

    def whatever_comes_within(self, seconds: float) -> list[dict[str, Any]]:
        """The frames that still come, until none did for so long."""
        frames = []
        with suppress(TimeoutError):
            while True:
                frames.append(self.receive(seconds))
        return frames


@contextmanager
def running(
    home: Path, change: Callable[[Services], Services] = lambda services: services
) -> Iterator[Instar]:
    """Server, workers and scripted model of one home; `change` gives the server other use cases."""
    with ScriptedModelServer() as model:
        environ = {
            "INSTAR_EMBEDDINGS": "none",
            "INSTAR_MODEL": "openai-chat/scripted",
            "INSTAR_MODEL_BASE_URL": model.base_url,
            "INSTAR_MODEL_API_KEY": "sk-test",
            "INSTAR_WEBHOOK_SECRET": "webhook-secret-of-the-test",
        }
        embedded = Embedded.open(str(home), MAIN_AGENT, environ)
        workers = Workers(embedded)
        workers.start()
        app = create_app(change(services_of(embedded)))
        server = uvicorn.Server(
            uvicorn.Config(app, port=0, log_level="error", ws="websockets-sansio")
        )
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Instar(f"http://127.0.0.1:{port}", model, embedded)
        server.should_exit = True
        thread.join(10)
        workers.stop()


@pytest.fixture
def instar(tmp_path: Path) -> Iterator[Instar]:
    with running(tmp_path / "home") as instar:
        yield instar


@pytest.fixture(scope="module")
def calm_instar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instar]:
    """One for all tests of a module that change nothing in it."""
    with running(tmp_path_factory.mktemp("calm") / "home") as instar:
        yield instar


def _broken_doctor(digest: bool) -> dict[str, Any]:
    raise ZeroDivisionError("a detail that nobody should see")


@pytest.fixture
def broken_instar(tmp_path: Path) -> Iterator[Instar]:
    """One whose doctor has a bug."""
    change = partial(replace, doctor=_broken_doctor)
    with running(tmp_path / "home", change) as instar:
        yield instar
