"""A real OpenSearch node at OPENSEARCH_URL, an index of its own for each test, and a whole memory
that the same documents go into by either engine."""

import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from opensearchpy import OpenSearch

from instar.adapters.aws.opensearch_client import opensearch_client
from instar.adapters.aws.opensearch_index import OpenSearchIndex
from instar.adapters.builtin.index import BuiltinIndex
from instar.adapters.local.database import Database
from instar.adapters.local.folder_documents import FolderDocuments
from instar.adapters.local.sqlite_ledger import SqliteManifest
from instar.clock import Deadline, utc_now
from instar.ids import MAIN_AGENT
from instar.memory.analysis import Analyzer
from instar.memory.index import Indexer
from instar.memory.ports import Embeddings, SearchIndex
from instar.memory.recall import Hit, Recall, SearchRequest
from instar.principal import owner

ANALYZER = Analyzer()


@pytest.fixture(scope="session")
def url() -> str:
    """The node's address; without one the suite is skipped, in CI it fails."""
    found = os.environ.get("OPENSEARCH_URL")
    if found:
        return found
    reason = "OPENSEARCH_URL is not set: start a node with `make opensearch-test`"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def client(url: str) -> Iterator[OpenSearch]:
    client = opensearch_client(url)
    yield client
    client.close()


@pytest.fixture
def prefix(client: OpenSearch) -> Iterator[str]:
    """A name that no other test has; what stands under it is removed."""
    prefix = f"test-{uuid.uuid4().hex[:12]}"
    yield prefix
    for name in client.indices.get(index=f"{prefix}-*"):
        client.indices.delete(index=name)


@pytest.fixture
def opened(client: OpenSearch, prefix: str) -> Callable[[str], OpenSearchIndex]:
    """Opens the index as a process with this embedding fingerprint would."""
    return lambda generation="": OpenSearchIndex(
        client, prefix=prefix, generation=generation, search_seconds=60
    )


@dataclass
class Memory:
    """Documents, an index of them and the reader, in a home of its own."""

    folder: Path
    index: SearchIndex
    embeddings: Embeddings | None = None

    def __post_init__(self) -> None:
        self.database = Database(self.folder / "instar.db")
        self.indexer = Indexer(
            FolderDocuments(self.folder, utc_now),
            self.index,
            SqliteManifest(self.database),
            analyzer=ANALYZER,
            embeddings=self.embeddings,
        )
        self.recall = Recall(self.index, analyzer=ANALYZER, embeddings=self.embeddings)

    def write(self, name: str, text: str) -> str:
        key = f"agents/main/{name}"
        path = self.folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return key

    def level(self) -> None:
        """Words and vectors of all documents, as the reconciler brings them in."""
        assert self.indexer.level().failed == {}
        assert self.indexer.embed_pending(Deadline.after(600, utc_now)).pending == 0

    def search(self, question: str, limit: int = 10) -> tuple[Hit, ...]:
        request = SearchRequest(query=question, limit=limit)
        return self.recall.search(owner(MAIN_AGENT), request).hits

    def found(self, question: str) -> list[str]:
        return [hit.text for hit in self.search(question)]


@pytest.fixture
def remember(
    tmp_path: Path, opened: Callable[[str], OpenSearchIndex]
) -> Iterator[Callable[..., Memory]]:
    """Makes a memory on one of the engines."""
    made = list[Memory]()

    def remember(engine: str = "opensearch", embeddings: Embeddings | None = None) -> Memory:
        folder = tmp_path / f"{engine}-{len(made)}"
        folder.mkdir()
        generation = embeddings.fingerprint if embeddings else ""
        index: SearchIndex = opened(generation)
        if engine == "builtin":
            index = BuiltinIndex(folder / "index", generation=generation, analyzer=ANALYZER)
        made.append(Memory(folder, index, embeddings))
        return made[-1]

    yield remember
    for memory in made:
        memory.database.close()
