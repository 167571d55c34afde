"""The deployed stack, a model and a Bot API: what the cloud suite drives over the wire.

The stack has ports of its own (INSTAR_CLOUD_TEST_PORT, 4588, and the next one for OpenSearch) and
goes away with the session, unless INSTAR_CLOUD_TEST_KEEP is set: then the next run only brings it
up to date. Model and Bot API live in the test process; the deployment is told their addresses.
"""

import itertools
import os
import shutil
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from instar.testing.wire import BotApiServer
from tests.cloud.model_server import ConversingModelServer
from tests.cloud.stack import Stack
from tests.cloud.telegram import OWNER, SECRET, TOKEN, Chat

HERE = Path(__file__).parent
NEEDED = ("java", "javac", "mvn")
WEBHOOK_SECRET = "generic-secret"
NUMBERS = itertools.count(int(time.time()))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The end of the stack comes last, whatever else is selected."""
    items.sort(key=lambda item: item.path == HERE / "test_end.py")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows what the functions wrote meanwhile."""
    report = yield
    stack = getattr(item, "funcargs", {}).get("stack")
    if report.failed and isinstance(stack, Stack):
        try:
            report.sections.append(("logs of the functions", stack.logs(call.start)[-20_000:]))
        except Exception as error:
            report.sections.append(("logs of the functions", f"cannot be read: {error}"))
    return report


@pytest.fixture(scope="session")
def model_server() -> Iterator[ConversingModelServer]:
    with ConversingModelServer() as server:
        yield server


@pytest.fixture(scope="session")
def bot() -> Iterator[BotApiServer]:
    with BotApiServer() as server:
        yield server


@pytest.fixture(scope="session")
def stack(model_server: ConversingModelServer, bot: BotApiServer) -> Iterator[Stack]:
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        reason = f"the local cloud's OpenSearch node needs {', '.join(missing)} (JDK 17, Maven)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    settings = {
        "INSTAR_MODEL": "openai-chat/scripted",
        "INSTAR_MODEL_BASE_URL": model_server.base_url,
        "INSTAR_EMBEDDINGS": "none",
        "INSTAR_TELEGRAM_API_BASE": bot.url,
        "INSTAR_TELEGRAM_OWNER": str(OWNER),
        "INSTAR_TELEGRAM_TOKEN": TOKEN,
        "INSTAR_TELEGRAM_SECRET": SECRET,
        "INSTAR_WEBHOOK_SECRET": WEBHOOK_SECRET,
    }
    started = Stack(int(os.environ.get("INSTAR_CLOUD_TEST_PORT") or "4588"), settings)
    started.tell("up")
    yield started
    if not os.environ.get("INSTAR_CLOUD_TEST_KEEP"):
        started.tell("down")


@pytest.fixture
def model(model_server: ConversingModelServer) -> Iterator[ConversingModelServer]:
    """The model; what it was told to say has to have been asked for, and nothing else."""
    model_server.settle()
    yield model_server
    problems = model_server.settle()
    assert not problems, problems


@pytest.fixture(scope="session")
def owner(stack: Stack) -> Iterator[httpx.Client]:
    """HTTP with the owner's key."""
    with stack.http(stack.key) as client:
        yield client


@pytest.fixture(scope="session")
def anybody(stack: Stack) -> Iterator[httpx.Client]:
    """HTTP without a key."""
    with stack.http() as client:
        yield client


@pytest.fixture
def caller(stack: Stack) -> Iterator[Callable[[str], httpx.Client]]:
    """HTTP with another key."""
    with ExitStack() as opened:
        yield lambda key: opened.enter_context(stack.http(key))


@pytest.fixture
def word() -> str:
    """A word that stands nowhere else; it holds no digit, so no analysis takes it apart."""
    return "".join(chr(ord("a") + int(digit, 16)) for digit in uuid.uuid4().hex[:14])


@pytest.fixture
def new_chat(anybody: httpx.Client, bot: BotApiServer) -> Callable[..., Chat]:
    """A private chat that nobody used, with the owner or with somebody else."""

    def make(sender: int = OWNER) -> Chat:
        return Chat(anybody, bot, next(NUMBERS), sender, lambda: next(NUMBERS))

    return make
