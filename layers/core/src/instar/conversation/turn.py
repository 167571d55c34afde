"""One turn: from a queued message to a committed reply, once.

    lease -> journal -> [ prompt -> model -> step recorded -> tools -> step recorded ]* -> commit
                                                                          session + outbox + events
    -> deliver queue -> acknowledged

What stands in the brackets is `rounds.py`; how a turn can end is `answers.py`.

Everything may happen twice. The idempotency key is the turn's id: a redelivered turn that is done
hands its reply over again and that is all. A turn that crashed goes on from its journal: a step
whose model answer stands is not asked for again, and its tool calls run under the same effect keys.
The lease's fence keeps a slow twin from writing. Three crashes, and the owner gets an honest reply.
Near the deadline the turn gives its lease back and says Continued: the message stays at the head of
its group and the next invocation goes on.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from instar.channels.commands import command_in
from instar.clock import Clock, Deadline
from instar.conversation.answers import Answer, failed, refusal, reset
from instar.conversation.envelopes import InboundMessage
from instar.conversation.live import LiveTurn
from instar.conversation.ports import (
    DeliveryQueue,
    EventKind,
    Lease,
    NewEvent,
    Sessions,
    TurnCommit,
    TurnRecord,
    Turns,
)
from instar.conversation.rounds import Handover, Rounds, Work, user_message
from instar.conversation.settings import TurnSettings
from instar.errors import InstarError, Unavailable
from instar.messages import Text

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Completed:
    """The turn is committed and its reply handed over."""

    record: TurnRecord


@dataclass(frozen=True, slots=True)
class Continued:
    """The deadline is near: keep the message, make it visible at once."""


TurnOutcome = Completed | Continued
KeepMessage = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRunner:
    """Runs turns; `rounds` is what happens between lease and commit."""

    sessions: Sessions
    turns: Turns
    deliveries: DeliveryQueue
    rounds: Rounds
    settings: TurnSettings
    clock: Clock

    def run(
        self, message: InboundMessage, deadline: Deadline, keep: KeepMessage | None = None
    ) -> TurnOutcome:
        """Runs or resumes the turn of the message. `keep` reserves the queue's message for that
        many seconds more. Raises Conflict while somebody else holds the turn, and whatever is a
        bug or an outage of our own stores: the message is then delivered again.
        """
        record = self.turns.get(message.turn)
        if record.state in ("queued", "running"):
            pace = self.settings.pace
            lease = self.turns.lease(message.turn, seconds=pace.lease_seconds)
            try:
                self._work(lease, self.turns.get(message.turn), deadline, keep or (lambda _: None))
            except Handover:
                self.turns.renew(lease, seconds=0, handover=True)
                return Continued()
            except InstarError:
                with suppress(InstarError):  # no crash: the next try need not wait for the lease
                    self.turns.renew(lease, seconds=0, handover=True)
                raise
            record = self.turns.get(message.turn)
        if record.reply is not None:
            self.deliveries.put(record.reply)
        return Completed(record)

    def _work(
        self, lease: Lease, record: TurnRecord, deadline: Deadline, keep: KeepMessage
    ) -> None:
        message = record.message
        with LiveTurn(lease, self.sessions, self.turns, self.settings.pace, keep) as live:
            live.tell("turn_started", {"attempt": record.attempts, "text": message.text})
            if message.refused:
                answer = refusal()
            elif command_in(message.text) == "new":
                answer = reset()
            elif record.crashes >= self.settings.crashes:
                answer = failed(
                    Unavailable("this message made me stop three times, so I leave it"),
                    record.steps,
                )
            else:
                answer = self._converse(record, Work(lease, live, deadline))
            live.check()
        self._commit(lease, message, answer)

    def _converse(self, record: TurnRecord, work: Work) -> Answer:
        """The model and its tools, to an answer; a failure that a person should hear is one too."""
        steps = list(record.steps)
        try:
            return self.rounds.run(record.message, steps, work)
        except InstarError as error:
            work.live.check()
            log.info("turn_failed", extra={"turn": work.lease.turn, "type": error.type})
            return failed(error, tuple(steps))

    def _commit(self, lease: Lease, message: InboundMessage, answer: Answer) -> None:
        at = self.clock()
        said = [user_message(message)] if answer.keeps_question else []
        messages = [*said, *answer.messages]
        if answer.notice is not None:
            messages.append(self.rounds.message("notice", (Text(text=answer.notice),), lease))
        reply = answer.reply_to(message)
        kind: EventKind = "turn_failed" if answer.failure else "reply"
        closing = NewEvent(
            kind=kind,
            data={
                "turn": message.turn,
                "text": answer.text,
                **({"problem": answer.failure.problem} if answer.failure else {}),
            },
        )
        self.sessions.commit(
            lease,
            TurnCommit(
                messages=messages,
                state=answer.state,
                reply=reply,
                events=[closing],
                at=at,
                failure=answer.failure.problem if answer.failure else None,
            ),
        )
