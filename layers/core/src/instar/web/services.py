"""What the HTTP edge calls: the use cases that wiring gives it, nothing else.

The page, the API, the sockets and the command line over `--url` all go through these.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from instar.access.keyring import Keyring
from instar.conversation.ingest import Ingest
from instar.conversation.ports import Sessions, StopRequests, Turns
from instar.conversation.webhooks import Webhooks
from instar.ids import AgentId
from instar.memory.editor import MemoryEditor
from instar.memory.reader import MemoryReader
from instar.memory.recall import Recall
from instar.memory.removal import MemoryRemover
from instar.tools.outside import OutsideCalls


class Setup(Protocol):
    """The first-run page: which model answers, and whether it does."""

    def current(self) -> Mapping[str, Any]:
        """{"model","base_url","has_key","is_demo","telegram":{...}}: settings without secrets."""
        ...

    def models(self, base_url: str, key: str | None) -> list[str]:
        """The models that an OpenAI-compatible base URL lists. Raises InstarError."""
        ...

    def test(self, model: str, base_url: str, key: str | None) -> Mapping[str, Any]:
        """Asks the model for one word: {"ok":true,"reply","seconds"}. Raises InstarError."""
        ...

    def apply(self, model: str, base_url: str, key: str | None, tools: str | None) -> None:
        """Keeps settings (config.toml) and key (Secrets); the next turn uses them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The use cases behind the routes."""

    version: str
    agent: AgentId
    keyring: Keyring
    ingest: Ingest
    sessions: Sessions
    turns: Turns
    stops: StopRequests
    editor: MemoryEditor
    remover: MemoryRemover
    reader: MemoryReader
    recall: Recall
    outside: OutsideCalls
    webhooks: Webhooks
    setup: Setup
    doctor: Callable[[bool], Mapping[str, Any]]
    socket_url: Callable[[], str]
