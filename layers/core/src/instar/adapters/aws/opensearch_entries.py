"""Changes to actions of a `_bulk`, and entries back to passages: pure.

The entry of a document stands first, then passages that come, move and go. One shard works off
the actions in this order, so a crash loses an end of them, and a document's entry alone is never
what is missing: the passages that are still to come or to go look like a difference to the indexer.

Moves and late vectors are scripts: they apply only while the entry still has the text they were
made for, decided where the entry is. A replacement by the same changes nothing: BM25 would count
the replaced entry until the next merge.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from instar.adapters.aws.opensearch_schema import DOCUMENT, PASSAGE
from instar.memory.documents import agent_of
from instar.memory.ports import Embedded, Entry, IndexChanges, Passage

CONFLICT_RETRIES = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SEARCHED = ("text", "body", "speaker", "context", "header")
_EMBEDDED = ("text", "context")
_REPLACE = """
if (ctx._source.equals(params.entry)) { ctx.op = 'none'; return }
ctx._source.clear();
ctx._source.putAll(params.entry)
"""
_CHANGE_IF_SAME = """
for (name in params.same.keySet()) {
  if (ctx._source.passage.get(name) != params.same.get(name)) { ctx.op = 'none'; return }
}
ctx._source.putAll(params.change)
"""


@dataclass(frozen=True, slots=True)
class Action:
    """One action of a `_bulk`, and the document that it is about."""

    key: str
    command: Mapping[str, Any]
    body: Mapping[str, Any] | None = field(default=None)


def actions(changes: Sequence[IndexChanges], index: str, vector: str) -> Iterator[Action]:
    """All changes in the order in which they have to be written."""
    for each in changes:
        if each.document_tokens is not None:
            yield _document(each.key, each.document_tokens, index)
    for each in changes:
        for entry in each.upserts:
            yield _put(each.key, index, entry.passage.id, _entry(entry, vector))
        for passage in each.moved:
            yield _changed(passage, _SEARCHED, _place(passage), index)
        for embedded in each.vectors:
            yield _changed(embedded.passage, _EMBEDDED, {vector: list(embedded.vector)}, index)
        for name in each.drops:
            yield _gone(each.key, index, name)


def dimensions(changes: Sequence[IndexChanges]) -> int | None:
    """The length of the first vector among the changes."""
    vectors = (vector for each in changes for vector in _vectors(each.upserts, each.vectors))
    return next((len(vector) for vector in vectors), None)


def passage_of(stored: Mapping[str, Any]) -> Passage:
    """The passage as it was indexed."""
    at = stored["at"]
    return Passage(**{**stored, "at": None if at is None else datetime.fromisoformat(at)})


def microseconds(moment: datetime) -> int:
    """The moment as a number that sorts and compares exactly."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _vectors(entries: Sequence[Entry], late: Sequence[Embedded]) -> Iterator[Sequence[float]]:
    yield from (entry.vector for entry in entries if entry.vector is not None)
    yield from (embedded.vector for embedded in late)


def _document(key: str, tokens: Sequence[str], index: str) -> Action:
    name = f"document-{hashlib.sha256(key.encode()).hexdigest()}"
    if not tokens:
        return _gone(key, index, name)
    words = " ".join(tokens)
    entry = {"type": DOCUMENT, "agent": agent_of(key), "key": key, DOCUMENT: words}
    return _put(key, index, name, entry)


def _entry(entry: Entry, vector: str) -> dict[str, Any]:
    tokens = {name: " ".join(found) for name, found in entry.tokens.items()}
    whole = {"type": PASSAGE, "id": entry.passage.id, **_place(entry.passage), **tokens}
    return whole if entry.vector is None else {**whole, vector: list(entry.vector)}


def _place(passage: Passage) -> dict[str, Any]:
    """Everything of a passage that its tokens and its vector do not depend on."""
    at = passage.at
    return {
        "agent": passage.agent,
        "key": passage.key,
        "kind": passage.kind,
        "at": None if at is None else microseconds(at),
        "ordinal": passage.ordinal,
        PASSAGE: {**asdict(passage), "at": None if at is None else at.isoformat()},
    }


def _put(key: str, index: str, name: str, entry: Mapping[str, Any]) -> Action:
    script = {"source": _REPLACE, "params": {"entry": entry}}
    body = {"scripted_upsert": True, "upsert": {}, "script": script}
    return Action(key, _update(index, name), body)


def _gone(key: str, index: str, name: str) -> Action:
    return Action(key, {"delete": {"_index": index, "_id": name}})


def _update(index: str, name: str) -> dict[str, Any]:
    return {"update": {"_index": index, "_id": name, "retry_on_conflict": CONFLICT_RETRIES}}


def _changed(
    passage: Passage, fields: Sequence[str], change: Mapping[str, Any], index: str
) -> Action:
    same = {name: getattr(passage, name) for name in fields}
    script = {"source": _CHANGE_IF_SAME, "params": {"same": same, "change": change}}
    return Action(passage.key, _update(index, passage.id), {"script": script})
