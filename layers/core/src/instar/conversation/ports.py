"""What a conversation needs from the outside. Each port has an AWS adapter and an embedded one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from instar.conversation.envelopes import InboundMessage, Reply
from instar.ids import ReplyId, SessionId, TurnId
from instar.messages import Message, Usage

EventKind = Literal[
    "turn_started",
    "text_delta",
    "reasoning_delta",
    "tool_call",
    "tool_result",
    "reply",
    "turn_failed",
    "notice",
]
TurnState = Literal["queued", "running", "completed", "failed", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation so far. `version` counts commits; 0 and no messages when it is new."""

    session: SessionId
    version: int
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """A line of the session list."""

    session: SessionId
    channel: str
    address: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One round of a turn: what the model said and, once they ran, the results of its calls.

    Stored before the calls run and again with their results, so that a turn that resumes repeats
    neither the model's call nor a finished tool.
    """

    number: int
    assistant: Message
    results: Message | None
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """A turn's row. `attempts` counts leases, `crashes` those that ended without a word.

    `reply` is the text that was answered once it is completed, `failure` the problem that was told
    once it is failed; `stop_requested` is the owner's wish.
    """

    message: InboundMessage
    state: TurnState
    attempts: int = 0
    crashes: int = 0
    steps: tuple[Step, ...] = ()
    reply: Reply | None = None
    failure: Mapping[str, Any] | None = None
    stop_requested: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to work on a turn, until it is renewed or runs out. Old fences are refused."""

    turn: TurnId
    session: SessionId
    fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An event without its number. `data` is JSON."""

    kind: EventKind
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event of a session; numbers count from 1 without gaps."""

    session: SessionId
    n: int
    kind: EventKind
    at: datetime
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCommit:
    """What one transaction writes at the end of a turn: messages, the turn's end, the outbox row,
    the closing events."""

    messages: Sequence[Message]
    state: TurnState
    reply: Reply | None
    events: Sequence[NewEvent]
    at: datetime
    failure: Mapping[str, Any] | None = None


class Sessions(Protocol):
    """Transcripts and their events. Appends are ordered, gap-free and never lost."""

    def load(self, session: SessionId) -> Session:
        """The session; an empty one when it is not known."""
        ...

    def list(self) -> Sequence[SessionSummary]:
        """All sessions, the most recently used first."""
        ...

    def commit(self, lease: Lease, commit: TurnCommit) -> None:
        """Ends a turn in one transaction: session, turn, outbox, events.

        Committing an ended turn again with the same fence changes nothing.
        Raises Conflict when the fence is old.
        """
        ...

    def publish(self, session: SessionId, events: Sequence[NewEvent]) -> Sequence[Event]:
        """Numbers, keeps and returns the events."""
        ...

    def events(self, session: SessionId, *, after: int, limit: int = 500) -> Sequence[Event]:
        """The events with a number greater than `after`, oldest first."""
        ...


class Inbox(Protocol):
    """The door: an inbound message becomes a turn's row, once."""

    def accept(self, message: InboundMessage) -> bool:
        """Records the message as a queued turn; False when it stands there already.

        Raises Conflict when the same turn stands there with another digest.
        """
        ...


class Turns(Protocol):
    """The rows of turns: who works on which, and how far it is."""

    def get(self, turn: TurnId) -> TurnRecord:
        """The turn's row with its steps. Raises NotFound."""
        ...

    def lease(self, turn: TurnId, *, seconds: float) -> Lease:
        """Takes the turn, or renews nothing and raises Conflict while someone else holds it.

        The fence grows with every lease; a lease taken over from one that ran out counts a crash.
        """
        ...

    def renew(self, lease: Lease, *, seconds: float, handover: bool = False) -> bool:
        """Keeps the lease for that long from now (0 gives it up; `handover` says that this is no
        crash) and answers whether the owner asked to stop. Raises Conflict when the fence is old.
        """
        ...

    def record(self, lease: Lease, step: Step) -> None:
        """Stores a step, replacing the one with its number. Raises Conflict on an old fence."""
        ...


class StopRequests(Protocol):
    """How the owner stops a turn that runs."""

    def stop(self, session: SessionId) -> bool:
        """Asks the running turn of the session to stop; False when none runs."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A reply to send now. `repeat`: an earlier try may or may not have gone out."""

    reply: Reply
    repeat: bool
    attempts: int = field(default=1)


class Outbox(Protocol):
    """Replies that were committed and how far their delivery is."""

    def claim(self, reply: ReplyId, *, seconds: float) -> Claim | None:
        """Marks the row as being sent and returns it; None when it is sent, given up or unknown.

        Raises Conflict while another delivery holds it. A row whose claim ran out is claimed again
        as a repeat.
        """
        ...

    def settle(
        self, reply: ReplyId, *, state: Literal["sent", "pending", "given_up"], detail: str = ""
    ) -> None:
        """Records how it went; `pending`: nothing can have gone out, it may be tried again."""
        ...

    def unsent(self) -> Sequence[Reply]:
        """Replies that are neither sent nor given up, oldest first."""
        ...


class TurnQueue(Protocol):
    """Accepted messages on their way to a turn: FIFO within a session, at least once."""

    def put(self, message: InboundMessage) -> None:
        """Queues it; a repeat of the same turn within minutes is dropped."""
        ...


class DeliveryQueue(Protocol):
    """Replies on their way out: FIFO within a reply address, at least once."""

    def put(self, reply: Reply) -> None:
        """Queues it; a repeat of the same reply within minutes is dropped."""
        ...
