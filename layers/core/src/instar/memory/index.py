"""The indexer: brings the index level with the documents, whatever happened before.

An event means "look at this key", no more. `look` reads the current document, compares what the
index holds of it with the passages of the text (a pure plan: upsert, move, drop), applies the
difference, and repeats until nothing differs and the document has not changed meanwhile; only then
does the manifest say so. Words are searchable as soon as `look` returns; vectors are computed by
`embed_pending`, in batches, whenever there is time. `level` compares all documents with manifest
and index, and looks at those that differ: it repairs after a kill, a lost event, a damaged index.

Two processes may do all of this at once: whoever applies last also compares last.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from instar.clock import Deadline
from instar.errors import InstarError, NotFound, Refused, Unavailable
from instar.memory.analysis import Analyzer
from instar.memory.documents import agent_of, is_indexed, kind_of, split_key
from instar.memory.passages import Source, passages
from instar.memory.pending_vectors import (
    EmbedReport,
    PendingVectors,
    counted_row,
    generation_of,
)
from instar.memory.ports import (
    Counted,
    Document,
    Documents,
    Embeddings,
    Entry,
    Held,
    IndexChanges,
    Kind,
    Manifest,
    ManifestRow,
    Passage,
    SearchIndex,
    Trust,
)

LOOK_ROUNDS = 8
LEVEL_BATCH = 64
DROP_SHARE = 0.2
DROP_DOCUMENTS = 10
UNAVAILABLE_IN_A_ROW = 3

_log = logging.getLogger(__name__)
_TRUST: Mapping[Kind, Trust] = {"transcript": "transcript"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelReport:
    """What `level` found and did. `refused` are documents that it would not drop by itself."""

    looked_at: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[str, ...] = ()


def plan(
    key: str,
    old: Sequence[Held],
    new: Sequence[Passage],
    analyze: Callable[[Passage], Mapping[str, Sequence[str]]],
) -> IndexChanges:
    """The changes that turn what is held into the new passages; pure."""
    held = {each.passage.id: each.passage for each in old}
    upserts, moved = [], []
    for passage in new:
        known = held.pop(passage.id, None)
        if known is None or _searched(known) != _searched(passage):
            upserts.append(Entry(passage=passage, tokens=analyze(passage)))
        elif known != passage:
            moved.append(passage)
    return IndexChanges(key=key, upserts=upserts, moved=moved, drops=sorted(held))


def _searched(passage: Passage) -> tuple[str, ...]:
    """What tokens and vector are made of."""
    return passage.text, passage.body, passage.speaker, passage.context, passage.header


def passages_of(document: Document) -> list[Passage]:
    """The passages of a document as the index should hold them."""
    key = document.key
    kind = kind_of(key)
    source = Source(
        key=key,
        name=split_key(key)[1],
        agent=agent_of(key),
        kind=kind,
        trust=_TRUST.get(kind, "owner"),
        revision=document.revision,
        at=document.at,
    )
    return passages(document.text, source)


class Indexer:
    """Keeps one index level with the documents of all agents."""

    def __init__(
        self,
        documents: Documents,
        index: SearchIndex,
        manifest: Manifest,
        *,
        analyzer: Analyzer,
        embeddings: Embeddings | None = None,
    ) -> None:
        self._documents = documents
        self._index = index
        self._manifest = manifest
        self._analyzer = analyzer
        self._embeddings = embeddings

    def look(self, key: str) -> ManifestRow | None:
        """Makes the index equal to the current document; None when there is none.

        Idempotent. A document that cannot be read keeps what is indexed of it and its row says
        why. Raises Unavailable when index or store are down; what is missing is repaired later.
        """
        if not is_indexed(key):
            return None
        row = None
        for _ in range(LOOK_ROUNDS):
            token = self._token(key)
            if token is None:
                self._drop(key)
                return None
            try:
                document = self._documents.get(key)
            except NotFound:
                continue
            except Refused as error:
                return self._put(self._row(key, token, "", (), reason=error.detail))
            row = self._row(key, token, document.revision, self._bring_level(document))
            if self._token(key) == token:
                return self._put(row)
        if row is None:
            raise Unavailable(f"the document {key!r} comes and goes; it is looked at again later")
        return self._put(replace(row, state="pending", reason="it changes faster than it is read"))

    def level(self, prefix: str = "agents/", *, force: bool = False) -> LevelReport:
        """Looks at every document that differs and drops those that are gone.

        More than a fifth of the documents (and more than ten) at once are not dropped unless
        `force`d. One bad document never stops the others. Raises Unavailable when the index is
        down.
        """
        listed = {
            each.key: each.token for each in self._documents.list(prefix) if is_indexed(each.key)
        }
        rows = {row.key: row for row in self._manifest.rows() if row.key.startswith(prefix)}
        held = {k: each for k, each in self._index.keys().items() if k.startswith(prefix)}
        known = rows.keys() | held.keys()
        gone = sorted(known - listed.keys())
        refused = len(gone) > DROP_DOCUMENTS and len(gone) > DROP_SHARE * len(known) and not force
        differing = [
            key
            for key, token in listed.items()
            if self._differs(token, rows.get(key), held.get(key, Counted(0, 0)))
        ]
        failed: dict[str, str] = {}
        for start in range(0, len(differing), LEVEL_BATCH):
            batch = differing[start : start + LEVEL_BATCH]
            self._prepare(batch)
            for key in batch:
                self._look_guarded(key, failed)
        for key in () if refused else gone:
            self._look_guarded(key, failed)
        return LevelReport(
            looked_at=tuple(differing),
            dropped=() if refused else tuple(gone),
            failed=failed,
            refused=tuple(gone) if refused else (),
        )

    def embed_pending(self, deadline: Deadline) -> EmbedReport:
        """Computes vectors that are missing, batch by batch until the deadline; resumable.

        A failing embedder leaves the rows pending with its reason; a single text that it refuses
        is passed over.
        """
        if self._embeddings is None:
            return EmbedReport(embedded=0, pending=0)
        return PendingVectors(self._index, self._manifest, self._embeddings).compute(deadline)

    def drift(self, prefix: str = "agents/") -> Sequence[str]:
        """The documents whose index entries differ from what their current text gives.

        Documents that cannot be read are left out: their rows say why.
        """
        drifted = set(self._index.keys())
        for listed in self._documents.list(prefix):
            if not is_indexed(listed.key):
                continue
            drifted.discard(listed.key)
            try:
                document = self._documents.get(listed.key)
            except Refused:
                continue
            if self._differences(document, self._index.held(listed.key)):
                drifted.add(listed.key)
        return sorted(key for key in drifted if key.startswith(prefix))

    def _token(self, key: str) -> str | None:
        return next((each.token for each in self._documents.list(key) if each.key == key), None)

    def _differences(self, document: Document, held: Sequence[Held]) -> IndexChanges | None:
        new = passages_of(document)
        changes = plan(document.key, held, new, self._analyzer.fields)
        if not (changes.upserts or changes.moved or changes.drops):
            return None
        if not (changes.upserts or changes.drops):
            return changes
        name = split_key(document.key)[1]
        words = self._analyzer.document(name, document.text) if new else []
        return replace(changes, document_tokens=words)

    def _bring_level(self, document: Document) -> Sequence[Held]:
        """Applies differences until there is none; what is then held."""
        for _ in range(LOOK_ROUNDS):
            held = self._index.held(document.key)
            changes = self._differences(document, held)
            if changes is None:
                return held
            self._index.apply([changes])
        raise Unavailable(f"the index does not keep what is written of {document.key!r}")

    def _drop(self, key: str) -> None:
        held = self._index.held(key)
        ids = [each.passage.id for each in held]
        self._index.apply([IndexChanges(key=key, drops=ids, document_tokens=())])
        self._manifest.drop(key)

    def _row(
        self, key: str, token: str, revision: str, held: Sequence[Held], *, reason: str = ""
    ) -> ManifestRow:
        listed = ManifestRow(
            key=key, token=token, revision=revision, state="failed", generation="", reason=reason
        )
        return listed if reason else counted_row(listed, held, self._embeddings)

    def _put(self, row: ManifestRow) -> ManifestRow:
        self._manifest.put(row)
        return row

    def _differs(self, token: str, row: ManifestRow | None, held: Counted) -> bool:
        if row is None or row.token != token or row.state == "failed":
            return True
        if row.passages != held.passages or row.generation != generation_of(self._embeddings):
            return True
        return self._embeddings is not None and row.vectors != held.vectors

    def _prepare(self, keys: Sequence[str]) -> None:
        """Applies the differences of many documents at once, so that `look` finds them done.

        Only a saving of time: what cannot be read or applied here, `look` meets again.
        """
        together = []
        for key in keys if len(keys) > 1 else ():
            try:
                changes = self._differences(self._documents.get(key), self._index.held(key))
            except (InstarError, ValueError, OSError):
                continue
            together += [changes] if changes else []
        if together:
            try:
                self._index.apply(together)
            except (InstarError, ValueError, OSError) as error:
                _log.warning("not indexed together, trying one by one: %s", error)

    def _look_guarded(self, key: str, failed: dict[str, str]) -> None:
        try:
            row = self.look(key)
        except Unavailable as error:
            failed[key] = error.detail
            if len(failed) >= UNAVAILABLE_IN_A_ROW and set(failed.values()) == {error.detail}:
                raise
        except (InstarError, ValueError, OSError) as error:
            failed[key] = str(error)
        else:
            if row is not None and row.state == "failed":
                failed[key] = row.reason
