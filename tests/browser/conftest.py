"""The page in a real Chromium, before a real server on a home of the test's own.

Without Chromium the suite skips, saying how to get it; in CI (`CI=true`) that is a failure.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from instar.access.keyring import SETUP
from instar.ids import MAIN_AGENT
from instar.testing.wire import ScriptedModelServer
from instar.web.app import create_app
from instar.wiring.embedded import Embedded
from instar.wiring.serve import services_of
from instar.wiring.workers import Workers

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation",
  (event) => window.violations.push(event.violatedDirective + " " + event.blockedURI));
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    if not Path(CHROMIUM).exists():
        missing = f"no {CHROMIUM}: apt-get install -y --no-install-recommends chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield playwright, browser
        browser.close()


@dataclass
class Instar:
    """A running Instar."""

    embedded: Embedded
    port: int
    model: ScriptedModelServer
    _stop: Callable[[], None] = field(default=lambda: None)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def setup_link(self) -> str:
        return f"{self.url}/#setup={self.embedded.keyring.grant(SETUP)}"

    def api(self) -> httpx.Client:
        key = self.embedded.keyring.create(["owner"])[0]
        bearer = {"authorization": f"Bearer {key}"}
        return httpx.Client(base_url=self.url, headers=bearer, timeout=20)

    def write(self, document: str, text: str) -> None:
        """Somebody else's change."""
        with self.api() as api:
            found = api.get(f"/v1/documents/{document}")
            condition = {"if-none-match": "*"}
            if found.status_code == 200:
                condition = {"if-match": found.headers["etag"]}
            answer = api.put(f"/v1/documents/{document}", json={"text": text}, headers=condition)
            assert answer.status_code == 200

    def start(self) -> None:
        app = create_app(services_of(self.embedded))
        config = uvicorn.Config(app, port=self.port, log_level="error", ws="websockets-sansio")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)

        def stop() -> None:
            server.should_exit = True
            thread.join(10)

        self._stop = stop

    def stop(self) -> None:
        self._stop()


@contextmanager
def running(home: Path, *, with_model: bool) -> Iterator[Instar]:
    with ScriptedModelServer() as model, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        environ = {"INSTAR_EMBEDDINGS": "none"}
        if with_model:
            environ |= {
                "INSTAR_MODEL": "openai-chat/scripted",
                "INSTAR_MODEL_BASE_URL": model.base_url,
                "INSTAR_MODEL_API_KEY": "sk-test",
            }
        embedded = Embedded.open(str(home), MAIN_AGENT, environ)
        workers = Workers(embedded)
        workers.start()
        instar = Instar(embedded, port, model)
        instar.start()
        yield instar
        instar.stop()
        workers.stop()


@pytest.fixture
def instar(tmp_path: Path) -> Iterator[Instar]:
    """With a scripted model."""
    with running(tmp_path / "home", with_model=True) as instar:
        yield instar


@pytest.fixture
def new_instar(tmp_path: Path) -> Iterator[Instar]:
    """As on the first day: no model is set up."""
    with running(tmp_path / "home", with_model=False) as instar:
        yield instar


def watched(context: BrowserContext) -> Page:
    """A page whose console errors and policy violations are kept in `page.troubles`."""
    context.add_init_script(VIOLATIONS)
    page = context.new_page()
    page.set_default_timeout(10_000)
    troubles: list[str] = []
    page.on("console", lambda said: troubles.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.troubles = troubles  # type: ignore[attr-defined]  # the fixtures look at it
    return page


@pytest.fixture
def page(chromium: tuple[Any, Browser]) -> Iterator[Page]:
    """A desktop page that had no trouble when the test ends."""
    _, browser = chromium
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = watched(context)
    yield page
    assert page.troubles == []  # type: ignore[attr-defined]  # see `watched`
    assert page.evaluate("window.violations") == []
    context.close()


@pytest.fixture
def phone(chromium: tuple[Any, Browser]) -> Iterator[Page]:
    """A phone's page that had no trouble when the test ends."""
    playwright, browser = chromium
    device = dict(playwright.devices["iPhone 13"])
    device.pop("default_browser_type")
    context = browser.new_context(**device)
    page = watched(context)
    yield page
    assert page.troubles == []  # type: ignore[attr-defined]  # see `watched`
    assert page.evaluate("window.violations") == []
    context.close()
