import json
from datetime import UTC, datetime

import pytest

from instar.adapters.aws.dynamo_connections import DynamoConnections
from instar.adapters.aws.dynamo_inbox import DynamoInbox
from instar.adapters.aws.dynamo_sessions import DynamoSessions
from instar.adapters.aws.dynamo_turns import DynamoTurns
from instar.adapters.aws.websocket_push import (
    FRAME_BYTES,
    PushingSessions,
    WebSocketPush,
    frame_bytes,
)
from instar.conversation.envelopes import InboundMessage, ReplyAddress
from instar.conversation.ports import Event, NewEvent, TurnCommit
from instar.errors import NotFound
from instar.ids import MAIN_AGENT, SessionId, TurnId
from instar.principal import owner

AT = datetime(2031, 5, 4, 12, 0, tzinfo=UTC)
SESSION = SessionId("web:1")
HOUR = 3600


def shown(event: Event) -> dict:
    return {"n": event.n, "kind": event.kind, **event.data}


@pytest.fixture
def connections(aws, clock):
    return DynamoConnections(clock)


@pytest.fixture
def client(aws):
    return aws.connections("https://abcdefgh12.execute-api.eu-central-1.amazonaws.com/live")


@pytest.fixture
def push(client, connections):
    return WebSocketPush(client, connections, shown)


@pytest.fixture
def pushing(push, clock):
    return PushingSessions(DynamoSessions(clock), push)


def follow(connections, *names: str) -> None:
    for name in names:
        connections.add(name, {"name": "browser"})
        connections.subscribe(name, SESSION)


def posted(wire) -> list[tuple[str, dict]]:
    """What went to which connection."""
    posts = [request for request in wire.requests if "@connections" in request.url]
    return [(post.url.rpartition("/")[2], json.loads(post.body)) for post in posts]


def test_a_connection_is_known_for_two_hours_and_knows_its_caller(connections, clock):
    connections.add("c1", {"name": "browser", "scopes": "owner"})
    connections.subscribe("c1", SESSION)

    clock.advance(2 * HOUR - 1)
    assert connections.caller("c1") == {"name": "browser", "scopes": "owner"}
    assert connections.of(SESSION) == ["c1"]
    clock.advance(2)
    assert connections.caller("c1") is None
    assert connections.of(SESSION) == []
    with pytest.raises(NotFound):
        connections.subscribe("c1", SESSION)


def test_a_removed_connection_follows_nothing(connections):
    follow(connections, "c1", "c2")
    connections.subscribe("c1", SessionId("web:2"))
    assert connections.followed("c1") == ["web:1", "web:2"]

    connections.remove("c1")
    connections.remove("c1")

    assert connections.caller("c1") is None
    assert (connections.of(SESSION), connections.of(SessionId("web:2"))) == (["c2"], [])
    assert connections.followed("c1") == []


def test_rows_of_connections_expire_by_themselves(connections, aws, clock):
    follow(connections, "c1")

    until = str(int(clock().timestamp()) + 2 * HOUR)
    items = aws.dynamodb().scan(TableName="sessions")["Items"]
    assert [item["expires"]["N"] for item in items] == [until] * 3


def test_published_events_go_to_every_follower_in_order(pushing, connections, wire):
    follow(connections, "c1", "c2")

    events = pushing.publish(
        SESSION, [NewEvent(kind="text_delta", data={"text": text}) for text in ("Hal", "lo")]
    )

    assert [event.n for event in events] == [1, 2]
    frames = [
        {"n": 1, "kind": "text_delta", "text": "Hal"},
        {"n": 2, "kind": "text_delta", "text": "lo"},
    ]
    assert posted(wire) == [(name, frame) for name in ("c1", "c2") for frame in frames]


def test_a_gone_connection_is_forgotten_and_the_others_go_on(pushing, connections, wire):
    follow(connections, "c1", "c2", "c3")
    gone = wire.plain(410, '{"message": "Gone"}')
    refused = wire.plain(403, '{"message": "Forbidden"}')

    def by_name(request):
        name = request.url.rpartition("/")[2]
        answers = {"c1": gone, "c2": refused, "c3": wire.plain(200)}
        return answers[name](request)

    events = [NewEvent(kind="notice", data={})]
    wire.answer_posts(by_name)

    assert len(pushing.publish(SESSION, events)) == 1
    assert [name for name, _ in posted(wire)] == ["c1", "c2", "c3"]
    assert connections.of(SESSION) == ["c2", "c3"]


def test_a_push_that_cannot_look_up_its_followers_fails_nothing(push, wire):
    wire.next(*[wire.plain(500)] * 4)

    push.push(SESSION, [Event(session=SESSION, n=1, kind="notice", at=AT, data={})])

    assert posted(wire) == []


def test_the_closing_events_of_a_turn_are_stored_then_pushed_once(
    pushing, connections, aws, clock, wire
):
    follow(connections, "c1")
    inbound = InboundMessage(
        turn=TurnId("t1"),
        identity="t1",
        digest="d",
        session=SESSION,
        text="hello",
        principal=owner(MAIN_AGENT),
        address=ReplyAddress(channel="session"),
        at=AT,
    )
    DynamoInbox(aws.dynamodb(), "sessions").accept(inbound)
    lease = DynamoTurns(clock).lease(TurnId("t1"), seconds=90)
    commit = TurnCommit(
        messages=(),
        state="completed",
        reply=None,
        events=[NewEvent(kind="reply", data={"text": "hi"})],
        at=AT,
    )
    pushing.publish(SESSION, [NewEvent(kind="turn_started", data={})])

    pushing.commit(lease, commit)
    pushing.commit(lease, commit)

    assert posted(wire) == [
        ("c1", {"n": 1, "kind": "turn_started"}),
        ("c1", {"n": 2, "kind": "reply", "text": "hi"}),
    ]
    assert pushing.load(SESSION).version == 1
    assert [summary.session for summary in pushing.list()] == [SESSION]
    assert [event.n for event in pushing.events(SESSION, after=0)] == [1, 2]


@pytest.mark.parametrize("text", ["x" * 500_000, "ü\n" * 200_000, "👩‍💻" * 100_000])
def test_a_frame_over_the_limit_is_cut_and_says_so(text):
    data = frame_bytes({"n": 1, "kind": "reply", "text": text, "html": f"<p>{text}</p>"})

    assert len(data) <= FRAME_BYTES
    frame = json.loads(data)
    assert frame["cut"] is True
    assert (frame["n"], frame["kind"]) == (1, "reply")
    kept = frame["text"].removesuffix(" … [cut: load the session for the whole text]")
    assert text.startswith(kept)


def test_other_values_are_cut_as_their_json():
    frame = json.loads(frame_bytes({"n": 1, "result": {"rows": ["y" * 200_000]}}))

    assert frame["result"].startswith('{"rows": ["yyy')
    assert frame["cut"] is True


def test_a_frame_within_the_limit_is_sent_as_it_is():
    assert json.loads(frame_bytes({"n": 1, "text": "ü"})) == {"n": 1, "text": "ü"}


def test_one_frame_goes_to_one_socket(push, wire):
    assert push.send("c9", {"kind": "error"}) is True
    wire.next(wire.plain(410))
    assert push.send("c9", {"kind": "error"}) is False


def test_a_gone_connection_that_cannot_be_forgotten_now_fails_nothing(push, connections, wire):
    follow(connections, "c1")
    wire.answer_posts(wire.plain(410))
    wire.next(None, *[wire.plain(500)] * 4)

    push.push(SESSION, [])
    push.push(SESSION, [Event(session=SESSION, n=1, kind="notice", at=AT, data={})])

    assert connections.of(SESSION) == ["c1"]
