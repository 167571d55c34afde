"""Rows of the three tables, as PynamoDB models; row_access.py reads and writes them.

Every table has the string keys `pk` and `sk`, the time-to-live attribute `expires`, and no index:
what is listed (sessions, unsent replies, begun writes) stands in a partition of its own, so every
question is a get or a query, strongly consistent, and never a scan.

    ledger    document#KEY      ORDER           LedgerRow      a write; ORDER = micros#checkpoint
              checkpoint#C, effect#E, turn#T, all, begun       PlaceRow: where a row stands
              tombstone#AGENT   mark#MARK       TombstoneRow
              manifest          key#KEY         ManifestItem
    sessions  sessions          SESSION         HeadRow        the session list
              session#S         messages#N      MessagesRow    the messages of commit N
                                counter         CounterRow     the number of the newest event
                                event#N         EventsRow      a batch of events up to number N
                                running#T       RunningRow     turns that may be running
                                part#...        SessionPart    bodies too long for one item
              turn#T            turn, step#N    TurnRow, StepRow
              reply#R           reply           OutboxRow
              unsent            ORDER           UnsentRow      replies still to be delivered
              connection#C      connection, session#S          ConnectionRow, FollowsRow
              followers#S       CONNECTION      FollowerRow
    access    keys              key#ID          KeyRow
              grant#KIND        digest#D        GrantRow
              call#NAME         call            CallRow        (and AccessPart)

Models of one table share one botocore client, with the limits of clients.py. `bind_tables` names
the tables once, at composition; PynamoDB's settings file plays no part.
"""

from typing import ClassVar

from pynamodb.attributes import (
    BinaryAttribute,
    BooleanAttribute,
    NumberAttribute,
    TTLAttribute,
    UnicodeAttribute,
)
from pynamodb.models import Model

from instar.adapters.aws.clients import ATTEMPTS, CONNECT_SECONDS, POOL, READ_SECONDS


class _Limits:
    """Explicit, so that no settings file has a say."""

    table_name = "unbound"
    region: ClassVar[str | None] = None
    host: ClassVar[str | None] = None
    connect_timeout_seconds = CONNECT_SECONDS
    read_timeout_seconds = READ_SECONDS
    max_retry_attempts = ATTEMPTS - 1
    max_pool_connections = POOL
    extra_headers: ClassVar[dict[str, str] | None] = None


class Row(Model):
    """What all rows have. Not a table."""

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    expires = TTLAttribute(null=True)


# --- the ledger table ------------------------------------------------------------------------


class LedgerTable(Row):
    """Rows of the ledger table."""

    class Meta(_Limits):
        """Its name."""


class LedgerRow(LedgerTable):
    """One write of a document. The idempotency key is the checkpoint."""

    checkpoint = UnicodeAttribute()
    key = UnicodeAttribute()
    at = NumberAttribute()
    author = UnicodeAttribute()
    reason = UnicodeAttribute()
    before = UnicodeAttribute(null=True)
    digest = UnicodeAttribute()
    after = UnicodeAttribute(null=True)
    state = UnicodeAttribute()
    session = UnicodeAttribute(null=True)
    turn = UnicodeAttribute(null=True)
    call = UnicodeAttribute(null=True)
    effect = UnicodeAttribute(null=True)
    added = NumberAttribute()
    removed = NumberAttribute()


class PlaceRow(LedgerTable):
    """Where the row of a checkpoint stands. An effect's place is its idempotency key."""

    checkpoint = UnicodeAttribute()
    document = UnicodeAttribute()
    order = UnicodeAttribute()


class TombstoneRow(LedgerTable):
    """A mark that stands; its key says everything."""


class ManifestItem(LedgerTable):
    """How far the index is with a document. The idempotency key is the document's key."""

    token = UnicodeAttribute()
    revision = UnicodeAttribute()
    state = UnicodeAttribute()
    generation = UnicodeAttribute()
    passages = NumberAttribute()
    vectors = NumberAttribute()
    reason = UnicodeAttribute()


# --- the sessions table ----------------------------------------------------------------------


class SessionsTable(Row):
    """Rows of the sessions table."""

    class Meta(_Limits):
        """Its name."""


class HeadRow(SessionsTable):
    """A session on the list. `version` counts commits, absent before the first."""

    channel = UnicodeAttribute()
    address = UnicodeAttribute()
    at = NumberAttribute()
    version = NumberAttribute(null=True)


class MessagesRow(SessionsTable):
    """The messages of one commit, as JSON. The idempotency key is the turn's fence."""

    body = UnicodeAttribute()
    parts = NumberAttribute(null=True)


class CounterRow(SessionsTable):
    """How many events a session has; every batch of events moves it in its transaction."""

    last = NumberAttribute()


class EventsRow(SessionsTable):
    """Events published together, as JSON; `size` of them, the last has the sort key's number."""

    at = NumberAttribute()
    size = NumberAttribute()
    body = UnicodeAttribute()
    parts = NumberAttribute(null=True)


class RunningRow(SessionsTable):
    """A turn that may be running: written before its first lease, removed by its commit."""

    turn = UnicodeAttribute()


class SessionPart(SessionsTable):
    """A part of a body that is too long for one item."""

    data = BinaryAttribute(legacy_encoding=False)


class TurnRow(SessionsTable):
    """A turn. The idempotency key is its id; every write carries the fence it knows."""

    session = UnicodeAttribute()
    digest = UnicodeAttribute()
    message = UnicodeAttribute()
    state = UnicodeAttribute()
    attempts = NumberAttribute()
    crashes = NumberAttribute()
    fence = NumberAttribute()
    leased_until = NumberAttribute(null=True)
    stop_requested = BooleanAttribute(null=True)
    reply = UnicodeAttribute(null=True)
    failure = UnicodeAttribute(null=True)


class StepRow(SessionsTable):
    """A step of a turn, as JSON. The idempotency key is turn and number."""

    body = UnicodeAttribute()
    parts = NumberAttribute(null=True)


class OutboxRow(SessionsTable):
    """A committed reply, as JSON. The idempotency key is the reply's id."""

    body = UnicodeAttribute()
    parts = NumberAttribute(null=True)
    state = UnicodeAttribute()
    order = UnicodeAttribute()
    attempts = NumberAttribute()
    claimed_until = NumberAttribute(null=True)
    uncertain = BooleanAttribute(null=True)
    detail = UnicodeAttribute(null=True)


class UnsentRow(SessionsTable):
    """A reply that is neither sent nor given up."""

    reply = UnicodeAttribute()


class ConnectionRow(SessionsTable):
    """An open WebSocket and who opened it."""

    data = UnicodeAttribute()
    until = NumberAttribute()


class FollowsRow(SessionsTable):
    """A session that a connection follows."""

    session = UnicodeAttribute()


class FollowerRow(SessionsTable):
    """A connection that follows a session."""

    until = NumberAttribute()


# --- the access table ------------------------------------------------------------------------


class AccessTable(Row):
    """Rows of the access table."""

    class Meta(_Limits):
        """Its name."""


class KeyRow(AccessTable):
    """An API key. The idempotency key is its id."""

    id = UnicodeAttribute()
    digest = UnicodeAttribute()
    scopes = UnicodeAttribute()
    tools = UnicodeAttribute(null=True)
    created_at = NumberAttribute()
    revoked = BooleanAttribute()


class GrantRow(AccessTable):
    """A grant under the hash of its token."""

    expires_at = NumberAttribute()
    data = UnicodeAttribute()


class CallRow(AccessTable):
    """An outside tool call. The idempotency key is the caller's, per API key and tool."""

    digest = UnicodeAttribute()
    claimed_at = NumberAttribute()
    status = NumberAttribute(null=True)
    body = UnicodeAttribute(null=True)
    parts = NumberAttribute(null=True)


class AccessPart(AccessTable):
    """A part of an answer that is too long for one item."""

    data = BinaryAttribute(legacy_encoding=False)


# --- their names -----------------------------------------------------------------------------


def bind_tables(*, ledger: str = "", sessions: str = "", access: str = "") -> None:
    """Names the tables; once, at composition. A table that a function does not use stays ""."""
    names = {LedgerTable: ledger, SessionsTable: sessions, AccessTable: access}
    for table, name in names.items():
        table.Meta.table_name = name or "unbound"
        # The models of a table inherit this connection, and with it one client.
        table._get_connection()
