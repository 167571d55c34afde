"""Open WebSocket connections and the sessions they follow, in the sessions table.

A connection lives at most two hours and $disconnect may never come, so every row carries a time to
live and what is past it is not read.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta

from instar.adapters.aws.places import micros
from instar.adapters.aws.row_access import find, row_failures, rows_of, write_all
from instar.adapters.aws.rows import ConnectionRow, FollowerRow, FollowsRow
from instar.clock import Clock
from instar.errors import NotFound
from instar.ids import SessionId

LIFETIME = timedelta(hours=2)


class DynamoConnections:
    """Who listens to which session. The idempotency key is the connection's id."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def add(self, connection: str, caller: Mapping[str, str]) -> None:
        """Keeps a connection and who opened it: what its ticket stood for."""
        until = self._clock() + LIFETIME
        row = ConnectionRow(
            _place(connection),
            "connection",
            data=json.dumps(dict(caller)),
            until=micros(until),
            expires=until,
        )
        with row_failures(f"connection {connection!r}"):
            row.save()

    def caller(self, connection: str) -> Mapping[str, str] | None:
        """Who opened the connection, None when it is not known or its time is over."""
        row = self._living(connection)
        return None if row is None else dict(json.loads(row.data))

    def subscribe(self, connection: str, session: SessionId) -> None:
        """From now on the connection gets the session's events. Raises NotFound."""
        living = self._living(connection)
        if living is None:
            raise NotFound(f"there is no connection {connection!r}")
        with row_failures(f"connection {connection!r}"):
            # First what remove() looks for: no follower is left behind.
            FollowsRow(
                _place(connection), f"session#{session}", session=session, expires=living.expires
            ).save()
            FollowerRow(
                _followers(session), connection, until=living.until, expires=living.expires
            ).save()

    def of(self, session: SessionId) -> Sequence[str]:
        """The connections that follow the session, sorted."""
        now = micros(self._clock())
        rows = rows_of(FollowerRow, _followers(session))
        return [row.sk for row in rows if row.until > now]

    def followed(self, connection: str) -> Sequence[SessionId]:
        """The sessions that the connection follows, sorted."""
        rows = rows_of(FollowsRow, _place(connection), FollowsRow.sk.startswith("session#"))
        return [SessionId(row.session) for row in rows]

    def remove(self, connection: str) -> None:
        """Forgets the connection and what it follows; twice is no error."""
        sessions = self.followed(connection)
        write_all(
            FollowerRow,
            [FollowerRow(_followers(session), connection) for session in sessions],
            delete=True,
        )
        pk = _place(connection)
        write_all(
            FollowsRow,
            [FollowsRow(pk, f"session#{session}") for session in sessions]
            + [FollowsRow(pk, "connection")],
            delete=True,
        )

    def _living(self, connection: str) -> ConnectionRow | None:
        row = find(ConnectionRow, _place(connection), "connection")
        return row if row is not None and row.until > micros(self._clock()) else None


def _place(connection: str) -> str:
    return f"connection#{connection}"


def _followers(session: str) -> str:
    return f"followers#{session}"
