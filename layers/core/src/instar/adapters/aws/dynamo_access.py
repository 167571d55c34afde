"""API keys, short-lived grants and the answers of outside calls, in the access table.

Time-to-live takes rows away days late, so what has expired is filtered on every read.
"""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from instar.access.ports import Grant, StoredKey
from instar.adapters.aws.bodies import fetched, stored
from instar.adapters.aws.contention import persist, races
from instar.adapters.aws.places import bounded, micros, moment
from instar.adapters.aws.row_access import absent, find, row_failures, rows_of, same, transaction
from instar.adapters.aws.rows import AccessPart, AccessTable, CallRow, GrantRow, KeyRow
from instar.adapters.well_formed import json_bytes
from instar.clock import Clock, Sleep, sleep
from instar.errors import Conflict, NotFound
from instar.tools.ports import CallAnswer

ANSWERS_KEPT = timedelta(hours=24)
# A call that runs has answered long before; one that crashed may be repeated then.
CLAIM_HELD = timedelta(minutes=2)


class DynamoKeys:
    """The AWS Keys. The idempotency key is the key's id."""

    def add(self, key: StoredKey) -> None:
        """Keeps a new key. Raises Conflict when the id is taken."""
        row = KeyRow(
            "keys",
            f"key#{bounded(key.id)}",
            id=key.id,
            digest=key.digest,
            scopes=json.dumps(sorted(key.scopes)),
            tools=None if key.tools is None else json.dumps(sorted(key.tools)),
            created_at=micros(key.created_at),
            revoked=key.revoked,
        )
        with row_failures(f"key {key.id!r}"), transaction(AccessTable) as write:
            write.save(row, condition=absent())

    def find(self, id: str) -> StoredKey | None:
        """The key of that id, revoked or not."""
        row = find(KeyRow, "keys", f"key#{bounded(id)}")
        return None if row is None else _key(row)

    def list(self) -> Sequence[StoredKey]:
        """All keys, oldest first."""
        rows = rows_of(KeyRow, "keys", KeyRow.sk.startswith("key#"))
        return [_key(row) for row in sorted(rows, key=lambda row: (row.created_at, row.id))]

    def revoke(self, id: str) -> None:
        """Revokes it; revoking twice is no error. Raises NotFound."""
        row = KeyRow("keys", f"key#{bounded(id)}")
        try:
            with row_failures(f"key {id!r}"):
                row.update([KeyRow.revoked.set(True)], condition=KeyRow.pk.exists())
        except Conflict as error:
            raise NotFound(f"there is no key {id!r}") from error


class DynamoGrants:
    """The AWS Grants. Taking deletes under a condition: of two takers one finds it gone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def put(self, grant: Grant) -> None:
        """Keeps it until it expires."""
        row = GrantRow(
            *_grant_place(grant.kind, grant.digest),
            expires_at=micros(grant.expires_at),
            data=json.dumps(dict(grant.data)),
            expires=grant.expires_at + timedelta(seconds=1),
        )
        with row_failures(f"a grant of kind {grant.kind!r}"):
            row.save()

    def get(self, kind: str, digest: str) -> Grant | None:
        """The grant if it stands and has not expired."""
        row = find(GrantRow, *_grant_place(kind, digest))
        if row is None or row.expires_at <= micros(self._clock()):
            return None
        return Grant(
            kind=kind,
            digest=digest,
            expires_at=moment(int(row.expires_at)),
            data=json.loads(row.data),
        )

    def take(self, kind: str, digest: str) -> Grant | None:
        """The same, and nobody gets it again: of two takers one gets None."""
        grant = self.get(kind, digest)
        if grant is None:
            return None
        row = GrantRow(*_grant_place(kind, digest))
        unchanged = GrantRow.expires_at == micros(grant.expires_at)
        try:
            with row_failures(f"a grant of kind {kind!r}"), transaction(AccessTable) as write:
                write.delete(row, condition=unchanged)
        except Conflict:
            return None
        return grant


class DynamoCalls:
    """The AWS Calls. The idempotency key is the name: API key, tool, the caller's own key."""

    def __init__(self, clock: Clock, *, sleep: Sleep = sleep) -> None:
        self._clock = clock
        self._sleep = sleep

    def claim(self, name: str, *, digest: str) -> CallAnswer | None:
        """The earlier answer, or None and the name is claimed. Raises Conflict."""
        return persist("an outside call", lambda: self._claim(name, digest), self._sleep)

    def settle(self, name: str, answer: CallAnswer | None) -> None:
        """Keeps the first answer, or frees the name when the call did nothing."""
        row = CallRow(*_call_place(name))
        open_claim = CallRow.pk.exists() & CallRow.status.does_not_exist()
        changes = None if answer is None else _answered(row.pk, answer)

        def attempt() -> None:
            with row_failures("an outside call"):
                if changes is None:
                    row.delete(condition=open_claim)
                else:
                    row.update(changes, condition=open_claim)

        try:
            persist("an outside call", attempt, self._sleep)
        except Conflict:
            return  # no claim, or an answer that stands

    def _claim(self, name: str, digest: str) -> CallAnswer | None:
        now = self._clock()
        row = find(CallRow, *_call_place(name))
        held = CLAIM_HELD if row is not None and row.status is None else ANSWERS_KEPT
        if row is None or row.claimed_at <= micros(now - held):
            self._take(name, digest, row)
            return None
        if row.digest != digest:
            raise Conflict(
                "another body stands under this idempotency key",
                fix="Use a new key for a new call.",
            )
        if row.status is None:
            raise Conflict("the same call is running now", fix="Repeat it in a moment.")
        return CallAnswer(status=int(row.status), body=json.loads(fetched(AccessPart, row)))

    def _take(self, name: str, digest: str, known: CallRow | None) -> None:
        """Claims the name if nothing has changed since it was looked at. Raises Raced."""
        now = self._clock()
        unchanged: Any = absent()
        if known is not None:
            unchanged = (CallRow.claimed_at == known.claimed_at) & same(
                CallRow.status, known.status
            )
        row = CallRow(
            *_call_place(name),
            digest=digest,
            claimed_at=micros(now),
            expires=now + ANSWERS_KEPT + timedelta(seconds=1),
        )
        with races(), row_failures("an outside call"), transaction(AccessTable) as write:
            write.save(row, condition=unchanged)


def _answered(pk: str, answer: CallAnswer) -> list[Any]:
    """What keeps the answer. A long one has part items, which time does not take away: rare."""
    body = stored(AccessPart, pk, json_bytes(dict(answer.body)).decode())
    changes: list[Any] = [CallRow.status.set(answer.status), CallRow.body.set(body.body)]
    return changes if body.parts is None else [*changes, CallRow.parts.set(body.parts)]


def _key(row: KeyRow) -> StoredKey:
    return StoredKey(
        id=row.id,
        digest=row.digest,
        scopes=frozenset(json.loads(row.scopes)),
        tools=None if row.tools is None else frozenset(json.loads(row.tools)),
        created_at=moment(int(row.created_at)),
        revoked=bool(row.revoked),
    )


def _grant_place(kind: str, digest: str) -> tuple[str, str]:
    return f"grant#{bounded(kind)}", f"digest#{bounded(digest)}"


def _call_place(name: str) -> tuple[str, str]:
    return f"call#{bounded(name)}", "call"
