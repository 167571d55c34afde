"""Every Turns and StopRequests adapter keeps these promises."""

from threading import Thread

import pytest

from instar.conversation.ports import Lease, Step
from instar.errors import Conflict, NotFound
from instar.messages import Usage


@pytest.fixture
def turns(conversation):
    conversation.inbox.accept(conversation.inbound("t1", session="web:1"))
    return conversation.turns


def test_an_unknown_turn_is_not_found(turns):
    with pytest.raises(NotFound):
        turns.get("nobody")
    with pytest.raises(NotFound):
        turns.lease("nobody", seconds=90)
    with pytest.raises(NotFound):
        turns.renew(Lease(turn="nobody", session="web:1", fence=1), seconds=90)


def test_a_lease_makes_the_turn_run(turns):
    lease = turns.lease("t1", seconds=90)

    assert lease == Lease(turn="t1", session="web:1", fence=1)
    record = turns.get("t1")
    assert (record.state, record.attempts, record.crashes) == ("running", 1, 0)


def test_a_turn_that_is_held_is_a_conflict(turns, clock):
    turns.lease("t1", seconds=90)
    clock.advance(89)

    with pytest.raises(Conflict):
        turns.lease("t1", seconds=90)

    assert turns.get("t1").attempts == 1


def test_a_lease_that_ran_out_is_taken_over_and_counts_a_crash(turns, clock):
    turns.lease("t1", seconds=90)
    clock.advance(91)

    assert turns.lease("t1", seconds=90).fence == 2
    record = turns.get("t1")
    assert (record.attempts, record.crashes) == (2, 1)


def test_a_renewed_lease_holds_from_now_on(turns, clock):
    lease = turns.lease("t1", seconds=90)
    clock.advance(60)
    assert turns.renew(lease, seconds=90) is False
    clock.advance(60)

    with pytest.raises(Conflict):
        turns.lease("t1", seconds=90)


def test_a_handover_is_no_crash(turns):
    lease = turns.lease("t1", seconds=90)
    turns.renew(lease, seconds=0, handover=True)

    assert turns.lease("t1", seconds=90).fence == 2
    record = turns.get("t1")
    assert (record.attempts, record.crashes) == (2, 0)


def test_a_lease_given_up_otherwise_is_free_at_once_and_counts_a_crash(turns):
    lease = turns.lease("t1", seconds=90)
    turns.renew(lease, seconds=0)

    assert turns.lease("t1", seconds=90).fence == 2
    assert turns.get("t1").crashes == 1


def test_an_old_fence_is_refused_everywhere(turns, conversation, clock):
    old = turns.lease("t1", seconds=90)
    clock.advance(91)
    turns.lease("t1", seconds=90)

    with pytest.raises(Conflict):
        turns.renew(old, seconds=90)
    with pytest.raises(Conflict):
        turns.record(old, a_step(conversation, 1))
    with pytest.raises(Conflict):
        conversation.sessions.commit(old, conversation.end(conversation.reply("t1")))

    assert turns.get("t1").steps == ()
    assert conversation.sessions.load("web:1").messages == ()


def a_step(conversation, number: int, *, done: bool = False) -> Step:
    return Step(
        number=number,
        assistant=conversation.message(f"a{number}", role="assistant"),
        results=conversation.message(f"r{number}") if done else None,
        usage=Usage(input_tokens=10, output_tokens=number, estimated=True),
    )


def test_steps_are_kept_in_order_and_replaced_by_their_number(turns, conversation):
    lease = turns.lease("t1", seconds=90)
    turns.record(lease, a_step(conversation, 1))
    turns.record(lease, a_step(conversation, 1, done=True))
    turns.record(lease, a_step(conversation, 10))
    turns.record(lease, a_step(conversation, 2))

    assert turns.get("t1").steps == (
        a_step(conversation, 1, done=True),
        a_step(conversation, 2),
        a_step(conversation, 10),
    )


def test_a_successor_goes_on_with_the_steps(turns, conversation, clock):
    turns.record(turns.lease("t1", seconds=90), a_step(conversation, 1, done=True))
    clock.advance(91)
    turns.record(turns.lease("t1", seconds=90), a_step(conversation, 2))

    assert [step.number for step in turns.get("t1").steps] == [1, 2]


def test_a_turn_that_ended_is_neither_leased_nor_written(conversation):
    conversation.committed("t1")
    lease = Lease(turn="t1", session="web:1", fence=1)

    with pytest.raises(Conflict):
        conversation.turns.lease("t1", seconds=90)
    with pytest.raises(Conflict):
        conversation.turns.record(lease, a_step(conversation, 1))

    assert conversation.turns.renew(lease, seconds=90) is False
    assert conversation.turns.get("t1").attempts == 1


def test_of_many_workers_at_once_one_gets_the_lease(turns):
    fences = []

    def lease() -> None:
        try:
            fences.append(turns.lease("t1", seconds=90).fence)
        except Conflict:
            fences.append(0)

    threads = [Thread(target=lease) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(fences) == [0] * 7 + [1]


def test_the_owner_stops_a_running_turn(turns, conversation):
    lease = turns.lease("t1", seconds=90)

    assert conversation.stop_requests.stop("web:1") is True
    assert turns.renew(lease, seconds=90) is True
    assert turns.get("t1").stop_requested is True


def test_a_stop_holds_for_the_successor(turns, conversation):
    lease = turns.lease("t1", seconds=90)
    conversation.stop_requests.stop("web:1")
    turns.renew(lease, seconds=0, handover=True)

    turns.lease("t1", seconds=90)

    assert turns.get("t1").stop_requested is True


def test_nothing_is_stopped_where_nothing_runs(turns, conversation):
    conversation.committed("t2", session="web:2")

    assert conversation.stop_requests.stop("web:1") is False
    assert conversation.stop_requests.stop("web:2") is False
    assert conversation.stop_requests.stop("web:3") is False
    assert turns.get("t1").stop_requested is False
