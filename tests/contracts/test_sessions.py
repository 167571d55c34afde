"""Every Sessions adapter keeps these promises."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest

from instar.conversation.ports import Event, NewEvent, Session, SessionSummary
from instar.errors import Conflict, Invalid

AT = datetime(2031, 5, 4, 12, 1, tzinfo=UTC)


def deltas(*texts: str) -> list[NewEvent]:
    return [NewEvent(kind="text_delta", data={"text": text}) for text in texts]


def test_an_unknown_session_is_empty(conversation):
    assert conversation.sessions.load("web:1") == Session(session="web:1", version=0, messages=())
    assert conversation.sessions.events("web:1", after=0) == []
    assert conversation.sessions.list() == []


def test_a_commit_writes_messages_turn_outbox_and_events_together(conversation):
    reply = conversation.committed("t1")

    assert conversation.sessions.load("web:1") == Session(
        session="web:1",
        version=1,
        messages=(conversation.message("m1"), conversation.message("m2", role="assistant")),
    )
    record = conversation.turns.get("t1")
    assert (record.state, record.reply) == ("completed", reply)
    assert conversation.outbox.unsent() == [reply]
    assert conversation.sessions.events("web:1", after=0) == [
        Event(session="web:1", n=1, kind="reply", at=AT, data={"text": "Hallo"})
    ]


def test_a_failed_turn_keeps_its_problem_and_has_no_reply(conversation):
    conversation.inbox.accept(conversation.inbound("t1"))
    lease = conversation.turns.lease("t1", seconds=90)
    problem = {"type": "unavailable", "detail": "the model", "fix": ""}
    conversation.sessions.commit(lease, conversation.end(None, state="failed", failure=problem))

    record = conversation.turns.get("t1")
    assert (record.state, record.reply, record.failure) == ("failed", None, problem)
    assert conversation.outbox.unsent() == []


def test_committing_again_with_the_same_fence_changes_nothing(conversation):
    conversation.inbox.accept(conversation.inbound("t1"))
    lease = conversation.turns.lease("t1", seconds=90)
    end = conversation.end(conversation.reply("t1"))
    conversation.sessions.commit(lease, end)
    before = conversation.sessions.load("web:1")

    conversation.sessions.commit(lease, end)
    conversation.sessions.commit(lease, replace(end, state="failed", reply=None))

    assert conversation.sessions.load("web:1") == before
    assert conversation.turns.get("t1").state == "completed"
    assert [event.n for event in conversation.sessions.events("web:1", after=0)] == [1]


def test_an_end_after_another_worker_ended_it_is_a_conflict(conversation, clock):
    conversation.inbox.accept(conversation.inbound("t1"))
    old = conversation.turns.lease("t1", seconds=90)
    clock.advance(91)
    new = conversation.turns.lease("t1", seconds=90)
    conversation.sessions.commit(new, conversation.end(conversation.reply("t1")))

    with pytest.raises(Conflict):
        conversation.sessions.commit(old, conversation.end(conversation.reply("t1")))

    assert conversation.sessions.load("web:1").version == 1


def test_a_state_that_is_no_end_is_invalid(conversation):
    conversation.inbox.accept(conversation.inbound("t1"))
    lease = conversation.turns.lease("t1", seconds=90)

    with pytest.raises(Invalid):
        conversation.sessions.commit(lease, conversation.end(None, state="running"))

    assert conversation.turns.get("t1").state == "running"


def test_a_reply_id_that_is_taken_undoes_the_whole_commit(conversation):
    taken = conversation.committed("t1")
    conversation.inbox.accept(conversation.inbound("t2"))
    lease = conversation.turns.lease("t2", seconds=90)

    with pytest.raises(Conflict):
        conversation.sessions.commit(lease, conversation.end(taken))

    assert conversation.sessions.load("web:1").version == 1
    assert conversation.turns.get("t2").state == "running"
    assert len(conversation.sessions.events("web:1", after=0)) == 1


def test_turns_append_in_order(conversation):
    for number in range(3):
        conversation.inbox.accept(conversation.inbound(f"t{number}"))
        lease = conversation.turns.lease(f"t{number}", seconds=90)
        messages = [conversation.message(f"{number}.{part}") for part in range(40)]
        conversation.sessions.commit(lease, conversation.end(None, messages=messages))

    session = conversation.sessions.load("web:1")
    assert session.version == 3
    assert [message.id for message in session.messages] == [
        f"{number}.{part}" for number in range(3) for part in range(40)
    ]


def test_sessions_are_listed_the_most_recently_used_first(conversation):
    for number, session in enumerate(["web:1", "web:2", "web:1"]):
        conversation.inbox.accept(conversation.inbound(f"t{number}", session=session))
        lease = conversation.turns.lease(f"t{number}", seconds=90)
        at = AT + timedelta(minutes=number)
        conversation.sessions.commit(lease, conversation.end(None, at=at))

    assert conversation.sessions.list() == [
        SessionSummary(
            session="web:1",
            channel="telegram",
            address="main:12345",
            at=AT + timedelta(minutes=2),
        ),
        SessionSummary(
            session="web:2",
            channel="telegram",
            address="main:12345",
            at=AT + timedelta(minutes=1),
        ),
    ]


def test_published_events_are_numbered_kept_and_returned(conversation, clock):
    published = conversation.sessions.publish("web:1", deltas("Hal", "lo"))

    assert published == [
        Event(session="web:1", n=1, kind="text_delta", at=clock(), data={"text": "Hal"}),
        Event(session="web:1", n=2, kind="text_delta", at=clock(), data={"text": "lo"}),
    ]
    assert conversation.sessions.events("web:1", after=0) == published
    assert conversation.sessions.publish("web:1", []) == []


def test_events_are_read_from_any_number_on(conversation):
    conversation.sessions.publish("web:1", deltas(*"abcdef"))

    def numbers(**wanted) -> list[int]:
        return [event.n for event in conversation.sessions.events("web:1", **wanted)]

    assert numbers(after=0) == [1, 2, 3, 4, 5, 6]
    assert numbers(after=4) == [5, 6]
    assert numbers(after=6) == []
    assert numbers(after=1, limit=2) == [2, 3]


def test_each_session_has_its_own_numbers(conversation):
    conversation.sessions.publish("web:1", deltas("a"))

    assert [event.n for event in conversation.sessions.publish("web:2", deltas("b"))] == [1]
    assert [event.n for event in conversation.sessions.publish("web:1", deltas("c"))] == [2]


def test_numbers_have_no_gaps_under_concurrency(conversation):
    threads = [
        Thread(target=conversation.sessions.publish, args=("web:1", deltas("x", "y")))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    numbers = [event.n for event in conversation.sessions.events("web:1", after=0)]
    assert numbers == list(range(1, 41))


def test_a_long_text_is_kept(conversation):
    conversation.sessions.publish("web:1", deltas("ü" * 300_000))

    (event,) = conversation.sessions.events("web:1", after=0)
    assert event.data == {"text": "ü" * 300_000}
