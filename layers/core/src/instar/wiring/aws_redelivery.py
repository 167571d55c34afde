"""When a queued message that failed comes back: its queue's own time is meant for a worker that
died without a word, and as long as the longest turn."""

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from instar.adapters.aws.sqs_queues import SqsQueue
from instar.channels.outcomes import Uncertain
from instar.conversation.deliver import CLAIM_SECONDS
from instar.errors import Conflict, Throttled

HELD_SECONDS = 10.0
FIRST_SECONDS = 5.0
LONGEST_SECONDS = 900.0


@contextmanager
def redelivered(queue: SqsQueue, receipt: str, receives: int) -> Iterator[None]:
    """Around the work on a message: says when it comes back, then raises what kept it."""
    try:
        yield
    except Exception as error:
        queue.change_visibility(receipt, again_in(error, receives))
        raise


def again_in(error: Exception, receives: int) -> float:
    """Seconds until the next try: none for what no time makes readable (its group waits behind it,
    so it should reach the dead letters), little for what another worker holds, else ever more.
    A reply that may have gone out stays claimed for a while.
    """
    if isinstance(error, ValidationError):
        return 0.0
    if isinstance(error, Conflict):
        return HELD_SECONDS
    if isinstance(error, Uncertain):
        return CLAIM_SECONDS
    asked = error.retry_after_seconds if isinstance(error, Throttled) else None
    return min(LONGEST_SECONDS, max(asked or 0.0, FIRST_SECONDS * 2.0 ** min(receives - 1, 20)))
