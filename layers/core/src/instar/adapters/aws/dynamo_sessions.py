"""Transcripts and events on AWS, and the one transaction that ends a turn.

A commit is one transaction of at most nine small items, however long the turn was: its messages
are one row (one JSON list), its closing events another, and texts over 300 KB lie in part items
written before (bodies.py). So neither the 100 items and 4 MB of a transaction nor the 400 KB of an
item are ever met.

The counter row numbers the events: every batch moves it from the number it has read, in the
transaction that writes the batch, so there are no gaps and no doubles.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from pynamodb.transactions import TransactWrite

from instar.adapters.aws.bodies import Body, fetched, stored
from instar.adapters.aws.contention import Raced, persist, races
from instar.adapters.aws.dynamo_turns import ENDED, fenced_row, working
from instar.adapters.aws.places import (
    SESSIONS,
    TURN,
    micros,
    moment,
    numbered,
    session_place,
    shown_address,
    turn_place,
)
from instar.adapters.aws.row_access import absent, find, row_failures, rows_of, same, transaction
from instar.adapters.aws.rows import (
    CounterRow,
    EventsRow,
    HeadRow,
    MessagesRow,
    OutboxRow,
    RunningRow,
    SessionPart,
    SessionsTable,
    TurnRow,
    UnsentRow,
)
from instar.adapters.well_formed import json_bytes
from instar.clock import Clock, Sleep, sleep
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

_MESSAGES: TypeAdapter[tuple[Message, ...]] = TypeAdapter(tuple[Message, ...])
_LAST = 10**16 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """What a commit writes, its long texts kept already."""

    message: InboundMessage
    messages: Body
    events: Body | None
    reply: Body | None


class DynamoSessions:
    """The AWS Sessions. `order` gives growing numbers: which of two replies is older."""

    def __init__(
        self, clock: Clock, *, order: Callable[[], int] = time.time_ns, sleep: Sleep = sleep
    ) -> None:
        self._clock = clock
        self._order = order
        self._sleep = sleep

    def load(self, session: SessionId) -> Session:
        """The session; an empty one when it is not known."""
        pk = session_place(session)
        rows = rows_of(MessagesRow, pk, MessagesRow.sk.startswith("messages#"))
        found = [_MESSAGES.validate_json(fetched(SessionPart, row)) for row in rows]
        return Session(
            session=session,
            version=len(rows),
            messages=tuple(message for some in found for message in some),
        )

    def list(self) -> Sequence[SessionSummary]:
        """All sessions, the most recently used first."""
        rows = sorted(rows_of(HeadRow, SESSIONS), key=lambda row: (-row.at, row.sk))
        return [
            SessionSummary(
                session=SessionId(row.sk),
                channel=row.channel,
                address=row.address,
                at=moment(int(row.at)),
            )
            for row in rows
        ]

    def commit(self, lease: Lease, commit: TurnCommit) -> None:
        """Ends a turn in one transaction; again with the same fence changes nothing.

        Raises Conflict when the fence is old, Invalid when the state is no end.
        """
        if commit.state not in ENDED:
            raise Invalid(f"a turn does not end {commit.state}")
        row = fenced_row(lease)
        if row.state in ENDED:
            return
        prepared = _prepared(InboundMessage.model_validate_json(row.message), lease, commit)
        what = f"the end of turn {lease.turn!r}"
        persist(what, lambda: self._try_commit(lease, commit, prepared), self._sleep)

    def publish(self, session: SessionId, events: Sequence[NewEvent]) -> Sequence[Event]:
        """Numbers, keeps and returns the events."""
        if not events:
            return []
        what = f"events of {session!r}"
        at = micros(self._clock())
        body = stored(SessionPart, session_place(session), _events_json(events))

        def attempt() -> list[Event]:
            last = self.last_event(session)
            with races(), row_failures(what), transaction(SessionsTable) as write:
                _add_events(write, session, last, (len(events), at, body))
            return _numbered(session, last, at, _pairs(events))

        return persist(what, attempt, self._sleep)

    def events(self, session: SessionId, *, after: int, limit: int = 500) -> Sequence[Event]:
        """The events with a number greater than `after`, oldest first."""
        if limit <= 0 or after >= _LAST:
            return []
        wanted = EventsRow.sk.between(
            numbered("event", max(0, after) + 1), numbered("event", _LAST)
        )
        rows = rows_of(EventsRow, session_place(session), wanted, limit=limit)
        found = [event for row in rows for event in _events(session, row) if event.n > after]
        return found[:limit]

    def last_event(self, session: SessionId) -> int:
        """The number of the newest event, 0 when there is none."""
        row = find(CounterRow, session_place(session), "counter")
        return 0 if row is None else int(row.last)

    def _try_commit(self, lease: Lease, commit: TurnCommit, prepared: _Prepared) -> None:
        if fenced_row(lease).state in ENDED:
            return
        head = find(HeadRow, SESSIONS, lease.session)
        last = self.last_event(lease.session)
        at = micros(commit.at)
        what = f"the end of turn {lease.turn!r}"
        try:
            with row_failures(what), transaction(SessionsTable) as write:
                _end_turn(write, lease, commit)
                _add_messages(write, lease.session, head, (at, prepared))
                if prepared.events is not None:
                    _add_events(
                        write, lease.session, last, (len(commit.events), at, prepared.events)
                    )
                if commit.reply is not None and prepared.reply is not None:
                    _add_reply(write, commit.reply.id, prepared.reply, self._order())
        except Conflict as error:
            _refuse_taken(lease, commit)
            raise Raced from error


def _prepared(message: InboundMessage, lease: Lease, commit: TurnCommit) -> _Prepared:
    pk = session_place(lease.session)
    messages = _MESSAGES.dump_json(tuple(commit.messages)).decode()
    reply = commit.reply
    return _Prepared(
        message=message,
        messages=stored(SessionPart, pk, messages),
        events=stored(SessionPart, pk, _events_json(commit.events)) if commit.events else None,
        reply=None
        if reply is None
        else stored(SessionPart, f"reply#{reply.id}", reply.model_dump_json()),
    )


def _end_turn(write: TransactWrite, lease: Lease, commit: TurnCommit) -> None:
    """The turn's end, if the fence is still the newest."""
    row = TurnRow(turn_place(lease.turn), TURN)
    actions: list[Any] = [TurnRow.state.set(commit.state), TurnRow.leased_until.remove()]
    if commit.reply is not None:
        actions.append(TurnRow.reply.set(commit.reply.id))
    if commit.failure is not None:
        actions.append(TurnRow.failure.set(json_bytes(dict(commit.failure)).decode()))
    write.update(row, actions=actions, condition=working(lease))
    write.delete(RunningRow(session_place(lease.session), f"running#{lease.turn}"))


def _add_messages(
    write: TransactWrite, session: SessionId, head: HeadRow | None, batch: tuple[int, _Prepared]
) -> None:
    """The messages under the next version, and the session at the top of the list."""
    at, prepared = batch
    version = 1 if head is None else int(head.version or 0) + 1
    unchanged: Any = absent()
    if head is not None:
        unchanged = (HeadRow.at == head.at) & same(HeadRow.version, head.version)
        at = max(at, int(head.at))
    address = prepared.message.address
    write.save(
        HeadRow(
            SESSIONS,
            session,
            channel=address.channel,
            address=shown_address(address),
            at=at,
            version=version,
        ),
        condition=unchanged,
    )
    body = prepared.messages
    write.save(
        MessagesRow(
            session_place(session),
            numbered("messages", version),
            body=body.body,
            parts=body.parts,
        ),
        condition=absent(),
    )


def _add_events(
    write: TransactWrite, session: SessionId, last: int, batch: tuple[int, int, Body]
) -> None:
    """The batch after the last event, if nobody else has numbered one since."""
    count, at, body = batch
    pk = session_place(session)
    unchanged = CounterRow.last == last if last else absent()
    write.save(CounterRow(pk, "counter", last=last + count), condition=unchanged)
    write.save(
        EventsRow(
            pk,
            numbered("event", last + count),
            at=at,
            size=count,
            body=body.body,
            parts=body.parts,
        )
    )


def _add_reply(write: TransactWrite, reply: str, body: Body, number: int) -> None:
    """The outbox row, if the id is free, and its line among the unsent."""
    order = f"{number:020d}#{reply}"
    write.save(
        OutboxRow(
            f"reply#{reply}",
            "reply",
            body=body.body,
            parts=body.parts,
            state="pending",
            order=order,
            attempts=0,
        ),
        condition=absent(),
    )
    write.save(UnsentRow("unsent", order, reply=reply))


def _refuse_taken(lease: Lease, commit: TurnCommit) -> None:
    """Raises Conflict when it was the reply's id that is taken: no other try can help."""
    if commit.reply is None or fenced_row(lease).state in ENDED:
        return
    if find(OutboxRow, f"reply#{commit.reply.id}", "reply") is not None:
        raise Conflict(f"reply {commit.reply.id!r} stands in the outbox")


def _events_json(events: Sequence[NewEvent]) -> str:
    return json_bytes([list(pair) for pair in _pairs(events)]).decode()


def _pairs(events: Sequence[NewEvent]) -> list[tuple[Any, Any]]:
    return [(event.kind, dict(event.data)) for event in events]


def _events(session: SessionId, row: EventsRow) -> list[Event]:
    last = int(row.sk.removeprefix("event#")) - int(row.size)
    return _numbered(session, last, int(row.at), json.loads(fetched(SessionPart, row)))


def _numbered(
    session: SessionId, last: int, at: int, pairs: Sequence[tuple[Any, Any]]
) -> list[Event]:
    """The events as they are read, numbered after the last one."""
    return [
        Event(session=session, n=n, kind=kind, at=moment(at), data=data)
        for n, (kind, data) in enumerate(pairs, last + 1)
    ]
