"""What memory keeps beside the documents: the ledger of writes, tombstones, the index manifest."""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields

from instar.adapters.local.database import Database, micros, moment
from instar.errors import Conflict
from instar.ids import AgentId, CallId, CheckpointId, SessionId, TurnId
from instar.memory.ports import LedgerEntry, ManifestRow

# SQLite before 3.32 took 999 variables; this needs no check of the build.
_VARIABLES = 500


class SqliteLedger:
    """The embedded Ledger: rows are added and finished, never changed otherwise, never removed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, entry: LedgerEntry) -> LedgerEntry:
        """Records the intention, or returns another write's row under the entry's effect.

        Raises Conflict when the checkpoint is done already.
        """
        names = [field.name for field in fields(LedgerEntry)]
        values = asdict(entry) | {"at": micros(entry.at)}
        renewed = ", ".join(f"{name} = excluded.{name}" for name in names)
        with self._database.write() as connection:
            known = connection.execute(
                "SELECT * FROM ledger WHERE effect = ? AND state <> 'abandoned'", (entry.effect,)
            ).fetchone()
            if known is not None and known["checkpoint"] != entry.checkpoint:
                return _entry(known)
            done = connection.execute(
                f"INSERT INTO ledger ({', '.join(names)}) "  # noqa: S608  # our own names
                f"VALUES ({', '.join(f':{name}' for name in names)}) "
                f"ON CONFLICT (checkpoint) DO UPDATE SET {renewed} WHERE state <> 'done'",
                values,
            )
            if done.rowcount == 0:
                raise Conflict(f"checkpoint {entry.checkpoint!r} is done already")
        return entry

    def finish(self, checkpoint: CheckpointId, *, after: str | None) -> None:
        """Marks the row done or abandoned; a row that is done stays so, an unknown one is no error.

        Raises Conflict when an abandoned row turns out done after its effect was taken anew.
        """
        state = "abandoned" if after is None else "done"
        with self._database.write() as connection:
            try:
                connection.execute(
                    "UPDATE ledger SET state = ?, after = ? WHERE checkpoint = ? "
                    "AND state <> 'done'",
                    (state, after, checkpoint),
                )
            except sqlite3.IntegrityError as error:
                raise Conflict(f"another write took over from {checkpoint!r}") from error

    def entries(
        self, *, key: str | None = None, turn: TurnId | None = None, limit: int = 1000
    ) -> Sequence[LedgerEntry]:
        """Rows of one document, one turn or all, newest first."""
        wanted = {"key": key, "turn": turn}
        given = {name: value for name, value in wanted.items() if value is not None}
        where = " AND ".join(f"{name} = :{name}" for name in given) or "1"
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT * FROM ledger WHERE {where} "  # noqa: S608  # our own names
                "ORDER BY sequence DESC LIMIT :limit",
                given | {"limit": max(0, limit)},
            ).fetchall()
        return [_entry(row) for row in rows]

    def unfinished(self) -> Sequence[LedgerEntry]:
        """Rows still begun, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT * FROM ledger WHERE state = 'begun' ORDER BY sequence"
            ).fetchall()
        return [_entry(row) for row in rows]


class SqliteTombstones:
    """The embedded Tombstones."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, agent: AgentId, marks: Sequence[str]) -> None:
        """Remembers the marks, all or none."""
        with self._database.write() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO tombstones VALUES (?, ?)", [(agent, mark) for mark in marks]
            )

    def known(self, agent: AgentId, marks: Sequence[str]) -> frozenset[str]:
        """Those of the marks that stand."""
        with self._database.read() as connection:
            return frozenset(
                mark
                for some in _slices(marks)
                for (mark,) in connection.execute(
                    "SELECT mark FROM tombstones WHERE agent = ? "  # noqa: S608  # placeholders
                    f"AND mark IN ({', '.join('?' * len(some))})",
                    (agent, *some),
                )
            )

    def lift(self, agent: AgentId, marks: Sequence[str]) -> None:
        """Removes the marks, all or none."""
        with self._database.write() as connection:
            connection.executemany(
                "DELETE FROM tombstones WHERE agent = ? AND mark = ?",
                [(agent, mark) for mark in marks],
            )


class SqliteManifest:
    """The embedded Manifest."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, key: str) -> ManifestRow | None:
        """The row of a document, None when it was never looked at."""
        with self._database.read() as connection:
            row = connection.execute("SELECT * FROM manifest WHERE key = ?", (key,)).fetchone()
        return None if row is None else ManifestRow(**row)

    def put(self, row: ManifestRow) -> None:
        """Writes the row."""
        names = [field.name for field in fields(ManifestRow)]
        with self._database.write() as connection:
            connection.execute(
                f"REPLACE INTO manifest ({', '.join(names)}) "  # noqa: S608  # our own names
                f"VALUES ({', '.join(f':{name}' for name in names)})",
                asdict(row),
            )

    def drop(self, key: str) -> None:
        """Forgets the row of a document that is gone."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM manifest WHERE key = ?", (key,))

    def rows(self) -> Sequence[ManifestRow]:
        """All rows, sorted by key."""
        with self._database.read() as connection:
            rows = connection.execute("SELECT * FROM manifest ORDER BY key").fetchall()
        return [ManifestRow(**row) for row in rows]


def _entry(row: sqlite3.Row) -> LedgerEntry:
    return LedgerEntry(
        checkpoint=CheckpointId(row["checkpoint"]),
        key=row["key"],
        at=moment(row["at"]),
        author=row["author"],
        reason=row["reason"],
        before=row["before"],
        digest=row["digest"],
        after=row["after"],
        state=row["state"],
        session=None if row["session"] is None else SessionId(row["session"]),
        turn=None if row["turn"] is None else TurnId(row["turn"]),
        call=None if row["call"] is None else CallId(row["call"]),
        effect=row["effect"],
        added=row["added"],
        removed=row["removed"],
    )


def _slices(marks: Sequence[str]) -> Iterator[Sequence[str]]:
    """The marks in runs that one statement can take."""
    for start in range(0, len(marks), _VARIABLES):
        yield marks[start : start + _VARIABLES]
