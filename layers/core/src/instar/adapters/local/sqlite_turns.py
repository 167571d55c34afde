"""The rows of turns in the embedded database: the door, leases with fencing, steps, stop requests.

A lease is a moment on the turn's row and a fence that grows with every lease. A write with an old
fence is refused, so a worker that was slow cannot undo what its successor did.
"""

import json
import sqlite3

from instar.adapters.local.database import Database, micros
from instar.clock import Clock
from instar.conversation.envelopes import InboundMessage, Reply, ReplyAddress
from instar.conversation.ports import Lease, Step, TurnRecord
from instar.errors import Conflict, NotFound
from instar.ids import SessionId, TurnId
from instar.messages import Message, Usage

ENDED = ("completed", "failed", "stopped")


def fenced_row(connection: sqlite3.Connection, lease: Lease) -> sqlite3.Row:
    """The turn's row if the lease's fence is the newest. Raises NotFound, Conflict."""
    row = turn_row(connection, lease.turn)
    if row["fence"] != lease.fence:
        raise Conflict(f"turn {lease.turn!r} is at fence {row['fence']}, not {lease.fence}")
    return row


def turn_row(connection: sqlite3.Connection, turn: TurnId) -> sqlite3.Row:
    """The turn's row. Raises NotFound."""
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM turns WHERE turn = ?", (turn,)
    ).fetchone()
    if row is None:
        raise NotFound(f"there is no turn {turn!r}")
    return row


def touch_session(
    connection: sqlite3.Connection, session: SessionId, address: ReplyAddress, at: int
) -> None:
    """Puts the session on the list, or to its top."""
    where = ":".join(
        part for part in (address.account, address.conversation, address.thread) if part
    )
    connection.execute(
        "INSERT INTO sessions VALUES (?, 0, ?, ?, ?) ON CONFLICT (session) DO UPDATE SET "
        "channel = excluded.channel, address = excluded.address, at = max(at, excluded.at)",
        (session, address.channel, where, at),
    )


class SqliteInbox:
    """The embedded Inbox. The idempotency key is the turn's id."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def accept(self, message: InboundMessage) -> bool:
        """Records the message as a queued turn; False when it stands there. Raises Conflict."""
        with self._database.write() as connection:
            known = connection.execute(
                "SELECT digest FROM turns WHERE turn = ?", (message.turn,)
            ).fetchone()
            if known is None:
                connection.execute(
                    "INSERT INTO turns (turn, session, digest, message, state) "
                    "VALUES (?, ?, ?, ?, 'queued')",
                    (message.turn, message.session, message.digest, message.model_dump_json()),
                )
                touch_session(connection, message.session, message.address, micros(message.at))
                return True
        if known["digest"] != message.digest:
            raise Conflict(
                f"another message stands under {message.identity!r}",
                fix="Give a new message a new id.",
            )
        return False


class SqliteTurns:
    """The embedded Turns."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def get(self, turn: TurnId) -> TurnRecord:
        """The turn's row with its steps. Raises NotFound."""
        with self._database.read() as connection:
            connection.execute("BEGIN")
            try:
                row = turn_row(connection, turn)
                steps = connection.execute(
                    "SELECT * FROM steps WHERE turn = ? ORDER BY number", (turn,)
                ).fetchall()
            finally:
                connection.execute("COMMIT")
        return _record(row, steps)

    def lease(self, turn: TurnId, *, seconds: float) -> Lease:
        """Takes the turn. Raises NotFound, and Conflict while it is held or when it has ended."""
        now = micros(self._clock())
        with self._database.write() as connection:
            row = turn_row(connection, turn)
            until = row["leased_until"]
            if row["state"] in ENDED:
                raise Conflict(f"turn {turn!r} is {row['state']}")
            if until is not None and until > now:
                raise Conflict(f"turn {turn!r} is being worked on")
            fence = row["fence"] + 1
            connection.execute(
                "UPDATE turns SET state = 'running', fence = ?, attempts = attempts + 1, "
                "crashes = crashes + ?, leased_until = ? WHERE turn = ?",
                (fence, until is not None, now + _micros(seconds), turn),
            )
        return Lease(turn=turn, session=SessionId(row["session"]), fence=fence)

    def renew(self, lease: Lease, *, seconds: float, handover: bool = False) -> bool:
        """Keeps, or with 0 gives up, the lease; whether a stop was asked for. Raises Conflict."""
        until = micros(self._clock()) + _micros(seconds)
        given_over = handover and seconds <= 0
        with self._database.write() as connection:
            row = fenced_row(connection, lease)
            if row["state"] not in ENDED:
                connection.execute(
                    "UPDATE turns SET leased_until = ? WHERE turn = ?",
                    (None if given_over else until, lease.turn),
                )
        return bool(row["stop_requested"])

    def record(self, lease: Lease, step: Step) -> None:
        """Stores a step, replacing the one with its number. Raises Conflict on an old fence."""
        results = None if step.results is None else step.results.model_dump_json()
        with self._database.write() as connection:
            if fenced_row(connection, lease)["state"] in ENDED:
                raise Conflict(f"turn {lease.turn!r} has ended")
            connection.execute(
                "REPLACE INTO steps VALUES (?, ?, ?, ?, ?)",
                (
                    lease.turn,
                    step.number,
                    step.assistant.model_dump_json(),
                    results,
                    step.usage.model_dump_json(),
                ),
            )


class SqliteStopRequests:
    """The embedded StopRequests."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def stop(self, session: SessionId) -> bool:
        """Asks the running turn of the session to stop; False when none runs."""
        with self._database.write() as connection:
            asked = connection.execute(
                "UPDATE turns SET stop_requested = 1 WHERE session = ? AND state = 'running'",
                (session,),
            )
            return asked.rowcount > 0


def _micros(seconds: float) -> int:
    return round(seconds * 1_000_000)


def _record(row: sqlite3.Row, steps: list[sqlite3.Row]) -> TurnRecord:
    return TurnRecord(
        message=InboundMessage.model_validate_json(row["message"]),
        state=row["state"],
        attempts=row["attempts"],
        crashes=row["crashes"],
        steps=tuple(_step(step) for step in steps),
        reply=None if row["reply"] is None else Reply.model_validate_json(row["reply"]),
        failure=None if row["failure"] is None else json.loads(row["failure"]),
        stop_requested=bool(row["stop_requested"]),
    )


def _step(row: sqlite3.Row) -> Step:
    results = row["results"]
    return Step(
        number=row["number"],
        assistant=Message.model_validate_json(row["assistant"]),
        results=None if results is None else Message.model_validate_json(results),
        usage=Usage.model_validate_json(row["usage"]),
    )
