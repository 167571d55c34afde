"""Memory in a stack: documents in S3, index in OpenSearch, the indexer nudged in its function."""

import random
from dataclasses import dataclass
from functools import cached_property

from instar.adapters.aws.nudge import LambdaNudge
from instar.adapters.builtin.packaged_embeddings import COSINE_FLOOR, PackagedEmbeddings
from instar.clock import sleep, utc_now
from instar.ids import new_id
from instar.memory.analysis import Analyzer
from instar.memory.asking import IndexMark
from instar.memory.editor import MemoryEditor
from instar.memory.index import Indexer
from instar.memory.ports import Embeddings, SearchIndex
from instar.memory.reader import MemoryReader
from instar.memory.recall import Recall
from instar.memory.removal import MemoryRemover
from instar.memory.similar import Similar, similar_claims
from instar.memory.write import Writer
from instar.wiring.aws_stores import AwsStores
from instar.wiring.embeddings import build_embeddings
from instar.wiring.search_engine import build_opensearch


@dataclass(frozen=True)
class AwsMemory:
    """The use cases of memory over the stores of a stack."""

    stores: AwsStores

    @cached_property
    def embeddings(self) -> Embeddings | None:
        """What makes vectors; None is keyword-only."""
        source = self.stores.settings_source
        return build_embeddings(source.settings(), source.secret, self.stores.egress)

    @cached_property
    def analyzer(self) -> Analyzer:
        """Text to tokens."""
        return Analyzer()

    @cached_property
    def index(self) -> SearchIndex:
        """The engine."""
        generation = self.embeddings.fingerprint if self.embeddings else ""
        return build_opensearch(self.stores.settings_source.settings(), generation=generation)

    @cached_property
    def indexer(self) -> Indexer:
        """Brings the index level with the documents."""
        return Indexer(
            self.stores.documents,
            self.index,
            self.stores.manifest,
            analyzer=self.analyzer,
            embeddings=self.embeddings,
        )

    @cached_property
    def recall(self) -> Recall:
        """The one reader by question."""
        packaged = isinstance(self.embeddings, PackagedEmbeddings)
        return Recall(
            self.index,
            analyzer=self.analyzer,
            embeddings=self.embeddings,
            vector_floor=COSINE_FLOOR if packaged else 0.0,
        )

    @cached_property
    def similar(self) -> Similar:
        """Statements in similar words."""
        return similar_claims(Recall(self.index, analyzer=self.analyzer, embeddings=None))

    @cached_property
    def writer(self) -> Writer:
        """The one write path."""
        return Writer(
            self.stores.documents,
            self.stores.ledger,
            clock=utc_now,
            new_id=new_id,
            sleep=sleep,
            jitter=random.random,
        )

    @cached_property
    def mark(self) -> IndexMark:
        """How a change learns that it can be found."""
        function = self.stores.environ["INDEXER_FUNCTION"]
        return IndexMark(
            revisions=self.stores.documents.revisions,
            nudge=LambdaNudge(self.stores.clients.functions(), function),
            manifest=self.stores.manifest,
            clock=utc_now,
            sleep=sleep,
        )

    @cached_property
    def editor(self) -> MemoryEditor:
        """Changes of memory."""
        return MemoryEditor(
            self.stores.documents,
            self.writer,
            tombstones=self.stores.tombstones,
            mark_key=self.stores.settings_source.mark_key,
            index=self.mark,
            similar=self.similar,
        )

    @cached_property
    def remover(self) -> MemoryRemover:
        """Removals from memory."""
        return MemoryRemover(
            self.stores.documents,
            self.writer,
            tombstones=self.stores.tombstones,
            mark_key=self.stores.settings_source.mark_key,
            index=self.mark,
            similar=self.similar,
        )

    @cached_property
    def reader(self) -> MemoryReader:
        """Documents by name."""
        return MemoryReader(self.stores.documents, self.stores.ledger)
