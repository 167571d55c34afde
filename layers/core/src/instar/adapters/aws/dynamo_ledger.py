"""What memory keeps beside the documents, in the ledger table: writes, tombstones, the manifest.

A write's row stands in its document's partition, in the order of time. Its *places* (by checkpoint,
effect, turn, all, begun) are small rows that point to it and move with it in one transaction, so
that every question is answered strongly consistent without an index.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, cast

from instar.adapters.aws.contention import Raced, persist, races
from instar.adapters.aws.places import bounded, micros, moment
from instar.adapters.aws.row_access import (
    absent,
    find,
    row_failures,
    rows_at,
    rows_of,
    transaction,
    write_all,
)
from instar.adapters.aws.rows import LedgerRow, LedgerTable, ManifestItem, PlaceRow, TombstoneRow
from instar.clock import Sleep, sleep
from instar.errors import Conflict
from instar.ids import AgentId, CallId, CheckpointId, SessionId, TurnId
from instar.memory.ports import LedgerEntry, ManifestRow

ALL, BEGUN, MANIFEST = "all", "begun", "manifest"
_Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Standing:
    """A row as it was read, and where."""

    entry: LedgerEntry
    order: str

    @property
    def at(self) -> _Place:
        return _document(self.entry.key), self.order

    def places(self) -> set[_Place]:
        """Where the row is found besides its document."""
        entry, order = self.entry, self.order
        found = {(ALL, order), (_checkpoint(entry.checkpoint), "checkpoint")}
        if entry.turn is not None:
            found.add((_turn(entry.turn), order))
        if entry.state == "begun":
            found.add((BEGUN, order))
        if entry.effect is not None and entry.state != "abandoned":
            found.add((_effect(entry.effect), "effect"))
        return found


class DynamoLedger:
    """The AWS Ledger. The idempotency keys are the checkpoint and the effect."""

    def __init__(self, *, sleep: Sleep = sleep) -> None:
        self._sleep = sleep

    def begin(self, entry: LedgerEntry) -> LedgerEntry:
        """Records the intention, or returns another write's row under the entry's effect.

        Raises Conflict when the checkpoint is done already.
        """
        what = f"checkpoint {entry.checkpoint!r}"
        return persist(what, lambda: self._begin(entry), self._sleep)

    def finish(self, checkpoint: CheckpointId, *, after: str | None) -> None:
        """Marks the row done or abandoned; a row that is done stays so, an unknown one is no error.

        Raises Conflict when an abandoned row turns out done after its effect was taken anew.
        """
        what = f"checkpoint {checkpoint!r}"
        persist(what, lambda: self._finish(checkpoint, after), self._sleep)

    def entries(
        self, *, key: str | None = None, turn: TurnId | None = None, limit: int = 1000
    ) -> Sequence[LedgerEntry]:
        """Rows of one document, one turn or all, newest first."""
        if limit <= 0:
            return []
        if key is None:
            pk = ALL if turn is None else _turn(turn)
            return _entries_at(rows_of(PlaceRow, pk, newest_first=True, limit=limit))
        rows = rows_of(
            LedgerRow, _document(key), newest_first=True, limit=limit if turn is None else 0
        )
        return [_entry(row) for row in rows if turn in (None, row.turn)][:limit]

    def unfinished(self) -> Sequence[LedgerEntry]:
        """Rows still begun, oldest first."""
        return _entries_at(rows_of(PlaceRow, BEGUN))

    def _begin(self, entry: LedgerEntry) -> LedgerEntry:
        if entry.effect is not None:
            taken = find(PlaceRow, _effect(entry.effect), "effect")
            if taken is not None and taken.checkpoint != entry.checkpoint:
                return _read(taken).entry
        old = _standing(entry.checkpoint)
        if old is not None and old.entry.state == "done":
            raise Conflict(f"checkpoint {entry.checkpoint!r} is done already")
        order = f"{micros(entry.at):020d}#{entry.checkpoint}" if old is None else old.order
        _move(old, _Standing(entry, order))
        return entry

    def _finish(self, checkpoint: CheckpointId, after: str | None) -> None:
        old = _standing(checkpoint)
        if old is None or old.entry.state == "done":
            return
        state: Literal["done", "abandoned"] = "abandoned" if after is None else "done"
        new = replace(old.entry, state=state, after=after)
        if new == old.entry:
            return
        if new.effect is not None and state == "done":
            taken = find(PlaceRow, _effect(new.effect), "effect")
            if taken is not None and taken.checkpoint != checkpoint:
                raise Conflict(f"another write took over from {checkpoint!r}")
        _move(old, _Standing(new, old.order))


class DynamoTombstones:
    """The AWS Tombstones: one row a mark."""

    def add(self, agent: AgentId, marks: Sequence[str]) -> None:
        """Remembers the marks; known ones are no error."""
        write_all(TombstoneRow, [TombstoneRow(*place) for place in _marks(agent, marks)])

    def known(self, agent: AgentId, marks: Sequence[str]) -> frozenset[str]:
        """Those of the marks that stand."""
        places = _marks(agent, marks)
        standing = {row.sk for row in rows_at(TombstoneRow, list(places))}
        return frozenset(mark for (_, sk), mark in places.items() if sk in standing)

    def lift(self, agent: AgentId, marks: Sequence[str]) -> None:
        """Removes the marks; unknown ones are no error."""
        rows = [TombstoneRow(*place) for place in _marks(agent, marks)]
        write_all(TombstoneRow, rows, delete=True)


class DynamoManifest:
    """The AWS Manifest: one row a document."""

    def get(self, key: str) -> ManifestRow | None:
        """The row of a document, None when it was never looked at."""
        row = find(ManifestItem, MANIFEST, f"key#{key}")
        return None if row is None else _manifest_row(row)

    def put(self, row: ManifestRow) -> None:
        """Writes the row."""
        values = asdict(row)
        item = ManifestItem(MANIFEST, f"key#{values.pop('key')}", **values)
        with row_failures(f"the manifest of {row.key!r}"):
            item.save()

    def drop(self, key: str) -> None:
        """Forgets the row of a document that is gone."""
        with row_failures(f"the manifest of {key!r}"):
            ManifestItem(MANIFEST, f"key#{key}").delete()

    def rows(self) -> Sequence[ManifestRow]:
        """All rows, sorted by key."""
        return [_manifest_row(row) for row in rows_of(ManifestItem, MANIFEST)]


def _move(old: _Standing | None, new: _Standing) -> None:
    """Writes the row and what points to it, if nothing has changed since `old` was read.

    Raises Raced otherwise.
    """
    unchanged: Any = absent()
    if old is not None:
        unchanged = (LedgerRow.state == old.entry.state) & (LedgerRow.digest == old.entry.digest)
    moved = old is not None and old.at != new.at
    had = set() if old is None or moved else old.places()
    gone = old.places() - new.places() if old is not None else set()
    what = f"checkpoint {new.entry.checkpoint!r}"
    with races(), row_failures(what), transaction(LedgerTable) as write:
        write.save(_row(new), condition=absent() if moved else unchanged)
        if old is not None and moved:
            write.delete(LedgerRow(*old.at), condition=unchanged)
        for place in new.places() - had:
            write.save(_pointer(place, new), condition=_is_ours(new))
        for place in gone:
            write.delete(PlaceRow(*place), condition=_is_ours(new))


def _is_ours(standing: _Standing) -> Any:
    """A place is free, or this checkpoint's: only an effect can be anybody else's."""
    return absent() | (PlaceRow.checkpoint == standing.entry.checkpoint)


def _standing(checkpoint: CheckpointId) -> _Standing | None:
    place = find(PlaceRow, _checkpoint(checkpoint), "checkpoint")
    return None if place is None else _read(place)


def _read(place: PlaceRow) -> _Standing:
    """The row that a place points to. Raises Raced when it has just moved."""
    row = find(LedgerRow, place.document, place.order)
    if row is None:
        raise Raced
    return _Standing(_entry(row), place.order)


def _entries_at(places: Iterable[PlaceRow]) -> list[LedgerEntry]:
    rows = rows_at(LedgerRow, [(place.document, place.order) for place in places])
    return [_entry(row) for row in rows]


def _pointer(place: _Place, standing: _Standing) -> PlaceRow:
    document, order = standing.at
    checkpoint = standing.entry.checkpoint
    return PlaceRow(*place, checkpoint=checkpoint, document=document, order=order)


def _row(standing: _Standing) -> LedgerRow:
    return LedgerRow(*standing.at, **(asdict(standing.entry) | {"at": micros(standing.entry.at)}))


def _entry(row: LedgerRow) -> LedgerEntry:
    return LedgerEntry(
        checkpoint=CheckpointId(row.checkpoint),
        key=row.key,
        at=moment(int(row.at)),
        author=row.author,
        reason=row.reason,
        before=row.before,
        digest=row.digest,
        after=row.after,
        state=cast("Literal['begun', 'done', 'abandoned']", row.state),
        session=None if row.session is None else SessionId(row.session),
        turn=None if row.turn is None else TurnId(row.turn),
        call=None if row.call is None else CallId(row.call),
        effect=row.effect,
        added=int(row.added),
        removed=int(row.removed),
    )


def _manifest_row(item: ManifestItem) -> ManifestRow:
    return ManifestRow(
        key=item.sk.removeprefix("key#"),
        token=item.token,
        revision=item.revision,
        state=cast("Literal['pending', 'indexed', 'failed']", item.state),
        generation=item.generation,
        passages=int(item.passages),
        vectors=int(item.vectors),
        reason=item.reason,
    )


def _marks(agent: AgentId, marks: Sequence[str]) -> dict[_Place, str]:
    """The place of every mark, each once: a batch takes a key once."""
    return {(f"tombstone#{agent}", f"mark#{bounded(mark)}"): mark for mark in marks}


def _document(key: str) -> str:
    return f"document#{key}"


def _checkpoint(checkpoint: str) -> str:
    return f"checkpoint#{checkpoint}"


def _turn(turn: str) -> str:
    return f"turn#{turn}"


def _effect(effect: str) -> str:
    return f"effect#{bounded(effect)}"
