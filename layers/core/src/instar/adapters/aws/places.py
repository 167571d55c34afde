"""Where rows are kept: partition key, sort key, and the numbers inside them. No PynamoDB here.

Every key starts with a word for its kind. Numbers are padded so that text order is number order;
moments are whole microseconds since 1970 UTC. What others name (idempotency keys, effects) is
replaced by its SHA-256 when it is long: DynamoDB takes 2,048 bytes of a partition key and 1,024 of
a sort key.
"""

import hashlib
from datetime import UTC, datetime, timedelta

from instar.conversation.envelopes import ReplyAddress

SESSIONS = "sessions"
TURN = "turn"
# Room for every number that a client may send (2^53).
_DIGITS = 16
_NAME_BYTES = 900
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def session_place(session: str) -> str:
    """The partition of a session's messages, events and running turns."""
    return f"session#{session}"


def turn_place(turn: str) -> str:
    """The partition of a turn's row and steps."""
    return f"turn#{turn}"


def numbered(kind: str, number: int) -> str:
    """A sort key that orders by number."""
    return f"{kind}#{number:0{_DIGITS}d}"


def bounded(name: str) -> str:
    """A name of any length as part of a key: itself, or its hash when it is long."""
    data = name.encode("utf-8", "surrogatepass")
    is_text = name.isprintable() and len(data) <= _NAME_BYTES
    return name if is_text else f"sha256:{hashlib.sha256(data).hexdigest()}"


def shown_address(address: ReplyAddress) -> str:
    """How a session list shows an address: its parts without the empty ones."""
    parts = (address.account, address.conversation, address.thread)
    return ":".join(part for part in parts if part)


def micros(moment: datetime) -> int:
    """Whole microseconds since 1970 UTC."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment(value: int) -> datetime:
    """The moment of so many microseconds."""
    return _EPOCH + timedelta(microseconds=value)
