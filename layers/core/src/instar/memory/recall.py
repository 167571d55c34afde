"""Search by question: the only reader of the index, for tools, prefetch, pages and plans alike.

It takes a Principal and puts its scope into every leg of the query. Any Unicode string is a legal
question; what is longer than QUERY_CHARACTERS is cut. When one leg fails the other answers, and
the answer says so; when nothing is found it says why. No indexing happens on this path.
"""

import logging
import queue
import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from instar.errors import InstarError, Invalid
from instar.memory.analysis import Analyzer
from instar.memory.documents import document_key, split_key
from instar.memory.ports import Embeddings, IndexFilter, IndexQuery, Kind, Legs, SearchIndex, Trust
from instar.memory.ranking import Ranked, rank
from instar.memory.results import Result
from instar.principal import Principal

QUERY_CHARACTERS = 10_000
QUERY_TOKENS = 200
EMBEDDED_CHARACTERS = 2_000
LIMIT = 50
DEFAULT_LIMIT = 10
VECTOR_WAIT = timedelta(seconds=2)

Mode = Literal["hybrid", "words", "vectors"]
_log = logging.getLogger(__name__)


class SearchRequest(BaseModel):
    """A question and what narrows it. `since` and `until` are inclusive."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: str
    limit: int = DEFAULT_LIMIT
    document: str | None = None
    kind: Kind | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    explain: bool = False


class Explained(Result):
    """How a hit came to its place."""

    fused: float
    prior: float
    coverage: float
    words_rank: int | None
    words_score: float
    file_score: float
    vectors_rank: int | None
    cosine: float


class Hit(Result):
    """A passage found. `score` is absolute, from 0 to 1; the order is not by it alone."""

    document: str
    lines: tuple[int, int]
    text: str
    score: float
    revision: str
    passage: str
    kind: Kind
    trust: Trust
    explain: Explained | None = Field(default=None, exclude_if=lambda value: value is None)


class Found(Result):
    """The hits, how they were looked for, and what a reader should know about that."""

    hits: tuple[Hit, ...]
    mode: Mode
    degraded: bool
    reason: str


class Recall:
    """Answers questions from the index, for one Principal at a time."""

    def __init__(
        self,
        index: SearchIndex,
        *,
        analyzer: Analyzer,
        embeddings: Embeddings | None = None,
        vector_floor: float = 0.0,
        vector_wait: timedelta = VECTOR_WAIT,
    ) -> None:
        self._index = index
        self._analyzer = analyzer
        self._embeddings = embeddings
        self._vector_floor = vector_floor
        self._vector_wait = vector_wait

    def search(self, principal: Principal, request: SearchRequest) -> Found:
        """The best passages of the principal's agent, best first.

        A larger limit only extends the list. Raises Forbidden, Invalid (limit, document) and
        Unavailable when neither words nor vectors can answer.
        """
        principal.require_private_memory()
        if not 1 <= request.limit <= LIMIT:
            raise Invalid(f"limit {request.limit} is out of range", fix=f"Use 1 to {LIMIT}.")
        scope = _scope(principal, request)
        tokens = self._analyzer.question(request.query[:QUERY_CHARACTERS])[:QUERY_TOKENS]
        vector, trouble = self._vector(request.query, tokens)
        legs = self._index.search(IndexQuery(scope=scope, tokens=tokens, vector=vector))
        ranked = rank(request.query, legs, floor=self._vector_floor)
        mode = _mode(legs, has_vector=vector is not None)
        notes = [*([trouble] if trouble else []), *legs.failed.values()]
        if self._embeddings and not trouble and legs.vector_count < legs.passage_count:
            lacking = legs.passage_count - legs.vector_count
            notes.append(f"{lacking} of {legs.passage_count} passages have no vector yet")
        degraded = bool(notes)
        if not ranked:
            notes.insert(0, self._why_nothing(tokens, legs))
        hits = tuple(_hit(each, explain=request.explain) for each in ranked[: request.limit])
        return Found(hits=hits, mode=mode, degraded=degraded, reason="; ".join(notes))

    def _vector(self, query: str, tokens: Sequence[str]) -> tuple[Sequence[float] | None, str]:
        """The question's vector, or None and what is wrong; never waits longer than allowed."""
        if self._embeddings is None or not tokens:
            return None, ""
        embeddings = self._embeddings
        answers: queue.SimpleQueue[Sequence[float] | InstarError] = queue.SimpleQueue()

        def embed() -> None:
            try:
                answers.put(embeddings.embed([query[:EMBEDDED_CHARACTERS]], query=True)[0])
            except InstarError as error:
                answers.put(error)

        threading.Thread(target=embed, name="embed-question", daemon=True).start()
        seconds = self._vector_wait.total_seconds()
        try:
            answer = answers.get(timeout=seconds)
        except queue.Empty:
            return None, f"the embedder did not answer within {seconds:g} seconds"
        if isinstance(answer, InstarError):
            _log.warning("search by words alone: %s", answer.detail)
            return None, f"the embedder failed: {answer.detail}"
        return answer, ""

    def _why_nothing(self, tokens: Sequence[str], legs: Legs) -> str:
        if not tokens:
            return "the question holds no word to look for"
        if not legs.passage_count:
            return "nothing is indexed in this scope"
        below = len(legs.vectors or ())
        if below:
            return (
                f"no passage holds a word of the question and none is near enough in meaning "
                f"({below} candidates below the floor of {self._vector_floor:g})"
            )
        return f"none of {legs.passage_count} passages holds a word of the question"


def _scope(principal: Principal, request: SearchRequest) -> IndexFilter:
    key = None if request.document is None else document_key(principal.agent, request.document)
    return IndexFilter(
        agent=principal.agent,
        key=key,
        kinds=None if request.kind is None else frozenset({request.kind}),
        since=request.since,
        until=request.until,
    )


def _mode(legs: Legs, *, has_vector: bool) -> Mode:
    by_vectors = has_vector and legs.vectors is not None and legs.vector_count > 0
    if legs.words is None:
        return "vectors"
    return "hybrid" if by_vectors else "words"


def _hit(each: Ranked, *, explain: bool) -> Hit:
    passage = each.passage
    explained = Explained(
        fused=each.fused,
        prior=each.prior,
        coverage=each.coverage,
        words_rank=each.words_rank,
        words_score=each.words_score,
        file_score=each.file_score,
        vectors_rank=each.vectors_rank,
        cosine=each.cosine,
    )
    return Hit(
        document=split_key(passage.key)[1],
        lines=(passage.start_line, passage.end_line),
        text=passage.text,
        score=each.score,
        revision=passage.revision,
        passage=passage.id,
        kind=passage.kind,
        trust=passage.trust,
        explain=explained if explain else None,
    )
