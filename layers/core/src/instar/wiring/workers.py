"""The threads of an embedded process: turns, deliveries, the index, a person's edits.

Each loop takes one thing, does it, and goes on whatever happened to it: what failed comes back from
its queue after a while, what keeps failing ends among the dead letters and in `doctor`.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from watchfiles import watch

from instar.adapters.local.sqlite_queues import Received, SqliteQueue
from instar.channels.outcomes import PartlySent
from instar.clock import Deadline, utc_now
from instar.conversation.envelopes import InboundMessage, Reply
from instar.conversation.turn import Continued
from instar.errors import Conflict, InstarError, Throttled
from instar.wiring.embedded import LEASE_SECONDS, Embedded

log = logging.getLogger(__name__)

TURN_THREADS, DELIVERY_THREADS = 4, 2
# A turn renews its reservation every few seconds; a delivery does not, and may take its time.
DELIVERY_SECONDS = 90.0
RETRY_SECONDS, LONGEST_RETRY_SECONDS = 2.0, 300.0
TURN_SECONDS = 3600.0
LEVEL_EVERY = timedelta(seconds=60)
WATCH_MILLISECONDS = 200


def pause_seconds(error: InstarError, receives: int) -> float:
    """How long a message waits for its next try: longer each time, and as long as was asked for.

    A crashed worker's lease or claim has run out long before the queue gives a message up.
    """
    grown = min(RETRY_SECONDS * 2.0 ** min(receives - 1, 10), LONGEST_RETRY_SECONDS)
    asked = error.retry_after_seconds if isinstance(error, Throttled | PartlySent) else None
    return max(grown, asked or 0.0)


@dataclass
class Workers:
    """Starts and stops the threads of one home."""

    embedded: Embedded
    _ended: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Starts all threads; returns at once. Raises Misconfigured."""
        self.embedded.build()
        stores = self.embedded.stores
        loops: list[tuple[str, Callable[[], None]]] = [
            *(
                (f"turn-{n}", lambda: self._consume(stores.turn_queue, self._turn, LEASE_SECONDS))
                for n in range(TURN_THREADS)
            ),
            *(
                (
                    f"deliver-{n}",
                    lambda: self._consume(stores.delivery_queue, self._deliver, DELIVERY_SECONDS),
                )
                for n in range(DELIVERY_THREADS)
            ),
            ("watch", self._watch),
            ("vectors", self._vectors),
        ]
        for name, loop in loops:
            thread = threading.Thread(target=self._forever, args=(loop,), name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Asks all threads to end and waits for those between two things."""
        self._ended.set()
        for thread in self._threads:
            thread.join(timeout=2)

    def _forever(self, loop: Callable[[], None]) -> None:
        while not self._ended.is_set():
            try:
                loop()
            except Exception:
                log.exception("loop_failed", extra={"loop": threading.current_thread().name})
                self._ended.wait(RETRY_SECONDS)

    def _consume(
        self, queue: SqliteQueue, handle: Callable[[Received], float | None], seconds: float
    ) -> None:
        """One message, if one comes: handled and deleted, or visible again after some seconds."""
        received = queue.receive(seconds)
        if received is None:
            queue.wait(0.5)
            return
        try:
            again_after = handle(received)
        except InstarError as error:
            level = logging.DEBUG if isinstance(error, Conflict) else logging.WARNING
            log.log(level, "message_failed", extra={"type": error.type, "detail": error.detail})
            again_after = pause_seconds(error, received.receives)
        if again_after is None:
            queue.delete(received.receipt)
        else:
            queue.change_visibility(received.receipt, again_after)

    def _turn(self, received: Received) -> float | None:
        queue = self.embedded.stores.turn_queue
        message = InboundMessage.model_validate_json(received.body)
        outcome = self.embedded.runner.run(
            message,
            Deadline.after(TURN_SECONDS, utc_now),
            lambda seconds: queue.change_visibility(received.receipt, seconds),
        )
        return 0.0 if isinstance(outcome, Continued) else None

    def _deliver(self, received: Received) -> float | None:
        self.embedded.delivery.run(Reply.model_validate_json(received.body))
        return None

    def _watch(self) -> None:
        """Brings the index level at the start, after every change on disk, and once a minute."""
        indexer = self.embedded.memory.indexer
        indexer.level()
        folder = self.embedded.stores.home.path / "agents"
        folder.mkdir(parents=True, exist_ok=True)
        changes = watch(
            folder,
            stop_event=self._ended,
            debounce=WATCH_MILLISECONDS,
            step=50,
            rust_timeout=int(LEVEL_EVERY.total_seconds() * 1000),
            yield_on_timeout=True,
            raise_interrupt=False,
        )
        for _ in changes:
            indexer.level()
            self.embedded.memory.writer.settle_unfinished()

    def _vectors(self) -> None:
        """Computes vectors that are missing, a little at a time."""
        self.embedded.memory.indexer.embed_pending(Deadline.after(10, utc_now))
        self._ended.wait(0.5)
