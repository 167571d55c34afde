"""Memory on one home: documents, write path, index, recall. Built when first used."""

import logging
import random
from dataclasses import dataclass
from functools import cached_property

from instar.adapters.builtin.index import BuiltinIndex
from instar.adapters.builtin.packaged_embeddings import COSINE_FLOOR, PackagedEmbeddings
from instar.adapters.local.sqlite_ledger import SqliteTombstones
from instar.clock import sleep, utc_now
from instar.errors import InstarError
from instar.ids import new_id
from instar.memory.analysis import Analyzer
from instar.memory.asking import IndexMark
from instar.memory.documents import is_indexed
from instar.memory.editor import MemoryEditor
from instar.memory.index import Indexer
from instar.memory.ports import Embeddings
from instar.memory.reader import MemoryReader
from instar.memory.recall import Recall
from instar.memory.removal import MemoryRemover
from instar.memory.similar import Similar, similar_claims
from instar.memory.write import Writer
from instar.wiring.embeddings import build_embeddings
from instar.wiring.home_stores import HomeStores

NO_EMBEDDINGS = ""
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HomeMemory:
    """The use cases of memory over the stores of a home."""

    stores: HomeStores

    @cached_property
    def embeddings(self) -> Embeddings | None:
        """What makes vectors; None is keyword-only."""
        return build_embeddings(self.stores.settings(), self.stores.secret, self.stores.egress)

    @cached_property
    def analyzer(self) -> Analyzer:
        """Text to tokens."""
        return Analyzer()

    @cached_property
    def index(self) -> BuiltinIndex:
        """The builtin engine."""
        generation = self.embeddings.fingerprint if self.embeddings else NO_EMBEDDINGS
        return BuiltinIndex(self.stores.home.index, generation=generation, analyzer=self.analyzer)

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
        return IndexMark(
            revisions=self.stores.documents.revisions,
            nudge=self.nudge,
            manifest=self.stores.manifest,
            clock=utc_now,
            sleep=sleep,
        )

    @cached_property
    def similar(self) -> Similar:
        """Statements in similar words."""
        return similar_claims(Recall(self.index, analyzer=self.analyzer, embeddings=None))

    @cached_property
    def editor(self) -> MemoryEditor:
        """Changes of memory."""
        return MemoryEditor(
            self.stores.documents,
            self.writer,
            tombstones=SqliteTombstones(self.stores.database),
            mark_key=self.stores.mark_key,
            index=self.mark,
            similar=self.similar,
        )

    @cached_property
    def remover(self) -> MemoryRemover:
        """Removals from memory."""
        return MemoryRemover(
            self.stores.documents,
            self.writer,
            tombstones=SqliteTombstones(self.stores.database),
            mark_key=self.stores.mark_key,
            index=self.mark,
            similar=self.similar,
        )

    @cached_property
    def reader(self) -> MemoryReader:
        """Documents by name."""
        return MemoryReader(self.stores.documents, self.stores.ledger)

    def nudge(self, key: str) -> None:
        """Embedded, the nudge does the indexer's work at once; processes take turns by a lock.

        The write stands already, so trouble with the index is no trouble of the writer's.
        """
        try:
            if is_indexed(key):
                self.indexer.look(key)
        except InstarError as error:
            log.warning("not_indexed", extra={"key": key, "detail": error.detail})

    def rebuild(self) -> dict[str, int]:
        """Makes every index entry anew from the documents."""
        for row in self.stores.manifest.rows():
            self.stores.manifest.drop(row.key)
        self.index.clear()
        report = self.indexer.level(force=True)
        return {"documents": len(report.looked_at), "failed": len(report.failed)}
