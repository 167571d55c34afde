"""The engine `builtin`: words by tantivy, vectors by NumPy, in one folder, without a server.

    folder/lock               held by the one writer of the moment, in any process
    folder/words-N, files-N   tantivy: passages, whole documents (N: version of layout and analysis)
    folder/vectors-<hash>     the vectors of one embedding fingerprint

A change is applied in an order that a kill anywhere leaves repairable: files, vectors, words. The
words are what `held` shows, so whatever is missing still looks like a difference to the indexer.
A folder that cannot be read is set aside and begun anew: the indexer fills it from the documents.
"""

import fcntl
import hashlib
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from instar.adapters.builtin.errors import DamagedIndex
from instar.adapters.builtin.vectors import VectorSegments
from instar.adapters.builtin.words import FileIndex, WordIndex
from instar.errors import Unavailable
from instar.memory.analysis import ANALYSIS_VERSION, Analyzer
from instar.memory.documents import agent_of
from instar.memory.ports import (
    Candidate,
    Counted,
    Embedded,
    Entry,
    Held,
    IndexChanges,
    IndexQuery,
    Legs,
    Passage,
)

LAYOUT_VERSION = 1
KEPT_GENERATIONS = 2
_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")


class BuiltinIndex:
    """A SearchIndex in a folder. May be shared between threads and opened by many processes."""

    def __init__(self, folder: Path, *, generation: str, analyzer: Analyzer) -> None:
        self._folder = folder
        self._analyzer = analyzer
        version = f"{LAYOUT_VERSION}.{ANALYSIS_VERSION}"
        self._parts = (folder / f"words-{version}", folder / f"files-{version}")
        self._generation = f"vectors-{hashlib.sha256(generation.encode()).hexdigest()[:16]}"
        self._open()

    def apply(self, changes: Sequence[IndexChanges]) -> None:
        """Applies the changes of some documents; searchable and durable when it returns."""
        with self._writing():
            try:
                self._apply(changes)
            except DamagedIndex as error:
                if self._is_readable():
                    raise
                self._set_aside(error)
                self._apply(changes)

    def search(self, query: IndexQuery) -> Legs:
        """All legs in one round trip, each under the query's filter."""
        failed: dict[str, str] = {}
        words = self._leg("words", failed, lambda: self._search_words(query))
        files = self._leg("files", failed, lambda: self._search_files(query))
        vectors = self._leg("vectors", failed, lambda: self._search_vectors(query))
        if words is None and vectors is None:
            raise Unavailable(
                "the index cannot be read: " + "; ".join(failed.values()),
                fix="It is made again from the documents: `instar index rebuild`.",
            )
        found = {each.passage.id for leg in (words, vectors) for each in leg or ()}
        coverage = self._leg(
            "words", failed, lambda: self._words.coverage(sorted(found), query.tokens)
        )
        return Legs(
            words=words,
            vectors=vectors,
            files=files or {},
            coverage=coverage or {},
            passage_count=self._leg("words", failed, lambda: self._words.count(query.scope)) or 0,
            vector_count=self._leg("vectors", failed, lambda: self._vectors.count(query.scope))
            or 0,
            failed=failed,
        )

    def held(self, key: str) -> Sequence[Held]:
        """What is indexed of one document, in the order of its passages."""

        def read() -> list[Held]:
            vectors = self._vectors.ids(key)
            return [Held(passage=p, has_vector=p.id in vectors) for p in self._words.held(key)]

        return self._repaired(read)

    def keys(self) -> Mapping[str, Counted]:
        """Every document that the index holds something of."""

        def read() -> Mapping[str, Counted]:
            words, vectors = self._words.keys(), self._vectors.keys()
            return {
                key: Counted(words.get(key, 0), vectors.get(key, 0))
                for key in sorted({*words, *vectors})
            }

        return self._repaired(read)

    def clear(self) -> None:
        """Throws everything away; the indexer's `level` makes it again from the documents."""
        with self._writing():
            for part in (*self._parts, *self._generations()):
                shutil.rmtree(part, ignore_errors=True)
            self._open()

    def _apply(self, changes: Sequence[IndexChanges]) -> None:
        self._files.write(
            {
                each.key: (agent_of(each.key), each.document_tokens)
                for each in changes
                if each.document_tokens is not None
            }
        )
        upserts = [entry for each in changes for entry in each.upserts]
        moved = [passage for each in changes for passage in each.moved]
        drops = [name for each in changes for name in each.drops]
        added = [
            Embedded(passage=entry.passage, vector=entry.vector)
            for entry in upserts
            if entry.vector is not None
        ]
        for each in changes:
            added += self._still_true(each)
        self._vectors.write(added, [*drops, *(entry.passage.id for entry in upserts)], moved)
        entries = [Entry(passage=p, tokens=self._analyzer.fields(p)) for p in moved]
        if upserts or moved or drops:
            self._words.write([*upserts, *entries], drops)

    def _still_true(self, changes: IndexChanges) -> list[Embedded]:
        """The vectors of passages that still have the text they were computed for."""
        if not changes.vectors:
            return []
        indexed = {passage.id: passage for passage in self._words.held(changes.key)}
        return [
            Embedded(passage=indexed[each.passage.id], vector=each.vector)
            for each in changes.vectors
            if each.passage.id in indexed
            and _meaning(indexed[each.passage.id]) == _meaning(each.passage)
        ]

    def _search_words(self, query: IndexQuery) -> Sequence[Candidate]:
        return self._words.search(query.scope, query.tokens, query.limit)

    def _search_files(self, query: IndexQuery) -> Mapping[str, float]:
        return self._files.scores(query.scope.agent, query.tokens)

    def _search_vectors(self, query: IndexQuery) -> Sequence[Candidate]:
        if query.vector is None:
            return ()
        near = self._vectors.search(query.scope, query.vector, query.limit)
        passages = self._words.fetch(query.scope, [name for name, _ in near])
        return [Candidate(passages[name], score) for name, score in near if name in passages]

    def _leg(self, name: str, failed: dict[str, str], ask: Callable[[], _Answer]) -> _Answer | None:
        try:
            return self._repaired(ask)
        except Unavailable as error:
            failed[name] = error.detail
            return None

    def _repaired(self, read: Callable[[], _Answer]) -> _Answer:
        """What `read` returns; if the folder is damaged, what it returns once that is set aside."""
        try:
            return read()
        except DamagedIndex as error:
            with self._writing():
                if not self._is_readable():
                    self._set_aside(error)
            return read()

    def _is_readable(self) -> bool:
        """Whether files opened afresh can be read: then a failure was not the files' fault."""
        self._open()
        try:
            self._words.keys()
            self._files.count()
            self._vectors.keys()
        except DamagedIndex:
            return False
        return True

    def _set_aside(self, error: DamagedIndex) -> None:
        """Moves every part out of the way, keeping the latest damaged folder for a look."""
        _log.warning("index set aside, it will be made again: %s", error.detail)
        aside = self._folder / "damaged"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        for part in (self._parts[1], *self._generations(), self._parts[0]):
            if part.exists():
                part.rename(aside / part.name)
        self._open()

    def _open(self) -> None:
        self._words = WordIndex(self._parts[0])
        self._files = FileIndex(self._parts[1])
        self._vectors = VectorSegments(self._folder / self._generation)

    def _generations(self) -> list[Path]:
        return sorted(self._folder.glob("vectors-*"), key=lambda path: path.stat().st_mtime)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = (self._folder / "lock").open("ab")
        except OSError as error:
            raise Unavailable(
                f"the index folder cannot be written: {error.strerror}",
                fix=f"Make room, and see that {self._folder} is a folder of yours.",
            ) from error
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            older = [*self._folder.glob("words-*"), *self._folder.glob("files-*")]
            for old in [*older, *self._generations()[:-KEPT_GENERATIONS]]:
                if old not in self._parts and old.name != self._generation:
                    shutil.rmtree(old, ignore_errors=True)
            yield


def _meaning(passage: Passage) -> tuple[str, str]:
    return passage.text, passage.context
