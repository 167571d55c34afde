"""Vectors that are still missing, computed in batches when there is time; words never wait for it.

Each batch is applied before the next is computed, so that a kill loses one batch at most.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from instar.clock import Deadline
from instar.errors import InstarError, Refused
from instar.memory.passages import embedded_text
from instar.memory.ports import (
    Embedded,
    Embeddings,
    Held,
    IndexChanges,
    Manifest,
    ManifestRow,
    Passage,
    SearchIndex,
)

EMBED_BATCH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedReport:
    """How many vectors were computed, how many are still missing, and why if something is wrong."""

    embedded: int
    pending: int
    reason: str = ""


def generation_of(embeddings: Embeddings | None) -> str:
    """The fingerprint that manifest rows are written under; "" without an embedder."""
    return embeddings.fingerprint if embeddings else ""


def counted_row(
    row: ManifestRow, held: Sequence[Held], embeddings: Embeddings | None
) -> ManifestRow:
    """The row with what the index holds by now."""
    vectors = sum(each.has_vector for each in held)
    lacks = embeddings is not None and vectors < len(held)
    return replace(
        row,
        state="pending" if lacks else "indexed",
        generation=generation_of(embeddings),
        passages=len(held),
        vectors=vectors,
        reason="",
    )


class PendingVectors:
    """Finds rows that lack vectors and computes them."""

    def __init__(self, index: SearchIndex, manifest: Manifest, embeddings: Embeddings) -> None:
        self._index = index
        self._manifest = manifest
        self._embeddings = embeddings

    def compute(self, deadline: Deadline) -> EmbedReport:
        """Computes what it can until the deadline; a failing embedder leaves rows pending."""
        embedded, pending, reasons, is_down = 0, 0, list[str](), False
        for row in self._manifest.rows():
            is_old = row.generation != self._embeddings.fingerprint
            if row.state == "failed" or (row.vectors >= row.passages and not is_old):
                continue
            if is_down or deadline.has_passed():
                pending += row.passages if is_old else row.passages - row.vectors
                continue
            done, reason, is_down = self._compute(row.key, deadline)
            embedded, pending = embedded + done, pending + self._count(row.key, reason)
            reasons += [reason] if reason else []
        return EmbedReport(embedded=embedded, pending=pending, reason=reasons[0] if reasons else "")

    def _compute(self, key: str, deadline: Deadline) -> tuple[int, str, bool]:
        """Vectors computed, a reason if some could not be, and whether the embedder is down."""
        lacking = [each.passage for each in self._index.held(key) if not each.has_vector]
        done, reason = 0, ""
        for batch in _batches(lacking):
            if deadline.has_passed():
                break
            try:
                vectors, refused = self._embed(batch)
            except InstarError as error:
                return done, error.detail, True
            reason = refused or reason
            self._index.apply([IndexChanges(key=key, vectors=vectors)])
            done += len(vectors)
        return done, reason, False

    def _embed(self, batch: Sequence[Passage]) -> tuple[list[Embedded], str]:
        """The vectors of a batch; of texts that the embedder refuses, one by one, the reason."""
        try:
            vectors = self._embeddings.embed([embedded_text(p) for p in batch], query=False)
        except Refused as error:
            if len(batch) == 1:
                return [], error.detail
            found, reason = list[Embedded](), ""
            for passage in batch:
                one, refused = self._embed([passage])
                found, reason = found + one, refused or reason
            return found, reason
        pairs = zip(batch, vectors, strict=True)
        return [Embedded(passage=passage, vector=vector) for passage, vector in pairs], ""

    def _count(self, key: str, reason: str) -> int:
        """Brings the counts of a row up to date; how many vectors are missing."""
        row = self._manifest.get(key)
        if row is None:
            return 0
        counted = counted_row(row, self._index.held(key), self._embeddings)
        self._manifest.put(replace(counted, reason=reason if counted.state == "pending" else ""))
        return counted.passages - counted.vectors


def _batches(lacking: Sequence[Passage]) -> Iterator[Sequence[Passage]]:
    for start in range(0, len(lacking), EMBED_BATCH):
        yield lacking[start : start + EMBED_BATCH]
