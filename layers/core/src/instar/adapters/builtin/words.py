"""The words of passages and of whole documents, by tantivy: BM25 as Lucene computes it.

Tokens come ready from `instar.memory.analysis`; the text itself is only stored. One commit is one
atomic change; a killed writer leaves the last commit standing.
"""

import json
import math
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import tantivy

from instar.adapters.builtin.errors import reading_index
from instar.memory.ports import Candidate, Entry, IndexFilter, Passage

WRITER_BYTES = 15_000_000
MAX_DOCUMENTS = 1_000_000
BOOSTS = {"body": 1.0, "context": 0.5, "header": 1.0, "speaker": 7.0, "loose": 1.0}
FILES_LIMIT = 1_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PASSAGE_FIELDS = tuple(field.name for field in fields(Passage))
_MUST, _SHOULD = tantivy.Occur.Must, tantivy.Occur.Should


def microseconds(moment: datetime) -> int:
    """The moment as a number that sorts and compares exactly."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


class TantivyFolder:
    """A tantivy index in a folder, as new as the last commit of any process."""

    def __init__(self, folder: Path, schema: Any) -> None:
        self._folder = folder
        self.schema = schema
        self._index: Any = None
        self._seen: tuple[int, int, int] | None = None
        # tantivy's index may not be used by one thread while another reloads it.
        self._opening = threading.Lock()

    def searcher(self) -> Any:
        """A searcher over the newest commit."""
        with reading_index(self._folder.name), self._opening:
            self._open()
            stat = (self._folder / "meta.json").stat()
            seen = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
            if seen != self._seen:
                self._index.reload()
                self._seen = seen
            return self._index.searcher()

    def write(self, drops: Iterable[tuple[str, str]], documents: Iterable[Any]) -> None:
        """Deletes by (field, value), then adds, in one commit."""
        with reading_index(self._folder.name):
            with self._opening:
                self._open()
                writer = self._index.writer(WRITER_BYTES, 1)
            try:
                for name, value in drops:
                    writer.delete_documents_by_term(name, value)
                for document in documents:
                    writer.add_document(document)
                writer.commit()
                writer.wait_merging_threads()
            finally:
                del writer  # an error's traceback would keep tantivy's lock

    def _open(self) -> None:
        if self._index is not None and (self._folder / "meta.json").exists():
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        self._seen = None
        self._index = tantivy.Index(self.schema, str(self._folder))
        self._index.config_reader("manual")


class WordIndex:
    """Passages by their words, and the passages themselves."""

    def __init__(self, folder: Path) -> None:
        builder = tantivy.SchemaBuilder()
        for name in BOOSTS:
            builder.add_text_field(name, tokenizer_name="whitespace", index_option="freq")
        builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
        for name in ("agent", "kind"):
            builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
        builder.add_text_field("key", fast=True, tokenizer_name="raw", index_option="basic")
        builder.add_integer_field("at", indexed=True, fast=True)
        builder.add_bytes_field("stored", stored=True)
        self._tantivy = TantivyFolder(folder, builder.build())

    def write(self, entries: Sequence[Entry], drops: Iterable[str]) -> None:
        """Replaces the entries of these passages and removes those of the dropped ids."""
        gone = [*drops, *(entry.passage.id for entry in entries)]
        self._tantivy.write((("id", name) for name in gone), map(_document, entries))

    def search(self, scope: IndexFilter, tokens: Sequence[str], limit: int) -> list[Candidate]:
        """The best passages by boosted BM25, any of the tokens being enough."""
        searcher = self._tantivy.searcher()
        terms = [
            (_SHOULD, tantivy.Query.boost_query(self._term(name, token), boost * count))
            for token, count in Counter(tokens).items()
            for name, boost in BOOSTS.items()
        ]
        if not terms:
            return []
        query = [*self._filters(scope), (_MUST, tantivy.Query.boolean_query(terms))]
        return self._candidates(searcher, tantivy.Query.boolean_query(query), limit)

    def fetch(self, scope: IndexFilter, ids: Sequence[str]) -> Mapping[str, Passage]:
        """The passages of these ids that lie in the scope."""
        if not ids:
            return {}
        query = tantivy.Query.boolean_query([*self._filters(scope), self._one_of(ids)])
        found = self._candidates(self._tantivy.searcher(), query, len(ids))
        return {candidate.passage.id: candidate.passage for candidate in found}

    def held(self, key: str) -> list[Passage]:
        """The passages of a document in their order."""
        query = tantivy.Query.const_score_query(self._term("key", key, "basic"), 0.0)
        found = self._candidates(self._tantivy.searcher(), query, MAX_DOCUMENTS)
        return sorted((candidate.passage for candidate in found), key=lambda p: (p.ordinal, p.id))

    def keys(self) -> Mapping[str, int]:
        """The number of passages of each document."""
        searcher = self._tantivy.searcher()
        wanted = {"keys": {"terms": {"field": "key", "size": MAX_DOCUMENTS}}}
        with reading_index("words"):
            if not searcher.num_docs:
                return {}
            answer = searcher.aggregate(tantivy.Query.all_query(), wanted)
            return {row["key"]: int(row["doc_count"]) for row in answer["keys"]["buckets"]}

    def count(self, scope: IndexFilter) -> int:
        """The number of passages in the scope."""
        searcher = self._tantivy.searcher()
        with reading_index("words"):
            query = tantivy.Query.boolean_query(self._filters(scope))
            return int(searcher.search(query, 1, count=True).count)

    def coverage(self, ids: Sequence[str], tokens: Sequence[str]) -> Mapping[str, float]:
        """The share of the tokens' weight (idf) that the body of each passage holds."""
        searcher = self._tantivy.searcher()
        with reading_index("words"):
            weights = {
                token: count * _idf(searcher.num_docs, searcher.doc_freq("body", token))
                for token, count in Counter(tokens).items()
            }
            total = sum(weights.values())
            if not ids or not total:
                return {}
            held = [
                (_SHOULD, tantivy.Query.const_score_query(self._term("body", token), weight))
                for token, weight in weights.items()
            ]
            query = tantivy.Query.boolean_query([self._one_of(ids), *held])
            hits = searcher.search(query, len(ids), count=False).hits
            return {
                searcher.doc(address).get_first("id"): min(1.0, float(score) / total)
                for score, address in hits
            }

    def _term(self, name: str, token: str, option: str = "freq") -> Any:
        return tantivy.Query.term_query(self._tantivy.schema, name, token, option)

    def _one_of(self, ids: Sequence[str]) -> tuple[Any, Any]:
        query = tantivy.Query.term_set_query(self._tantivy.schema, "id", list(ids))
        return _MUST, tantivy.Query.const_score_query(query, 0.0)

    def _filters(self, scope: IndexFilter) -> list[tuple[Any, Any]]:
        schema, query = self._tantivy.schema, tantivy.Query
        filters = [self._term("agent", scope.agent, "basic")]
        if scope.key is not None:
            filters.append(self._term("key", scope.key, "basic"))
        if scope.kinds is not None:
            filters.append(query.term_set_query(schema, "kind", sorted(scope.kinds)))
        if scope.since is not None or scope.until is not None:
            since = None if scope.since is None else microseconds(scope.since)
            until = None if scope.until is None else microseconds(scope.until)
            kind = tantivy.FieldType.Integer
            filters.append(query.range_query(schema, "at", kind, since, until))
        return [(_MUST, query.const_score_query(each, 0.0)) for each in filters]

    def _candidates(self, searcher: Any, query: Any, limit: int) -> list[Candidate]:
        with reading_index("words"):
            limit = max(1, min(limit, searcher.num_docs))
            hits = searcher.search(query, limit, count=False).hits
            found = [
                Candidate(_decoded(searcher.doc(address).get_first("stored")), float(score))
                for score, address in hits
            ]
        return sorted(found, key=lambda each: (-each.score, each.passage.id))


class FileIndex:
    """Whole documents by their words: the third leg."""

    def __init__(self, folder: Path) -> None:
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("words", tokenizer_name="whitespace", index_option="freq")
        builder.add_text_field("agent", tokenizer_name="raw", index_option="basic")
        builder.add_text_field("key", stored=True, tokenizer_name="raw", index_option="basic")
        self._tantivy = TantivyFolder(folder, builder.build())

    def write(self, documents: Mapping[str, tuple[str, Sequence[str]]]) -> None:
        """Replaces documents by key with (agent, tokens); without tokens one is gone."""
        if documents:
            written = [_file(key, *held) for key, held in documents.items() if held[1]]
            self._tantivy.write([("key", key) for key in documents], written)

    def count(self) -> int:
        """The number of documents."""
        with reading_index("files"):
            return int(self._tantivy.searcher().num_docs)

    def scores(self, agent: str, tokens: Sequence[str]) -> Mapping[str, float]:
        """The BM25 of each of the agent's documents that holds any of the tokens."""
        searcher = self._tantivy.searcher()
        schema, query = self._tantivy.schema, tantivy.Query
        terms = [
            (_SHOULD, query.boost_query(query.term_query(schema, "words", token, "freq"), count))
            for token, count in Counter(tokens).items()
        ]
        if not terms:
            return {}
        own = query.const_score_query(query.term_query(schema, "agent", agent, "basic"), 0.0)
        both = query.boolean_query([(_MUST, own), (_MUST, query.boolean_query(terms))])
        with reading_index("files"):
            hits = searcher.search(both, FILES_LIMIT, count=False).hits
            return {searcher.doc(address).get_first("key"): float(score) for score, address in hits}


def _idf(documents: int, holding: int) -> float:
    return math.log(1 + (documents - holding + 0.5) / (holding + 0.5))


def _file(key: str, agent: str, tokens: Sequence[str]) -> Any:
    document = tantivy.Document()
    document.add_text("key", key)
    document.add_text("agent", agent)
    document.add_text("words", " ".join(tokens))
    return document


def _document(entry: Entry) -> Any:
    passage = entry.passage
    document = tantivy.Document()
    for name in ("id", "agent", "kind", "key"):
        document.add_text(name, getattr(passage, name))
    if passage.at is not None:
        document.add_integer("at", microseconds(passage.at))
    for name in BOOSTS:
        document.add_text(name, " ".join(entry.tokens.get(name, ())))
    values = [getattr(passage, name) for name in _PASSAGE_FIELDS]
    document.add_bytes("stored", json.dumps(values, default=datetime.isoformat).encode())
    return document


def _decoded(stored: Any) -> Passage:
    values = dict(zip(_PASSAGE_FIELDS, json.loads(bytes(stored).decode()), strict=True))
    at = values.pop("at")
    return Passage(**values, at=None if at is None else datetime.fromisoformat(at))
