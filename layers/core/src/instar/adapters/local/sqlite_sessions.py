"""Transcripts and events in the embedded database, and the one transaction that ends a turn."""

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime

from instar.adapters.local.database import Database, micros, moment
from instar.adapters.local.sqlite_turns import ENDED, fenced_row, touch_session
from instar.clock import Clock
from instar.conversation.envelopes import InboundMessage
from instar.conversation.ports import (
    Event,
    Lease,
    NewEvent,
    Session,
    SessionSummary,
    TurnCommit,
)
from instar.errors import Conflict, Invalid
from instar.ids import SessionId
from instar.messages import Message


class SqliteSessions:
    """The embedded Sessions: a row per message and per event, numbered without gaps."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def load(self, session: SessionId) -> Session:
        """The session; an empty one when it is not known."""
        # One statement, so that version and messages are of one moment.
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT version, message FROM sessions LEFT JOIN messages USING (session) "
                "WHERE session = ? ORDER BY n",
                (session,),
            ).fetchall()
        return Session(
            session=session,
            version=rows[0]["version"] if rows else 0,
            messages=tuple(
                Message.model_validate_json(row["message"]) for row in rows if row["message"]
            ),
        )

    def list(self) -> Sequence[SessionSummary]:
        """All sessions, the most recently used first."""
        with self._database.read() as connection:
            rows = connection.execute("SELECT * FROM sessions ORDER BY at DESC, session").fetchall()
        return [
            SessionSummary(
                session=SessionId(row["session"]),
                channel=row["channel"],
                address=row["address"],
                at=moment(row["at"]),
            )
            for row in rows
        ]

    def commit(self, lease: Lease, commit: TurnCommit) -> None:
        """Ends a turn in one transaction; again with the same fence changes nothing.

        Raises Conflict when the fence is old, Invalid when the state is no end.
        """
        if commit.state not in ENDED:
            raise Invalid(f"a turn does not end {commit.state}")
        with self._database.write() as connection:
            row = fenced_row(connection, lease)
            if row["state"] in ENDED:
                return
            message = InboundMessage.model_validate_json(row["message"])
            touch_session(connection, lease.session, message.address, micros(commit.at))
            _append_messages(connection, lease.session, commit.messages)
            _end_turn(connection, lease, commit)
            _append_events(connection, lease.session, commit.events, commit.at)

    def publish(self, session: SessionId, events: Sequence[NewEvent]) -> Sequence[Event]:
        """Numbers, keeps and returns the events."""
        with self._database.write() as connection:
            return _append_events(connection, session, events, self._clock())

    def events(self, session: SessionId, *, after: int, limit: int = 500) -> Sequence[Event]:
        """The events with a number greater than `after`, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT * FROM events WHERE session = ? AND n > ? ORDER BY n LIMIT ?",
                (session, after, max(0, limit)),
            ).fetchall()
        return [
            Event(
                session=session,
                n=row["n"],
                kind=row["kind"],
                at=moment(row["at"]),
                data=json.loads(row["data"]),
            )
            for row in rows
        ]


def _append_messages(
    connection: sqlite3.Connection, session: SessionId, messages: Sequence[Message]
) -> None:
    """Appends to the transcript and counts the commit."""
    last = connection.execute(
        "SELECT coalesce(max(n), 0) FROM messages WHERE session = ?", (session,)
    ).fetchone()[0]
    connection.executemany(
        "INSERT INTO messages VALUES (?, ?, ?)",
        [(session, n, item.model_dump_json()) for n, item in enumerate(messages, last + 1)],
    )
    connection.execute("UPDATE sessions SET version = version + 1 WHERE session = ?", (session,))


def _end_turn(connection: sqlite3.Connection, lease: Lease, commit: TurnCommit) -> None:
    """The turn's end and its reply's row. Raises Conflict when the reply id is taken."""
    reply = None if commit.reply is None else commit.reply.model_dump_json()
    failure = None if commit.failure is None else json.dumps(dict(commit.failure))
    connection.execute(
        "UPDATE turns SET state = ?, reply = ?, failure = ?, leased_until = NULL WHERE turn = ?",
        (commit.state, reply, failure, lease.turn),
    )
    if commit.reply is None:
        return
    try:
        connection.execute(
            "INSERT INTO outbox (id, reply, state) VALUES (?, ?, 'pending')",
            (commit.reply.id, reply),
        )
    except sqlite3.IntegrityError as error:
        raise Conflict(f"reply {commit.reply.id!r} stands in the outbox") from error


def _append_events(
    connection: sqlite3.Connection, session: SessionId, events: Sequence[NewEvent], at: datetime
) -> list[Event]:
    """Numbers the events after the last; the write transaction keeps others from the numbers."""
    last = connection.execute(
        "SELECT coalesce(max(n), 0) FROM events WHERE session = ?", (session,)
    ).fetchone()[0]
    numbered = [
        Event(session=session, n=n, kind=event.kind, at=at, data=event.data)
        for n, event in enumerate(events, last + 1)
    ]
    connection.executemany(
        "INSERT INTO events VALUES (?, ?, ?, ?, ?)",
        [
            (session, item.n, item.kind, micros(at), json.dumps(dict(item.data)))
            for item in numbered
        ],
    )
    return numbered
