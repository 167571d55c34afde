"""The rows of turns on AWS: leases with fencing, steps, stop requests.

A lease is a moment on the turn's row and a fence that grows with every lease. Whoever writes says
which fence it knows, in the condition of the write itself, so a worker that was slow cannot undo
what its successor did. The door that makes the rows is dynamo_inbox.py.
"""

import json
from typing import Any, cast

from instar.adapters.aws.bodies import fetched, stored
from instar.adapters.aws.contention import persist, races
from instar.adapters.aws.places import TURN, micros, numbered, session_place, turn_place
from instar.adapters.aws.row_access import find, row_failures, rows_of, same, transaction
from instar.adapters.aws.rows import (
    OutboxRow,
    RunningRow,
    SessionPart,
    SessionsTable,
    StepRow,
    TurnRow,
)
from instar.adapters.well_formed import json_bytes
from instar.clock import Clock, Sleep, sleep
from instar.conversation.envelopes import InboundMessage, Reply
from instar.conversation.ports import Lease, Step, TurnRecord, TurnState
from instar.errors import Conflict, NotFound
from instar.ids import SessionId, TurnId
from instar.messages import Message, Usage

ENDED = ("completed", "failed", "stopped")


def turn_row(turn: TurnId) -> TurnRow:
    """The turn's row. Raises NotFound."""
    row = find(TurnRow, turn_place(turn), TURN)
    if row is None:
        raise NotFound(f"there is no turn {turn!r}")
    return row


def fenced_row(lease: Lease) -> TurnRow:
    """The turn's row if the lease's fence is the newest. Raises NotFound, Conflict."""
    row = turn_row(lease.turn)
    if row.fence != lease.fence:
        raise Conflict(f"turn {lease.turn!r} is at fence {row.fence}, not {lease.fence}")
    return row


def working(lease: Lease) -> Any:
    """The condition that the lease's fence is the newest and the turn has not ended."""
    return (TurnRow.fence == lease.fence) & (TurnRow.state == "running")


class DynamoTurns:
    """The AWS Turns. The idempotency keys are the turn's id, its fence, a step's number."""

    def __init__(self, clock: Clock, *, sleep: Sleep = sleep) -> None:
        self._clock = clock
        self._sleep = sleep

    def get(self, turn: TurnId) -> TurnRecord:
        """The turn's row with its steps. Raises NotFound."""
        row = turn_row(turn)
        steps = rows_of(StepRow, row.pk, StepRow.sk.startswith("step#"))
        reply = None if row.reply is None else find(OutboxRow, f"reply#{row.reply}", "reply")
        return TurnRecord(
            message=InboundMessage.model_validate_json(row.message),
            state=cast("TurnState", row.state),
            attempts=int(row.attempts),
            crashes=int(row.crashes),
            steps=tuple(_step(fetched(SessionPart, step)) for step in steps),
            reply=None if reply is None else Reply.model_validate_json(fetched(SessionPart, reply)),
            failure=None if row.failure is None else json.loads(row.failure),
            stop_requested=bool(row.stop_requested),
        )

    def lease(self, turn: TurnId, *, seconds: float) -> Lease:
        """Takes the turn. Raises NotFound, and Conflict while it is held or when it has ended."""
        return persist(f"turn {turn!r}", lambda: self._lease(turn, seconds), self._sleep)

    def renew(self, lease: Lease, *, seconds: float, handover: bool = False) -> bool:
        """Keeps, or with 0 gives up, the lease; whether a stop was asked for. Raises Conflict."""
        given_over = handover and seconds <= 0
        until = micros(self._clock()) + _micros(seconds)
        change = TurnRow.leased_until.remove() if given_over else TurnRow.leased_until.set(until)
        row = TurnRow(turn_place(lease.turn), TURN)

        def attempt() -> bool:
            try:
                with row_failures(f"turn {lease.turn!r}"):
                    row.update([change], condition=working(lease))
            except Conflict:
                return bool(fenced_row(lease).stop_requested)
            return bool(row.stop_requested)

        return persist(f"turn {lease.turn!r}", attempt, self._sleep)

    def record(self, lease: Lease, step: Step) -> None:
        """Stores a step, replacing the one with its number. Raises Conflict on an old fence."""
        pk = turn_place(lease.turn)
        body = stored(SessionPart, pk, _step_json(step))
        row = StepRow(pk, numbered("step", step.number), body=body.body, parts=body.parts)

        def attempt() -> None:
            with row_failures(f"turn {lease.turn!r}"), transaction(SessionsTable) as write:
                write.condition_check(TurnRow, pk, TURN, condition=working(lease))
                write.save(row)

        persist(f"turn {lease.turn!r}", attempt, self._sleep)

    def _lease(self, turn: TurnId, seconds: float) -> Lease:
        row = turn_row(turn)
        now = micros(self._clock())
        if row.state in ENDED:
            raise Conflict(f"turn {turn!r} is {row.state}")
        if row.leased_until is not None and row.leased_until > now:
            raise Conflict(f"turn {turn!r} is being worked on")
        fence = int(row.fence) + 1
        with races(), row_failures(f"turn {turn!r}"):
            if row.state == "queued":
                _may_run(row, turn).save()
            with transaction(SessionsTable) as write:
                write.update(
                    row,
                    actions=[
                        TurnRow.state.set("running"),
                        TurnRow.fence.set(fence),
                        TurnRow.attempts.set(row.attempts + 1),
                        TurnRow.crashes.set(row.crashes + (row.leased_until is not None)),
                        TurnRow.leased_until.set(now + _micros(seconds)),
                    ],
                    condition=(TurnRow.fence == row.fence)
                    & (TurnRow.state == row.state)
                    & same(TurnRow.leased_until, row.leased_until),
                )
        return Lease(turn=turn, session=SessionId(row.session), fence=fence)


class DynamoStopRequests:
    """The AWS StopRequests: the session's partition knows which turns may be running."""

    def __init__(self, *, sleep: Sleep = sleep) -> None:
        self._sleep = sleep

    def stop(self, session: SessionId) -> bool:
        """Asks the running turn of the session to stop; False when none runs."""
        pk = session_place(session)
        rows = rows_of(RunningRow, pk, RunningRow.sk.startswith("running#"))
        asked = [self._stop(TurnId(row.turn)) for row in rows]
        return any(asked)

    def _stop(self, turn: TurnId) -> bool:
        row = TurnRow(turn_place(turn), TURN)

        def attempt() -> bool:
            try:
                with row_failures(f"turn {turn!r}"):
                    row.update(
                        [TurnRow.stop_requested.set(True)], condition=TurnRow.state == "running"
                    )
            except Conflict:
                return False
            return True

        return persist(f"turn {turn!r}", attempt, self._sleep)


def _may_run(row: TurnRow, turn: TurnId) -> RunningRow:
    return RunningRow(session_place(row.session), f"running#{turn}", turn=turn)


def _micros(seconds: float) -> int:
    return round(seconds * 1_000_000)


def _step_json(step: Step) -> str:
    whole = {
        "number": step.number,
        "assistant": step.assistant.model_dump(mode="json"),
        "results": None if step.results is None else step.results.model_dump(mode="json"),
        "usage": step.usage.model_dump(mode="json"),
    }
    return json_bytes(whole).decode()


def _step(text: str) -> Step:
    whole = json.loads(text)
    results = whole["results"]
    return Step(
        number=whole["number"],
        assistant=Message.model_validate(whole["assistant"]),
        results=None if results is None else Message.model_validate(results),
        usage=Usage.model_validate(whole["usage"]),
    )
