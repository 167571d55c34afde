from datetime import UTC, datetime

import pytest

from instar.adapters.aws.dynamo_inbox import DynamoInbox
from instar.adapters.aws.dynamo_outbox import DynamoOutbox
from instar.adapters.aws.dynamo_sessions import DynamoSessions
from instar.adapters.aws.dynamo_turns import DynamoStopRequests, DynamoTurns
from instar.adapters.aws.row_access import rows_of
from instar.adapters.aws.rows import RunningRow, SessionPart
from instar.conversation.envelopes import InboundMessage, Reply, ReplyAddress
from instar.conversation.ports import NewEvent, Step, TurnCommit
from instar.errors import Conflict, NotFound, Unavailable
from instar.ids import MAIN_AGENT, MessageId, ReplyId, SessionId, TurnId
from instar.messages import Message, Text, Usage
from instar.principal import owner

AT = datetime(2031, 5, 4, 12, 0, tzinfo=UTC)
ADDRESS = ReplyAddress(channel="telegram", account="main", conversation="1")
SESSION = SessionId("telegram:1")


def message(id: str, text: str = "hello") -> Message:
    return Message(id=MessageId(id), role="user", parts=(Text(text=text),), at=AT)


def reply(turn: str, text: str = "hi") -> Reply:
    return Reply(
        id=ReplyId(f"r-{turn}"), turn=TurnId(turn), session=SESSION, address=ADDRESS, text=text
    )


def end(messages=(), events=(), answer=None) -> TurnCommit:
    return TurnCommit(messages=messages, state="completed", reply=answer, events=events, at=AT)


@pytest.fixture
def lease(aws, clock):
    inbound = InboundMessage(
        turn=TurnId("t1"),
        identity="t1",
        digest="d",
        session=SESSION,
        text="hello",
        principal=owner(MAIN_AGENT),
        address=ADDRESS,
        at=AT,
    )
    DynamoInbox(aws.dynamodb(), "sessions").accept(inbound)
    return DynamoTurns(clock).lease(TurnId("t1"), seconds=90)


@pytest.fixture
def sessions(aws, clock):
    return DynamoSessions(clock, sleep=lambda _: None)


@pytest.fixture
def turns(aws, clock):
    return DynamoTurns(clock, sleep=lambda _: None)


def test_a_turn_of_thousands_of_messages_is_one_commit(sessions, lease):
    messages = tuple(message(f"m{number}") for number in range(3000))
    events = [NewEvent(kind="tool_result", data={"n": number}) for number in range(300)]

    sessions.commit(lease, end(messages, events))

    assert sessions.load(SESSION).messages == messages
    assert [event.n for event in sessions.events(SESSION, after=0)] == list(range(1, 301))


def test_texts_of_megabytes_are_kept_whole(sessions, lease, clock):
    long = "ü👩‍💻" * 400_000
    answer = reply("t1", long)

    sessions.commit(
        lease, end((message("m1", long),), [NewEvent(kind="reply", data={"text": long})], answer)
    )

    assert sessions.load(SESSION).messages == (message("m1", long),)
    assert sessions.events(SESSION, after=0)[0].data == {"text": long}
    assert DynamoTurns(clock).get(TurnId("t1")).reply == answer
    assert DynamoOutbox(clock).claim(answer.id, seconds=60).reply == answer


def test_a_step_with_a_long_result_is_kept_whole_and_replaced(turns, lease):
    first = Step(number=1, assistant=message("a"), results=None, usage=Usage())
    done = Step(
        number=1, assistant=message("a"), results=message("r", "x" * 900_000), usage=Usage()
    )
    turns.record(lease, first)
    turns.record(lease, done)

    assert turns.get(TurnId("t1")).steps == (done,)


def test_a_page_of_events_may_begin_and_end_within_a_batch(sessions):
    sessions.publish(SESSION, [NewEvent(kind="notice", data={"n": n}) for n in range(4)])
    sessions.publish(SESSION, [NewEvent(kind="notice", data={"n": n}) for n in range(4)])

    assert [event.n for event in sessions.events(SESSION, after=2, limit=4)] == [3, 4, 5, 6]
    assert sessions.events(SESSION, after=2**53) == []
    assert sessions.events(SESSION, after=0, limit=0) == []
    assert sessions.last_event(SESSION) == 8


def test_a_commit_whose_answer_got_lost_is_one_commit(sessions, lease, wire):
    nothing = [None] * 4
    wire.next(*nothing, wire.lost)

    sessions.commit(lease, end((message("m1"),), answer=reply("t1")))

    assert sessions.load(SESSION).messages == (message("m1"),)
    assert sessions.load(SESSION).version == 1


def test_a_lease_is_renewed_while_a_step_of_it_is_being_written(turns, lease, wire):
    wire.next(wire.dynamodb_error("TransactionConflictException"))

    assert turns.renew(lease, seconds=90) is False


def test_a_store_that_is_down_is_no_lost_lease(turns, lease, wire):
    wire.next(*[wire.plain(500, "{}")] * 4)

    with pytest.raises(Unavailable):
        turns.renew(lease, seconds=90)


def test_an_event_numbered_by_others_meanwhile_is_numbered_anew(sessions, wire):
    reasons = [{"Code": "ConditionalCheckFailed"}, {"Code": "None"}]
    raced = wire.dynamodb_error("TransactionCanceledException", CancellationReasons=reasons)
    wire.next(None, raced)

    (event,) = sessions.publish(SESSION, [NewEvent(kind="notice", data={})])

    assert event.n == 1
    assert sessions.events(SESSION, after=0) == [event]


def test_a_turn_that_ended_is_not_looked_at_when_the_owner_stops(sessions, lease):
    running = RunningRow.sk.startswith("running#")
    assert [row.turn for row in rows_of(RunningRow, f"session#{SESSION}", running)] == ["t1"]

    sessions.commit(lease, end())

    assert rows_of(RunningRow, f"session#{SESSION}", running) == []
    assert DynamoStopRequests().stop(SESSION) is False


def test_an_old_fence_writes_nothing(sessions, turns, lease, clock):
    clock.advance(91)
    turns.lease(TurnId("t1"), seconds=90)

    with pytest.raises(Conflict):
        sessions.commit(lease, end((message("m1"),), answer=reply("t1")))

    assert sessions.load(SESSION).messages == ()
    assert DynamoOutbox(clock).unsent() == []


def test_a_turn_that_was_given_its_place_but_no_lease_is_not_stopped(aws, lease, clock):
    RunningRow(f"session#{SESSION}", "running#t9", turn="t9").save()

    assert DynamoStopRequests().stop(SESSION) is True
    assert DynamoTurns(clock).get(TurnId("t1")).stop_requested is True
    with pytest.raises(NotFound):
        DynamoTurns(clock).get(TurnId("t9"))


def test_half_a_text_is_never_shown(turns, lease):
    long = message("r", "x" * 900_000)
    turns.record(lease, Step(number=1, assistant=long, results=None, usage=Usage()))
    rows_of(SessionPart, "turn#t1", SessionPart.sk.startswith("part#"))[1].delete()

    with pytest.raises(Unavailable, match="parts"):
        turns.get(TurnId("t1"))
