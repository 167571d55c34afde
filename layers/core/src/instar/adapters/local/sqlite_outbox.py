"""Replies that were committed and how far their delivery is, in the embedded database.

pending → sending → sent or given up. A claim that runs out may have gone out: from then on every
claim of that reply is a repeat, also when the repeat itself could not be sent.
"""

from collections.abc import Sequence
from typing import Literal

from instar.adapters.local.database import Database, micros
from instar.clock import Clock
from instar.conversation.envelopes import Reply
from instar.conversation.ports import Claim
from instar.errors import Conflict, NotFound
from instar.ids import ReplyId


class SqliteOutbox:
    """The embedded Outbox. The idempotency key is the reply's id."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def claim(self, reply: ReplyId, *, seconds: float) -> Claim | None:
        """Marks the row as being sent; None when there is nothing to send. Raises Conflict."""
        now = micros(self._clock())
        with self._database.write() as connection:
            row = connection.execute("SELECT * FROM outbox WHERE id = ?", (reply,)).fetchone()
            if row is None or row["state"] in ("sent", "given_up"):
                return None
            if row["state"] == "sending" and row["claimed_until"] > now:
                raise Conflict(f"reply {reply!r} is being sent")
            repeat = bool(row["uncertain"]) or row["state"] == "sending"
            attempts = row["attempts"] + 1
            connection.execute(
                "UPDATE outbox SET state = 'sending', attempts = ?, uncertain = ?, "
                "claimed_until = ? WHERE id = ?",
                (attempts, repeat, now + round(seconds * 1_000_000), reply),
            )
        return Claim(
            reply=Reply.model_validate_json(row["reply"]), repeat=repeat, attempts=attempts
        )

    def settle(
        self, reply: ReplyId, *, state: Literal["sent", "pending", "given_up"], detail: str = ""
    ) -> None:
        """Records how it went; what was sent stays sent. Raises NotFound."""
        over = ("sent",) if state == "sent" else ("sent", "given_up")
        with self._database.write() as connection:
            row = connection.execute("SELECT state FROM outbox WHERE id = ?", (reply,)).fetchone()
            if row is None:
                raise NotFound(f"there is no reply {reply!r}")
            if row["state"] not in over:
                connection.execute(
                    "UPDATE outbox SET state = ?, detail = ?, claimed_until = NULL WHERE id = ?",
                    (state, detail, reply),
                )

    def unsent(self) -> Sequence[Reply]:
        """Replies that are neither sent nor given up, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT reply FROM outbox WHERE state IN ('pending', 'sending') ORDER BY sequence"
            ).fetchall()
        return [Reply.model_validate_json(row["reply"]) for row in rows]
