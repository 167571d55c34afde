"""What the contract tests share: a clock that a test moves, the embedded database, and the ports
that keep their promises only together (turns, sessions, outbox)."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import boto3
import moto.s3.models
import moto.sqs.models
import pytest
from moto import mock_aws
from moto.core.botocore_stubber import BotocoreStubber

from instar.adapters.aws.clients import Clients
from instar.adapters.aws.dynamo_inbox import DynamoInbox
from instar.adapters.aws.dynamo_outbox import DynamoOutbox
from instar.adapters.aws.dynamo_sessions import DynamoSessions
from instar.adapters.aws.dynamo_turns import DynamoStopRequests, DynamoTurns
from instar.adapters.aws.rows import bind_tables
from instar.adapters.local.database import Database
from instar.adapters.local.sqlite_outbox import SqliteOutbox
from instar.adapters.local.sqlite_sessions import SqliteSessions
from instar.adapters.local.sqlite_turns import SqliteInbox, SqliteStopRequests, SqliteTurns
from instar.conversation.envelopes import InboundMessage, Reply, ReplyAddress
from instar.conversation.ports import (
    Inbox,
    NewEvent,
    Outbox,
    Sessions,
    StopRequests,
    TurnCommit,
    Turns,
)
from instar.ids import MAIN_AGENT, MessageId, ReplyId, SessionId, TurnId
from instar.messages import Message, Text
from instar.principal import owner


class MovingClock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = datetime(2031, 5, 4, 12, 30, 15, 250000, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> MovingClock:
    return MovingClock()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "instar.db")
    yield database
    database.close()


@pytest.fixture(scope="session")
def aws_session() -> boto3.Session:
    """One for all tests: it has read the service descriptions, which takes longer than a test."""
    return boto3.Session("testing", "testing", region_name="eu-central-1")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, aws_session: boto3.Session) -> Iterator[Clients]:
    """An account in this process: three tables, a versioned bucket "documents", two FIFO queues.

    Where moto is not as AWS is, it is made so: its requests are served one after the other (its
    transactions are not atomic among threads), no two versions have the same second (it lists
    removals after all versions, not among them), and a queue remembers what was taken from it.
    """
    for name, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_CONFIG_FILE": "/nonexistent",
        "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    turnstile, serve = threading.RLock(), BotocoreStubber.process_request
    seconds, add = iter(range(9999)), moto.sqs.models.Queue.add_message
    seen: set[tuple[str, str | None]] = set()

    def one_by_one(stubber: BotocoreStubber, request: Any) -> Any:
        with turnstile:
            return serve(stubber, request)

    def add_once(queue: Any, message: Any) -> None:
        identity = (queue.name, message.deduplication_id)
        if identity not in seen:
            seen.add(identity)
            add(queue, message)

    start = datetime(2031, 5, 4, 12, 0, tzinfo=UTC).replace(tzinfo=None)
    monkeypatch.setattr(BotocoreStubber, "process_request", one_by_one)
    monkeypatch.setattr(moto.sqs.models.Queue, "add_message", add_once)
    monkeypatch.setattr(moto.s3.models, "utcnow", lambda: start + timedelta(seconds=next(seconds)))
    with mock_aws():
        clients = Clients(aws_session)
        make_account(clients)
        yield clients


def make_account(clients: Clients) -> None:
    """What the template makes, as far as these adapters see it."""
    dynamodb, s3, sqs = clients.dynamodb(), clients.s3(), clients.sqs()
    for table in ("ledger", "sessions", "access"):
        dynamodb.create_table(
            TableName=table,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "S"},
            ],
        )
    bind_tables(ledger="ledger", sessions="sessions", access="access")
    location: Any = {"LocationConstraint": "eu-central-1"}
    s3.create_bucket(Bucket="documents", CreateBucketConfiguration=location)
    s3.put_bucket_versioning(Bucket="documents", VersioningConfiguration={"Status": "Enabled"})
    for queue in ("turns.fifo", "deliver.fifo"):
        sqs.create_queue(QueueName=queue, Attributes={"FifoQueue": "true"})


def an_inbound(turn: str = "t1", *, session: str = "web:1", digest: str = "d1") -> InboundMessage:
    """A message of the owner."""
    return InboundMessage(
        turn=TurnId(turn),
        identity=f"identity of {turn}",
        digest=digest,
        session=SessionId(session),
        text="Grüß dich",
        principal=owner(MAIN_AGENT, session=SessionId(session), turn=TurnId(turn)),
        address=ReplyAddress(channel="telegram", account="main", conversation="12345"),
        at=datetime(2031, 5, 4, 12, 0, tzinfo=UTC),
    )


def a_reply(turn: str = "t1", *, session: str = "web:1") -> Reply:
    """What that turn answers."""
    return Reply(
        id=ReplyId(f"reply of {turn}"),
        turn=TurnId(turn),
        session=SessionId(session),
        address=an_inbound(turn, session=session).address,
        text="Hallo",
    )


def a_message(id: str, *, role: Literal["user", "assistant"] = "user") -> Message:
    """A line of a transcript."""
    at = datetime(2031, 5, 4, 12, 0, 1, 5000, tzinfo=UTC)
    return Message(id=MessageId(id), role=role, parts=(Text(text=f"text of {id}"),), at=at)


@dataclass
class Conversation:
    """The adapters that share one store, and ways to make what they store."""

    inbox: Inbox
    turns: Turns
    sessions: Sessions
    stop_requests: StopRequests
    outbox: Outbox
    inbound = staticmethod(an_inbound)
    reply = staticmethod(a_reply)
    message = staticmethod(a_message)

    def committed(self, turn: str = "t1", *, session: str = "web:1") -> Reply:
        """A turn that was answered; its reply stands in the outbox."""
        self.inbox.accept(an_inbound(turn, session=session))
        lease = self.turns.lease(TurnId(turn), seconds=90)
        reply = a_reply(turn, session=session)
        self.sessions.commit(lease, self.end(reply))
        return reply

    def end(self, reply: Reply | None, **fields: Any) -> TurnCommit:
        """What ends a turn."""
        whole = {
            "messages": [a_message("m1"), a_message("m2", role="assistant")],
            "state": "completed",
            "reply": reply,
            "events": [NewEvent(kind="reply", data={"text": "Hallo"})],
            "at": datetime(2031, 5, 4, 12, 1, tzinfo=UTC),
        }
        return TurnCommit(**(whole | fields))


def sqlite_conversation(request: pytest.FixtureRequest) -> Conversation:
    database, clock = request.getfixturevalue("database"), request.getfixturevalue("clock")
    return Conversation(
        inbox=SqliteInbox(database),
        turns=SqliteTurns(database, clock),
        sessions=SqliteSessions(database, clock),
        stop_requests=SqliteStopRequests(database),
        outbox=SqliteOutbox(database, clock),
    )


def dynamo_conversation(request: pytest.FixtureRequest) -> Conversation:
    aws: Clients = request.getfixturevalue("aws")
    clock = request.getfixturevalue("clock")
    return Conversation(
        inbox=DynamoInbox(aws.dynamodb(), "sessions"),
        turns=DynamoTurns(clock),
        sessions=DynamoSessions(clock),
        stop_requests=DynamoStopRequests(),
        outbox=DynamoOutbox(clock),
    )


@pytest.fixture(params=[sqlite_conversation, dynamo_conversation], ids=lambda build: build.__name__)
def conversation(request: pytest.FixtureRequest) -> Conversation:
    """Turns, sessions and outbox over one store: their contracts run on every one of these."""
    return request.param(request)
