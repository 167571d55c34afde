"""A whole memory in a temporary home: real folder, real SQLite, real index; vectors by a server
that counts words into buckets, behind the real adapter."""

import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from instar.adapters.builtin.index import BuiltinIndex
from instar.adapters.llm.openai_embeddings import OpenAIEmbeddings
from instar.adapters.local.database import Database
from instar.adapters.local.folder_documents import FolderDocuments
from instar.adapters.local.sqlite_ledger import SqliteManifest
from instar.clock import Deadline
from instar.ids import MAIN_AGENT, AgentId
from instar.memory.analysis import Analyzer
from instar.memory.index import Indexer
from instar.memory.ports import Embeddings
from instar.memory.recall import Found, Recall, SearchRequest
from instar.principal import owner

NOW = datetime(2031, 5, 4, 12, 30, tzinfo=UTC)


def frozen() -> datetime:
    return NOW


@dataclass
class VectorServer:
    """Answers /embeddings with hashed word counts, or with a status that a test sets."""

    dimensions: int = 64
    status: int = 200
    refuses: str = "\0"
    texts: list[str] = field(default_factory=list)
    before: Callable[[], None] = lambda: None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        asked = json.loads(request.content)["input"]
        self.before()
        if self.status != 200:
            return httpx.Response(self.status, json={"error": {"code": "insufficient_quota"}})
        if any(self.refuses in text for text in asked):
            return httpx.Response(400, json={"error": {"message": "too long"}})
        self.texts += asked
        rows = [
            {"index": number, "embedding": self._vector(text)} for number, text in enumerate(asked)
        ]
        return httpx.Response(200, json={"data": rows[::-1]})

    def _vector(self, text: str) -> list[float]:
        vector = [0.01] * self.dimensions
        for word in text.lower().split():
            vector[zlib.crc32(word.strip(".?!,*:-").encode()) % self.dimensions] += 1
        return vector

    def embeddings(self, model: str = "buckets") -> OpenAIEmbeddings:
        client = httpx.Client(transport=httpx.MockTransport(self))
        return OpenAIEmbeddings(client, base_url="http://vectors.test", model=model)


@dataclass
class Home:
    """What stands in one home, opened as one process would."""

    path: Path
    analyzer: Analyzer
    database: Database

    def __post_init__(self) -> None:
        self.documents = FolderDocuments(self.path, frozen)
        self.manifest = SqliteManifest(self.database)
        self.opened(None)

    def opened(self, embeddings: Embeddings | None) -> "Home":
        """Index, indexer and reader as after a start with this embedder."""
        generation = embeddings.fingerprint if embeddings else "none"
        self.index = BuiltinIndex(
            self.path / "index", generation=generation, analyzer=self.analyzer
        )
        self.indexer = Indexer(
            self.documents,
            self.index,
            self.manifest,
            analyzer=self.analyzer,
            embeddings=embeddings,
        )
        self.recall = Recall(self.index, analyzer=self.analyzer, embeddings=embeddings)
        return self

    def write(self, name: str, text: str | bytes, *, agent: str = "main") -> str:
        """A document written by hand, in an editor."""
        key = f"agents/{agent}/{name}"
        path = self.path / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return key

    def remove(self, name: str) -> None:
        (self.path / "agents" / "main" / name).unlink()

    def embed(self) -> None:
        self.indexer.embed_pending(Deadline.after(60, frozen))

    def search(self, query: str, *, agent: str = "main", **narrowed: object) -> Found:
        request = SearchRequest.model_validate({"query": query, **narrowed})
        return self.recall.search(owner(AgentId(agent) if agent else MAIN_AGENT), request)

    def found(self, query: str, **narrowed: object) -> list[str]:
        """The documents of the hits, best first, each once."""
        return list(dict.fromkeys(hit.document for hit in self.search(query, **narrowed).hits))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    database = Database(tmp_path / "instar.db")
    yield Home(tmp_path, Analyzer(), database)
    database.close()


@pytest.fixture
def server() -> VectorServer:
    return VectorServer()
