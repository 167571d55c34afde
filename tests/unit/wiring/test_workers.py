"""The threads of a process: what fails comes back later, and later, and then ends somewhere."""

import pytest

from instar.adapters.local.sqlite_queues import SqliteQueue
from instar.channels.outcomes import PartlySent, Uncertain
from instar.clock import utc_now
from instar.conversation.deliver import CLAIM_SECONDS
from instar.errors import Conflict, Misconfigured, Throttled, Unavailable
from instar.ids import new_id
from instar.testing.builders import at_work, embedded_at, eventually
from instar.wiring.embedded import LEASE_SECONDS
from instar.wiring.home_stores import DELIVERY_RECEIVES, TURN_RECEIVES
from instar.wiring.workers import LONGEST_RETRY_SECONDS, Workers, pause_seconds


def test_pauses_grow_to_a_limit():
    pauses = [pause_seconds(Unavailable("x"), receives) for receives in range(1, 61)]

    assert pauses[:4] == [2, 4, 8, 16]
    assert max(pauses) == LONGEST_RETRY_SECONDS


@pytest.mark.parametrize(
    "error",
    [Throttled("x", retry_after_seconds=33), PartlySent("x", parts_sent=1, retry_after_seconds=33)],
)
def test_what_the_platform_asks_for_is_waited_for(error):
    assert pause_seconds(error, 1) == 33
    assert pause_seconds(error, 7) == 128
    assert pause_seconds(Throttled("x"), 1) == 2


def test_a_claim_or_lease_runs_out_long_before_a_message_is_given_up():
    """What a crash left is waited for with Conflicts, each of which counts as a receive."""

    def waited(receives: int) -> float:
        return sum(pause_seconds(Conflict("held"), number) for number in range(1, receives))

    assert waited(TURN_RECEIVES) > 4 * LEASE_SECONDS
    assert waited(DELIVERY_RECEIVES) > 4 * CLAIM_SECONDS


def consumed(embedded, error: Exception | None) -> SqliteQueue:
    """A queue whose one message was handled, ending in that error."""
    queue = SqliteQueue(embedded.stores.database, utc_now, new_id, name="x", max_receives=9)
    queue.put("body", group="g", deduplication="d")

    def handle(received) -> float | None:
        if error:
            raise error
        return None

    Workers(embedded)._consume(queue, handle, 90)
    return queue


def test_a_handled_message_is_gone(embedded):
    consumed(embedded, None)

    with embedded.stores.database.read() as connection:
        assert connection.execute("SELECT count(*) FROM queue").fetchone()[0] == 0


@pytest.mark.parametrize("error", [Unavailable("x"), Uncertain("x"), Conflict("x")])
def test_a_failed_message_comes_back_after_its_pause(embedded, error):
    queue = consumed(embedded, error)

    assert queue.receive(90) is None
    with embedded.stores.database.write() as connection:
        connection.execute("UPDATE queue SET visible_at = visible_at - 2000000")
    assert queue.receive(90).receives == 2


def test_settings_that_cannot_be_used_start_nothing(home):
    workers = Workers(embedded_at(home, {"INSTAR_TIME_ZONE": "Mars"}))

    with pytest.raises(Misconfigured, match="INSTAR_TIME_ZONE"):
        workers.start()

    assert workers._threads == []


def test_threads_end_when_asked(embedded):
    with at_work(embedded) as workers:
        eventually(lambda: all(thread.is_alive() for thread in workers._threads))

    assert not any(thread.is_alive() for thread in workers._threads)
