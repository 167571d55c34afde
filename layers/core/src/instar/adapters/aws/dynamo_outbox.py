"""Replies that were committed and how far their delivery is, on AWS.

pending → sending → sent or given up. A claim that runs out may have gone out: from then on every
claim of that reply is a repeat, also when the repeat itself could not be sent.
"""

from collections.abc import Sequence
from typing import Literal

from instar.adapters.aws.bodies import fetched
from instar.adapters.aws.contention import persist, races
from instar.adapters.aws.places import micros
from instar.adapters.aws.row_access import find, row_failures, rows_at, rows_of, same, transaction
from instar.adapters.aws.rows import OutboxRow, SessionPart, SessionsTable, UnsentRow
from instar.clock import Clock, Sleep, sleep
from instar.conversation.envelopes import Reply
from instar.conversation.ports import Claim
from instar.errors import Conflict, NotFound
from instar.ids import ReplyId

DETAIL_CHARACTERS = 2000
_OVER = ("sent", "given_up")


class DynamoOutbox:
    """The AWS Outbox. The idempotency key is the reply's id."""

    def __init__(self, clock: Clock, *, sleep: Sleep = sleep) -> None:
        self._clock = clock
        self._sleep = sleep

    def claim(self, reply: ReplyId, *, seconds: float) -> Claim | None:
        """Marks the row as being sent; None when there is nothing to send. Raises Conflict."""
        return persist(f"reply {reply!r}", lambda: self._claim(reply, seconds), self._sleep)

    def settle(
        self, reply: ReplyId, *, state: Literal["sent", "pending", "given_up"], detail: str = ""
    ) -> None:
        """Records how it went; what was sent stays sent. Raises NotFound."""
        cut = detail[:DETAIL_CHARACTERS]
        persist(f"reply {reply!r}", lambda: _settle(reply, state, cut), self._sleep)

    def unsent(self) -> Sequence[Reply]:
        """Replies that are neither sent nor given up, oldest first."""
        places = [(f"reply#{row.reply}", "reply") for row in rows_of(UnsentRow, "unsent")]
        return [_reply(row) for row in rows_at(OutboxRow, places) if row.state not in _OVER]

    def _claim(self, reply: ReplyId, seconds: float) -> Claim | None:
        now = micros(self._clock())
        row = find(OutboxRow, f"reply#{reply}", "reply")
        if row is None or row.state in _OVER:
            return None
        if row.state == "sending" and (row.claimed_until or 0) > now:
            raise Conflict(f"reply {reply!r} is being sent")
        claim = Claim(
            reply=_reply(row),
            repeat=bool(row.uncertain) or row.state == "sending",
            attempts=int(row.attempts) + 1,
        )
        with races(), row_failures(f"reply {reply!r}"), transaction(SessionsTable) as write:
            write.update(
                row,
                actions=[
                    OutboxRow.state.set("sending"),
                    OutboxRow.attempts.set(claim.attempts),
                    OutboxRow.uncertain.set(claim.repeat),
                    OutboxRow.claimed_until.set(now + round(seconds * 1_000_000)),
                ],
                condition=(OutboxRow.state == row.state)
                & (OutboxRow.attempts == row.attempts)
                & same(OutboxRow.claimed_until, row.claimed_until),
            )
        return claim


def _settle(reply: ReplyId, state: str, detail: str) -> None:
    row = find(OutboxRow, f"reply#{reply}", "reply")
    if row is None:
        raise NotFound(f"there is no reply {reply!r}")
    if row.state in (("sent",) if state == "sent" else _OVER):
        return
    with races(), row_failures(f"reply {reply!r}"), transaction(SessionsTable) as write:
        write.update(
            row,
            actions=[
                OutboxRow.state.set(state),
                OutboxRow.detail.set(detail),
                OutboxRow.claimed_until.remove(),
            ],
            condition=OutboxRow.state == row.state,
        )
        if state in _OVER:
            write.delete(UnsentRow("unsent", row.order))


def _reply(row: OutboxRow) -> Reply:
    return Reply.model_validate_json(fetched(SessionPart, row))
