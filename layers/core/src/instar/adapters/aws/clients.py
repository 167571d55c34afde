"""The one place that makes boto3 clients: one session, time limits, standard retries.

Where the services are is botocore's own business (AWS_ENDPOINT_URL, AWS_REGION, the role), so the
same code talks to AWS and to the local cloud. Clients are thread-safe and made once, at
composition. PynamoDB makes its own clients with the same numbers (see rows.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_ssm import SSMClient

CONNECT_SECONDS = 2
READ_SECONDS = 10
ATTEMPTS = 4
POOL = 20


class Clients:
    """Clients of one session, made on request."""

    def __init__(self, session: boto3.Session | None = None) -> None:
        self._session = session or boto3.Session()

    def s3(self) -> S3Client:
        """Objects; a body may take a while."""
        return self._session.client("s3", config=limits(30))

    def dynamodb(self) -> DynamoDBClient:
        """Rows without PynamoDB: for the webhook."""
        return self._session.client("dynamodb", config=limits())

    def sqs(self) -> SQSClient:
        """Queues."""
        return self._session.client("sqs", config=limits())

    def ssm(self) -> SSMClient:
        """Parameters."""
        return self._session.client("ssm", config=limits())

    def functions(self, read_seconds: int = READ_SECONDS) -> LambdaClient:
        """Lambda, to nudge and invoke."""
        return self._session.client("lambda", config=limits(read_seconds))

    def connections(self, endpoint: str) -> Any:
        """The @connections endpoint of the WebSocket API: a slow socket is not waited for."""
        return self.other("apigatewaymanagementapi", read_seconds=3, endpoint=endpoint)

    def other(
        self, service: str, *, read_seconds: int = READ_SECONDS, endpoint: str | None = None
    ) -> Any:
        """A client of any other service, without static types."""
        make: Any = self._session.client
        return make(service, config=limits(read_seconds), endpoint_url=endpoint)


def limits(read_seconds: int = READ_SECONDS) -> Config:
    """Time limits and retries of every client."""
    return Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=read_seconds,
        max_pool_connections=POOL,
        retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
    )
