"""What the tests of the AWS adapters share: an account in this process, and its wire."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.core.botocore_stubber import BotocoreStubber
from moto.core.models import botocore_stubber

from instar.adapters.aws import rows
from instar.adapters.aws.clients import Clients

Answer = Callable[[Any], Any]


@pytest.fixture(scope="session")
def aws_session() -> boto3.Session:
    """One for all tests: it has read the service descriptions, which takes longer than a test."""
    return boto3.Session("testing", "testing", region_name="eu-central-1")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, aws_session: boto3.Session) -> Iterator[Clients]:
    """Three tables and a versioned bucket "documents"."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        clients = Clients(aws_session)
        dynamodb, s3 = clients.dynamodb(), clients.s3()
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
        rows.bind_tables(ledger="ledger", sessions="sessions", access="access")
        location: Any = {"LocationConstraint": "eu-central-1"}
        s3.create_bucket(Bucket="documents", CreateBucketConfiguration=location)
        s3.put_bucket_versioning(Bucket="documents", VersioningConfiguration={"Status": "Enabled"})
        yield clients


class Wire:
    """What passes between clients and account; the next requests can be answered otherwise."""

    def __init__(self, serve: Answer) -> None:
        self.requests: list[Any] = []
        self._serve = serve
        self._answers: list[Answer | None] = []
        self._posts: Answer | None = None

    def next(self, *answers: Answer | None) -> None:
        """The next requests get these answers; None is the account's own."""
        self._answers += answers

    def answer_posts(self, answer: Answer) -> None:
        """From now on messages to sockets get this answer."""
        self._posts = answer

    def process(self, request: Any) -> Any:
        """Answers one request."""
        self.requests.append(request)
        if self._posts is not None and "@connections" in request.url:
            return self._posts(request)
        other = self._answers.pop(0) if self._answers else None
        return self._serve(request) if other is None else other(request)

    def plain(self, status: int, body: str = "") -> Answer:
        """The same answer for any request."""
        return lambda _: (status, {}, body.encode())

    def dynamodb_error(self, code: str, **fields: Any) -> Answer:
        """How DynamoDB refuses."""
        kind = f"com.amazonaws.dynamodb.v20120810#{code}"
        return self.plain(400, json.dumps({"__type": kind, "message": "no", **fields}))

    def s3_error(self, status: int, code: str) -> Answer:
        """How S3 refuses."""
        return self.plain(status, f"<Error><Code>{code}</Code><Message>no</Message></Error>")

    def lost(self, request: Any) -> Any:
        """The request arrives and is done; its answer does not come back."""
        self._serve(request)
        return 500, {}, b""


@pytest.fixture
def wire(aws: Clients, monkeypatch: pytest.MonkeyPatch) -> Wire:
    """The wire of all clients of the account."""
    wire = Wire(partial(BotocoreStubber.process_request, botocore_stubber))
    monkeypatch.setattr(
        BotocoreStubber, "process_request", lambda _, request: wire.process(request)
    )
    return wire
