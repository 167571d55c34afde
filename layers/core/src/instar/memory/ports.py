"""What memory needs from the outside. Each port has an AWS adapter and an embedded one.

A *key* names a document in the whole store ("agents/main/MEMORY.md", "config.toml"); a *document
name* ("MEMORY.md", "memory/travel.md") names it within one agent. Keys are made by
`instar.memory.documents`, never joined from a caller's text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from instar.ids import AgentId, CallId, CheckpointId, SessionId, TurnId

# --- documents -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One revision of a document, with its text."""

    key: str
    revision: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A current document; `token` changes whenever its content may have."""

    key: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A revision without its text; `deleted` marks the removal of the document."""

    revision: str
    at: datetime
    deleted: bool = False


class Documents(Protocol):
    """A versioned store of Markdown text: every put adds a revision, none replaces one."""

    def get(self, key: str, *, revision: str | None = None) -> Document:
        """The current text, or that of a revision, in any age.

        Raises NotFound (also for the revision of a removal), Invalid when it is not UTF-8 text.
        """
        ...

    def put(self, key: str, text: str, *, replaces: str | None) -> Document:
        """Writes a revision if the current one is still `replaces` (None: the document is absent).

        Raises Conflict otherwise, and nothing has changed; an absent document that should be
        replaced is a Conflict too.
        """
        ...

    def delete(self, key: str, *, replaces: str) -> str:
        """Removes the document, keeping its revisions; the removal's own revision is returned.

        Raises Conflict when the current revision is not `replaces`.
        """
        ...

    def list(self, prefix: str) -> Sequence[Listed]:
        """The current documents whose key starts with `prefix`, sorted by key."""
        ...

    def revisions(self, key: str) -> Sequence[Revision]:
        """All revisions, newest first, removals included; empty when there never was one."""
        ...


# --- the ledger ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One write (a checkpoint): who, why, from which revision to which.

    `effect` is the idempotency key of the call that caused it. `state` is `begun` until the write
    is known to have happened (`done`, with `after`) or not (`abandoned`). `added` and `removed`
    count lines. `digest` is the SHA-256 of the new text, "" for a removal.
    """

    checkpoint: CheckpointId
    key: str
    at: datetime
    author: str
    reason: str
    before: str | None
    digest: str
    after: str | None = None
    state: Literal["begun", "done", "abandoned"] = "begun"
    session: SessionId | None = None
    turn: TurnId | None = None
    call: CallId | None = None
    effect: str | None = None
    added: int = 0
    removed: int = 0


class Ledger(Protocol):
    """The append-only record of every write."""

    def begin(self, entry: LedgerEntry) -> LedgerEntry:
        """Records the intention. When `entry.effect` is known already, the row that stands under
        it is returned instead and nothing is written (an abandoned row gives its effect free). A
        row of the same checkpoint is replaced: a writer that lost a race tries anew under it.
        Raises Conflict when that checkpoint is done.
        """
        ...

    def finish(self, checkpoint: CheckpointId, *, after: str | None) -> None:
        """Marks the row done with the revision it led to, or abandoned when `after` is None.

        A checkpoint that never began is no error: its writer gave up before.
        """
        ...

    def entries(
        self, *, key: str | None = None, turn: TurnId | None = None, limit: int = 1000
    ) -> Sequence[LedgerEntry]:
        """Rows of one document, one turn or all, newest first."""
        ...

    def unfinished(self) -> Sequence[LedgerEntry]:
        """Rows still `begun`: what a crash may have left behind."""
        ...


class Tombstones(Protocol):
    """Marks (HMACs, never text) of statements that must not return."""

    def add(self, agent: AgentId, marks: Sequence[str]) -> None:
        """Remembers the marks; known ones are no error."""
        ...

    def known(self, agent: AgentId, marks: Sequence[str]) -> frozenset[str]:
        """Those of the marks that stand."""
        ...

    def lift(self, agent: AgentId, marks: Sequence[str]) -> None:
        """Removes the marks; unknown ones are no error."""
        ...


# --- the index -------------------------------------------------------------------------------

Kind = Literal["fact", "note", "daily", "transcript", "summary"]
Trust = Literal["owner", "agent", "extracted", "transcript", "imported"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A stretch of a document: what is indexed, found and cited. Lines count from 1, inclusive.

    `body` is the text without its speaker mark; `context` the two units before and after; `header`
    the title and headings above it with the date written out. `words` and `asks` (a bare question)
    feed the prior. `ordinal` is its place among the passages of its document.
    """

    id: str
    key: str
    agent: AgentId
    start_line: int
    end_line: int
    ordinal: int
    text: str
    body: str
    speaker: str
    context: str
    header: str
    kind: Kind
    trust: Trust
    revision: str
    at: datetime | None
    words: int
    asks: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A passage with its tokens by field and, once it has been computed, its unit vector.

    Fields: `body`, `speaker`, `context`, `header`, and `loose` (common words and single characters
    of the body: a question searches for such tokens only when it has nothing better).
    """

    passage: Passage
    tokens: Mapping[str, Sequence[str]]
    vector: Sequence[float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """A vector computed for a passage that was indexed without one."""

    passage: Passage
    vector: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexChanges:
    """What `apply` does to one document, at once.

    `upserts` replace entries of the same passage id; `moved` gives unchanged passages their new
    place (their tokens and vector stay); `drops` are passage ids; `vectors` adds vectors to
    entries that are there and still have the text and context the vector was computed for (others
    are passed over); an upsert without a vector loses the one it had. `document_tokens` are the
    tokens of the whole document (the files leg), None when they stay, empty when it goes.
    """

    key: str
    upserts: Sequence[Entry] = ()
    moved: Sequence[Passage] = ()
    drops: Sequence[str] = ()
    vectors: Sequence[Embedded] = ()
    document_tokens: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What the index holds of one passage."""

    passage: Passage
    has_vector: bool


@dataclass(frozen=True, slots=True)
class Counted:
    """How many passages of a document the index holds, and how many of them have a vector."""

    passages: int
    vectors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFilter:
    """The part of every query that keeps it in its scope: mandatory, in every leg.

    `since` and `until` are both inclusive and leave out passages without a time.
    """

    agent: AgentId
    key: str | None = None
    kinds: frozenset[Kind] | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexQuery:
    """Tokens of the question (repeats count) and its unit vector; either may be missing."""

    scope: IndexFilter
    tokens: Sequence[str]
    vector: Sequence[float] | None
    limit: int = 200


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage in one leg, with that leg's own score."""

    passage: Passage
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Legs:
    """The ranked legs of one round trip, best first; a leg that failed is None and named.

    `words` scores are boosted BM25 without the files leg; `files` gives each document's own BM25;
    `coverage` gives the share of the question's word weight (idf) that a passage's body holds.
    The counts say what there is in the scope, found or not. A leg not asked for is empty.
    """

    words: Sequence[Candidate] | None
    vectors: Sequence[Candidate] | None
    files: Mapping[str, float]
    coverage: Mapping[str, float]
    passage_count: int
    vector_count: int
    failed: Mapping[str, str] = field(default_factory=dict)


class SearchIndex(Protocol):
    """A projection of the documents that can be thrown away and made again.

    An index is made for one embedding fingerprint (its *generation*): vectors of another are
    neither shown by `held` nor searched.
    """

    def apply(self, changes: Sequence[IndexChanges]) -> None:
        """Applies the changes of some documents; searchable and durable when it returns.

        Applying the same changes twice is the same as once. A kill in the middle leaves what
        `held` shows to differ from the new passages wherever something is missing. Raises
        Unavailable.
        """
        ...

    def search(self, query: IndexQuery) -> Legs:
        """All legs in one round trip, each under the query's filter. Raises Unavailable only when
        no leg could answer.
        """
        ...

    def held(self, key: str) -> Sequence[Held]:
        """What is indexed of one document, in the order of its passages."""
        ...

    def keys(self) -> Mapping[str, Counted]:
        """Every document that the index holds something of."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestRow:
    """How far the index is with one document.

    `token` and `revision` are those last looked at. `pending` means words or vectors are missing;
    `failed` carries a reason that a person can act on. `generation` is the embedding fingerprint.
    """

    key: str
    token: str
    revision: str
    state: Literal["pending", "indexed", "failed"]
    generation: str
    passages: int = 0
    vectors: int = 0
    reason: str = ""


class Manifest(Protocol):
    """Which revision of each document the index holds: written after the index, never before."""

    def get(self, key: str) -> ManifestRow | None:
        """The row of a document, None when it was never looked at."""
        ...

    def put(self, row: ManifestRow) -> None:
        """Writes the row."""
        ...

    def drop(self, key: str) -> None:
        """Forgets the row of a document that is gone."""
        ...

    def rows(self) -> Sequence[ManifestRow]:
        """All rows, sorted by key."""
        ...


class Embeddings(Protocol):
    """Turns texts into unit vectors."""

    @property
    def fingerprint(self) -> str:
        """Provider, model, dimensions and normalisation: vectors of two fingerprints never mix."""
        ...

    def embed(self, texts: Sequence[str], *, query: bool) -> Sequence[Sequence[float]]:
        """One unit vector a text, in order. Raises Unavailable, Throttled, Misconfigured."""
        ...


class Nudge(Protocol):
    """Asks the one indexer to look at a key now; the change event remains the guarantee."""

    def __call__(self, key: str) -> None:
        """Returns at once; never raises for a nudge that got lost."""
        ...
