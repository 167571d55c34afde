"""What the embedded queue promises to its workers."""

import time
from threading import Thread

import pytest

from instar.adapters.local.sqlite_queues import DeadLetter, SqliteQueue
from instar.errors import Conflict
from instar.ids import new_id

WORKER = """
import sys
from pathlib import Path
from instar.adapters.local.database import Database
from instar.adapters.local.sqlite_queues import SqliteQueue
from instar.clock import utc_now
from instar.ids import new_id

queue = SqliteQueue(Database(Path(sys.argv[1])), utc_now, new_id, name="q", max_receives=3)
while (received := queue.receive(30)) is not None:
    print(received.group, received.body, flush=True)
    queue.delete(received.receipt)
"""


@pytest.fixture
def queue(database, clock) -> SqliteQueue:
    return SqliteQueue(database, clock, new_id, name="q", max_receives=3)


def put(queue: SqliteQueue, *bodies: str) -> None:
    """Bodies are "<group><number>"."""
    for body in bodies:
        queue.put(body, group=body[0], deduplication=body)


def bodies(queue: SqliteQueue, seconds: float = 30) -> list[str]:
    found = []
    while (received := queue.receive(seconds)) is not None:
        found.append(received.body)
    return found


def test_one_message_of_a_group_is_in_flight_and_other_groups_go_on(queue):
    put(queue, "a1", "a2", "b1", "a3", "b2")

    assert bodies(queue) == ["a1", "b1"]


def test_the_next_of_the_group_follows_the_deletion(queue):
    put(queue, "a1", "a2")
    first = queue.receive(30)
    assert queue.receive(30) is None

    queue.delete(first.receipt)

    assert bodies(queue) == ["a2"]


def test_a_message_comes_back_first_of_its_group_after_its_time(queue, clock):
    put(queue, "a1", "a2")
    queue.receive(30)
    clock.advance(29)
    assert queue.receive(30) is None
    clock.advance(1)

    again = queue.receive(30)

    assert (again.body, again.receives) == ("a1", 2)


def test_a_handed_over_message_is_visible_at_once_ahead_of_newer_ones(queue):
    put(queue, "a1", "a2", "b1")
    queue.change_visibility(queue.receive(30).receipt, 0)

    assert bodies(queue) == ["a1", "b1"]


def test_visibility_is_extended_from_now(queue, clock):
    put(queue, "a1")
    received = queue.receive(30)
    clock.advance(20)
    queue.change_visibility(received.receipt, 30)
    clock.advance(29)

    assert queue.receive(30) is None
    queue.delete(received.receipt)


def test_a_receipt_from_before_the_last_receive_is_refused(queue, clock):
    put(queue, "a1")
    old = queue.receive(30)
    clock.advance(31)
    new = queue.receive(30)

    with pytest.raises(Conflict):
        queue.delete(old.receipt)
    with pytest.raises(Conflict):
        queue.change_visibility(old.receipt, 0)

    queue.change_visibility(new.receipt, 30)
    queue.delete(new.receipt)
    queue.delete(new.receipt)
    with pytest.raises(Conflict):
        queue.change_visibility(new.receipt, 0)


def test_a_late_deletion_counts_while_nobody_received_it_again(queue, clock):
    put(queue, "a1")
    received = queue.receive(30)
    clock.advance(100)
    queue.delete(received.receipt)

    assert queue.receive(30) is None


def test_a_message_received_too_often_is_a_dead_letter_and_its_group_goes_on(queue, clock):
    put(queue, "a1", "a2", "b1")
    for _ in range(3):
        received = queue.receive(30)
        assert received.body == "a1"
        queue.change_visibility(received.receipt, 0)
    clock.advance(1)

    assert bodies(queue) == ["a2", "b1"]
    assert queue.dead() == [DeadLetter(group="a", body="a1", receives=3, at=clock())]
    with pytest.raises(Conflict):
        queue.delete(received.receipt)


def test_a_repeat_is_dropped_for_five_minutes(queue, clock):
    put(queue, "a1", "a1")
    queue.delete(queue.receive(30).receipt)
    clock.advance(299)
    put(queue, "a1")
    assert queue.receive(30) is None
    clock.advance(1)
    put(queue, "a1")

    assert bodies(queue) == ["a1"]


def test_queues_do_not_see_each_other(queue, database, clock):
    other = SqliteQueue(database, clock, new_id, name="other", max_receives=3)
    put(queue, "a1")
    put(other, "a1", "a2")

    assert bodies(queue) == ["a1"]
    assert bodies(other) == ["a1"]


def test_everything_is_there_after_a_restart(queue, database, clock):
    put(queue, "a1", "a2")
    received = queue.receive(30)
    database.close()

    again = SqliteQueue(database, clock, new_id, name="q", max_receives=3)

    assert again.receive(30) is None
    again.delete(received.receipt)
    assert bodies(again) == ["a2"]


def test_waiting_ends_when_a_message_comes(queue):
    started = time.monotonic()
    putter = Thread(target=lambda: (time.sleep(0.05), put(queue, "a1")))
    putter.start()

    assert queue.wait(5) is True
    assert time.monotonic() - started < 2
    putter.join()


def test_waiting_notices_messages_of_other_processes(queue, database, clock):
    other = SqliteQueue(database, clock, new_id, name="q", max_receives=3)
    putter = Thread(target=lambda: (time.sleep(0.05), put(other, "a1")))
    putter.start()

    assert queue.wait(5) is True
    putter.join()


def test_waiting_has_an_end(queue):
    put(queue, "a1", "a2")
    queue.receive(30)

    assert queue.wait(0.15) is False


def test_workers_in_several_processes_share_the_messages(queue, tmp_path, database, children):
    wanted = [f"{group}{number}" for number in range(10) for group in "abcdef"]
    put(queue, *wanted)
    # Visible for the real clock of the workers, too.
    with database.write() as connection:
        connection.execute("UPDATE queue SET visible_at = 0")

    workers = [children.start(WORKER, tmp_path / "instar.db") for _ in range(4)]
    seen = [line for worker in workers for line in worker.communicate()[0].splitlines()]
    seen += [f"{body[0]} {body}" for body in bodies(queue)]

    assert sorted(seen) == sorted(f"{body[0]} {body}" for body in wanted)
