"""FIFO queues in the embedded database, with the promises of SQS FIFO that the product relies on.

Messages of one group keep their order and only one of them is in flight; other groups go on. A
message that is received is invisible for a while and comes back first of its group when it is not
deleted. A repeat of a deduplication id within five minutes is dropped. What was received too often
becomes a dead letter: kept, listed, out of the way of its group.
"""

import sqlite3
import threading
import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from instar.adapters.local.database import Database, micros, moment
from instar.clock import Clock
from instar.conversation.envelopes import InboundMessage, Reply
from instar.errors import Conflict
from instar.ids import NewId

DEDUPLICATION = timedelta(minutes=5)

_HEAD = """
SELECT id, member, body, receives FROM queue AS head
WHERE queue = :queue AND dead_at IS NULL AND visible_at <= :now AND NOT EXISTS (
    SELECT 1 FROM queue AS earlier
    WHERE earlier.queue = head.queue AND earlier.member = head.member
    AND earlier.dead_at IS NULL AND earlier.id < head.id
)
ORDER BY id LIMIT 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A message in flight. `receives` counts this one; the receipt is good until the next."""

    receipt: str
    group: str
    body: str
    receives: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message that was received too often."""

    group: str
    body: str
    receives: int
    at: datetime


class SqliteQueue:
    """One named queue. `poll_seconds` is how late a message of another process is noticed."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        new_id: NewId,
        *,
        name: str,
        max_receives: int,
        poll_seconds: float = 0.1,
    ) -> None:
        self._database = database
        self._clock = clock
        self._new_id = new_id
        self._name = name
        self._max_receives = max_receives
        self._poll_seconds = poll_seconds
        self._arrived = threading.Condition()

    def put(self, body: str, *, group: str, deduplication: str) -> None:
        """Queues the body behind its group; a repeat of the deduplication id is dropped."""
        now = micros(self._clock())
        with self._database.write() as connection:
            connection.execute("DELETE FROM queue_seen WHERE until <= ?", (now,))
            fresh = connection.execute(
                "INSERT OR IGNORE INTO queue_seen VALUES (?, ?, ?)",
                (self._name, deduplication, now + micros_of(DEDUPLICATION)),
            )
            if fresh.rowcount:
                connection.execute(
                    "INSERT INTO queue (queue, member, body, visible_at) VALUES (?, ?, ?, ?)",
                    (self._name, group, body, now),
                )
        with self._arrived:
            self._arrived.notify_all()

    def receive(self, seconds: float) -> Received | None:
        """The oldest visible message whose group has none in flight, invisible for `seconds`."""
        now = micros(self._clock())
        with self._database.read() as connection:
            if self._head(connection, now) is None:
                return None
        with self._database.write() as connection:
            while (row := self._head(connection, now)) is not None:
                if row["receives"] < self._max_receives:
                    break
                connection.execute("UPDATE queue SET dead_at = ? WHERE id = ?", (now, row["id"]))
            if row is None:
                return None
            receipt = f"{row['id']}:{self._new_id()}"
            connection.execute(
                "UPDATE queue SET receives = receives + 1, receipt = ?, visible_at = ? "
                "WHERE id = ?",
                (receipt, now + round(seconds * 1_000_000), row["id"]),
            )
        return Received(
            receipt=receipt, group=row["member"], body=row["body"], receives=row["receives"] + 1
        )

    def delete(self, receipt: str) -> None:
        """Ends the message; twice is no error. Raises Conflict when it was received again since."""
        with self._database.write() as connection:
            if self._in_flight(connection, receipt):
                connection.execute("DELETE FROM queue WHERE receipt = ?", (receipt,))
        with self._arrived:
            self._arrived.notify_all()

    def change_visibility(self, receipt: str, seconds: float) -> None:
        """Makes the message visible again in `seconds`; 0 is at once, first of its group.

        Raises Conflict when it was received again since or is gone.
        """
        until = micros(self._clock()) + round(seconds * 1_000_000)
        with self._database.write() as connection:
            if not self._in_flight(connection, receipt):
                raise Conflict("the queued message is gone")
            connection.execute(
                "UPDATE queue SET visible_at = ? WHERE receipt = ?", (until, receipt)
            )
        with self._arrived:
            self._arrived.notify_all()

    def dead(self) -> list[DeadLetter]:
        """Messages that were received too often, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT * FROM queue WHERE queue = ? AND dead_at IS NOT NULL ORDER BY id",
                (self._name,),
            ).fetchall()
        return [
            DeadLetter(
                group=row["member"],
                body=row["body"],
                receives=row["receives"],
                at=moment(row["dead_at"]),
            )
            for row in rows
        ]

    def wait(self, seconds: float) -> bool:
        """Waits until receive() may find something; False when nothing came in time."""
        until = time.monotonic() + seconds
        while True:
            with self._arrived:
                with self._database.read() as connection:
                    if self._head(connection, micros(self._clock())) is not None:
                        return True
                remaining = until - time.monotonic()
                if remaining <= 0:
                    return False
                self._arrived.wait(min(remaining, self._poll_seconds))

    def _head(self, connection: sqlite3.Connection, now: int) -> sqlite3.Row | None:
        """The message that is next."""
        row: sqlite3.Row | None = connection.execute(
            _HEAD, {"queue": self._name, "now": now}
        ).fetchone()
        return row

    def _in_flight(self, connection: sqlite3.Connection, receipt: str) -> bool:
        """Whether the message is there under this receipt; False when it is gone.

        Raises Conflict when it has a newer receipt or is dead.
        """
        row = connection.execute(
            "SELECT receipt, dead_at FROM queue WHERE id = ?", (receipt.partition(":")[0],)
        ).fetchone()
        if row is None:
            return False
        if row["receipt"] != receipt or row["dead_at"] is not None:
            raise Conflict("the queued message was received again since")
        return True


class SqliteTurnQueue:
    """The embedded TurnQueue: the group is the session, the deduplication id the turn."""

    def __init__(self, queue: SqliteQueue) -> None:
        self._queue = queue

    def put(self, message: InboundMessage) -> None:
        """Queues it; a repeat of the same turn within five minutes is dropped."""
        self._queue.put(
            message.model_dump_json(), group=message.session, deduplication=message.turn
        )


class SqliteDeliveryQueue:
    """The embedded DeliveryQueue: the group is the address, the deduplication id the reply."""

    def __init__(self, queue: SqliteQueue) -> None:
        self._queue = queue

    def put(self, reply: Reply) -> None:
        """Queues it; a repeat of the same reply within five minutes is dropped."""
        self._queue.put(
            reply.model_dump_json(), group=reply.address.group(), deduplication=reply.id
        )


def micros_of(span: timedelta) -> int:
    """Whole microseconds of a span."""
    return span // timedelta(microseconds=1)
