"""A turn while it runs: its events go out in small batches, its lease is kept alive.

Both happen on one thread beside the turn: model deltas are coalesced and published a few times a
second, whatever the model does meanwhile; the lease is renewed, and the answer to that says whether
the owner asked to stop.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from instar.conversation.ports import EventKind, Lease, NewEvent, Sessions, Turns
from instar.errors import Conflict, InstarError

log = logging.getLogger(__name__)
DELTA_CHARACTERS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often: deltas out, lease renewed, and for how long it then holds (seconds)."""

    publish_seconds: float = 0.05
    renew_seconds: float = 1.0
    lease_seconds: float = 90.0


class LiveTurn:
    """Use as a context manager around the work of one lease.

    `also_renew` keeps what else must stay reserved with the lease (the queue's message).
    """

    def __init__(
        self,
        lease: Lease,
        sessions: Sessions,
        turns: Turns,
        pace: Pace,
        also_renew: Callable[[float], None],
    ) -> None:
        self._lease = lease
        self._sessions = sessions
        self._turns = turns
        self._pace = pace
        self._also_renew = also_renew
        self._pending: list[NewEvent] = []
        self._lock = threading.Lock()
        self._publishing = threading.Lock()
        self._ended = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"live-{lease.turn}", daemon=True)
        self.stop_requested = False
        self.lost = False

    def __enter__(self) -> Self:
        self._also_renew(self._pace.lease_seconds)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._wake.set()
        self._thread.join()
        if not self.lost:
            self.flush()

    def delta(self, kind: EventKind, text: str) -> None:
        """Adds a piece of text to the pending event of its kind."""
        with self._lock:
            last = self._pending[-1] if self._pending else None
            if last is not None and last.kind == kind and len(last.data["text"]) < DELTA_CHARACTERS:
                text = last.data["text"] + text
                self._pending.pop()
            self._pending.append(self._event(kind, {"text": text}))
        self._wake.set()

    def tell(self, kind: EventKind, data: Mapping[str, Any]) -> None:
        """Publishes an event at once, after what is pending."""
        with self._lock:
            self._pending.append(self._event(kind, data))
        self.flush()

    def flush(self) -> None:
        """Publishes what is pending, in order. Never raises Unavailable: events are a courtesy,
        the reply is not."""
        with self._publishing:
            with self._lock:
                events, self._pending = self._pending, []
            if not events:
                return
            try:
                self._sessions.publish(self._lease.session, events)
            except InstarError:
                log.warning("events_lost", extra={"turn": self._lease.turn, "count": len(events)})

    def check(self) -> None:
        """Raises Conflict when the lease went to somebody else."""
        if self.lost:
            raise Conflict(f"the lease of turn {self._lease.turn} was lost")

    def _event(self, kind: EventKind, data: Mapping[str, Any]) -> NewEvent:
        return NewEvent(kind=kind, data={"turn": self._lease.turn, **data})

    def _run(self) -> None:
        waited = 0.0
        while not self._ended.is_set():
            if self._wake.wait(self._pace.renew_seconds / 10):
                self._wake.clear()
                self.flush()
                self._ended.wait(self._pace.publish_seconds)
                waited += self._pace.publish_seconds
            else:
                waited += self._pace.renew_seconds / 10
            if waited >= self._pace.renew_seconds:
                waited = 0.0
                self._renew()

    def _renew(self) -> None:
        try:
            self._also_renew(self._pace.lease_seconds)
            stop = self._turns.renew(self._lease, seconds=self._pace.lease_seconds)
            self.stop_requested = self.stop_requested or stop
        except Conflict:
            self.lost = True
        except InstarError:
            log.warning("lease_not_renewed", extra={"turn": self._lease.turn})
