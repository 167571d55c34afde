"""API keys, short-lived grants and the answers of outside calls in the embedded database."""

import json
import sqlite3
from collections.abc import Sequence
from datetime import timedelta

from instar.access.ports import Grant, StoredKey
from instar.adapters.local.database import Database, micros, moment
from instar.clock import Clock
from instar.errors import Conflict, NotFound
from instar.tools.ports import CallAnswer

ANSWERS_KEPT = timedelta(hours=24)
# A call that runs has answered long before; one that crashed may be repeated then.
CLAIM_HELD = timedelta(minutes=2)


class SqliteKeys:
    """The embedded Keys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, key: StoredKey) -> None:
        """Keeps a new key. Raises Conflict when the id is taken."""
        tools = None if key.tools is None else json.dumps(sorted(key.tools))
        scopes = json.dumps(sorted(key.scopes))
        try:
            with self._database.write() as connection:
                connection.execute(
                    "INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?)",
                    (key.id, key.digest, scopes, tools, micros(key.created_at), key.revoked),
                )
        except sqlite3.IntegrityError as error:
            raise Conflict(f"there is a key {key.id!r}") from error

    def find(self, id: str) -> StoredKey | None:
        """The key of that id, revoked or not."""
        with self._database.read() as connection:
            row = connection.execute("SELECT * FROM keys WHERE id = ?", (id,)).fetchone()
        return None if row is None else _key(row)

    def list(self) -> Sequence[StoredKey]:
        """All keys, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute("SELECT * FROM keys ORDER BY created_at, id").fetchall()
        return [_key(row) for row in rows]

    def revoke(self, id: str) -> None:
        """Revokes it; revoking twice is no error. Raises NotFound."""
        with self._database.write() as connection:
            if not connection.execute("UPDATE keys SET revoked = 1 WHERE id = ?", (id,)).rowcount:
                raise NotFound(f"there is no key {id!r}")


class SqliteGrants:
    """The embedded Grants."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def put(self, grant: Grant) -> None:
        """Keeps it until it expires; those that have expired go."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM grants WHERE expires_at <= ?", (self._now(),))
            connection.execute(
                "REPLACE INTO grants VALUES (?, ?, ?, ?)",
                (
                    grant.kind,
                    grant.digest,
                    micros(grant.expires_at),
                    json.dumps(dict(grant.data)),
                ),
            )

    def get(self, kind: str, digest: str) -> Grant | None:
        """The grant if it stands and has not expired."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT * FROM grants WHERE kind = ? AND digest = ? AND expires_at > ?",
                (kind, digest, self._now()),
            ).fetchone()
        return None if row is None else _grant(row)

    def take(self, kind: str, digest: str) -> Grant | None:
        """The same, and nobody gets it again: of two takers one gets None."""
        with self._database.write() as connection:
            rows = connection.execute(
                "DELETE FROM grants WHERE kind = ? AND digest = ? RETURNING *", (kind, digest)
            ).fetchall()
        return next((_grant(row) for row in rows if row["expires_at"] > self._now()), None)

    def _now(self) -> int:
        return micros(self._clock())


class SqliteCalls:
    """The embedded Calls."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def claim(self, name: str, *, digest: str) -> CallAnswer | None:
        """The earlier answer, or None and the name is claimed. Raises Conflict."""
        now = self._clock()
        forgotten, freed = micros(now - ANSWERS_KEPT), micros(now - CLAIM_HELD)
        with self._database.write() as connection:
            connection.execute(
                "DELETE FROM calls WHERE claimed_at <= ? OR (claimed_at <= ? AND status IS NULL)",
                (forgotten, freed),
            )
            row = connection.execute("SELECT * FROM calls WHERE name = ?", (name,)).fetchone()
            if row is None:
                connection.execute(
                    "INSERT INTO calls (name, digest, claimed_at) VALUES (?, ?, ?)",
                    (name, digest, micros(now)),
                )
                return None
        if row["digest"] != digest:
            raise Conflict(
                "another body stands under this idempotency key",
                fix="Use a new key for a new call.",
            )
        if row["status"] is None:
            raise Conflict("the same call is running now", fix="Repeat it in a moment.")
        return CallAnswer(status=row["status"], body=json.loads(row["body"]))

    def settle(self, name: str, answer: CallAnswer | None) -> None:
        """Keeps the first answer, or frees the name when the call did nothing."""
        with self._database.write() as connection:
            if answer is None:
                connection.execute("DELETE FROM calls WHERE name = ? AND status IS NULL", (name,))
                return
            connection.execute(
                "UPDATE calls SET status = ?, body = ? WHERE name = ? AND status IS NULL",
                (answer.status, json.dumps(dict(answer.body)), name),
            )


def _key(row: sqlite3.Row) -> StoredKey:
    return StoredKey(
        id=row["id"],
        digest=row["digest"],
        scopes=frozenset(json.loads(row["scopes"])),
        tools=None if row["tools"] is None else frozenset(json.loads(row["tools"])),
        created_at=moment(row["created_at"]),
        revoked=bool(row["revoked"]),
    )


def _grant(row: sqlite3.Row) -> Grant:
    return Grant(
        kind=row["kind"],
        digest=row["digest"],
        expires_at=moment(row["expires_at"]),
        data=json.loads(row["data"]),
    )
