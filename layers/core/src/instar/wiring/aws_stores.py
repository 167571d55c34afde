"""What a stack keeps, for the functions that use it: settings, secrets, documents, tables, queues.

Built when first used, so that a function opens only what it touches. PynamoDB and what lies on it
are imported here: the webhook has its own module.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from instar import config
from instar.adapters.aws.clients import Clients
from instar.adapters.aws.dynamo_connections import DynamoConnections
from instar.adapters.aws.dynamo_ledger import DynamoLedger, DynamoManifest, DynamoTombstones
from instar.adapters.aws.dynamo_sessions import DynamoSessions
from instar.adapters.aws.dynamo_turns import DynamoTurns
from instar.adapters.aws.rows import bind_tables
from instar.adapters.aws.s3_documents import S3Documents
from instar.adapters.aws.websocket_push import PushingSessions, WebSocketPush
from instar.adapters.http import Egress
from instar.clock import utc_now
from instar.web.transcripts import event_json
from instar.wiring.aws_settings import AwsSettings


@dataclass(frozen=True)
class AwsStores:
    """The stores of one stack. `environ` names its resources."""

    environ: Mapping[str, str]

    @classmethod
    def bound(cls, environ: Mapping[str, str], *names: str) -> "AwsStores":
        """The stores, after checking that the function was given the resources of these names.

        Raises Misconfigured naming all that are missing.
        """
        config.resources(environ, *names)
        bind_tables(
            ledger=environ.get("LEDGER_TABLE", ""),
            sessions=environ.get("SESSIONS_TABLE", ""),
            access=environ.get("ACCESS_TABLE", ""),
        )
        return cls(environ)

    @cached_property
    def clients(self) -> Clients:
        """Clients of AWS."""
        return Clients()

    @cached_property
    def egress(self) -> Egress:
        """The one way out."""
        return Egress()

    @cached_property
    def settings_source(self) -> AwsSettings:
        """Settings and secrets."""
        return AwsSettings(self.environ, self.clients)

    @cached_property
    def documents(self) -> S3Documents:
        """The Markdown documents."""
        return S3Documents(self.clients.s3(), self.environ["DOCUMENTS_BUCKET"])

    @cached_property
    def ledger(self) -> DynamoLedger:
        """The record of every write."""
        return DynamoLedger()

    @cached_property
    def tombstones(self) -> DynamoTombstones:
        """What must not return."""
        return DynamoTombstones()

    @cached_property
    def manifest(self) -> DynamoManifest:
        """How far the index is."""
        return DynamoManifest()

    @cached_property
    def turns(self) -> DynamoTurns:
        """Rows of turns."""
        return DynamoTurns(utc_now)

    @cached_property
    def connections(self) -> DynamoConnections:
        """Open sockets."""
        return DynamoConnections(utc_now)

    @cached_property
    def stored_sessions(self) -> DynamoSessions:
        """Transcripts and events, stored."""
        return DynamoSessions(utc_now)

    @cached_property
    def push(self) -> WebSocketPush:
        """Events to open sockets."""
        client = self.clients.connections(self.environ["CONNECTIONS_URL"])
        return WebSocketPush(client, self.connections, event_json)

    @cached_property
    def sessions(self) -> PushingSessions:
        """Transcripts and events, stored and then pushed to open sockets."""
        return PushingSessions(self.stored_sessions, self.push)
