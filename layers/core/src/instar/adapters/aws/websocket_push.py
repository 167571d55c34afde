"""Events straight to the sockets that follow a session, beside the store that keeps them.

The store comes first: what could not be pushed is read by the client's next `resume`, so a push
never fails a turn. A socket that is gone is forgotten; a bad one never stops the others. The
idempotency key of a frame is session and number: a client drops what it has seen.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import Any, Protocol

from instar.adapters.aws.errors import aws_failures
from instar.adapters.well_formed import json_bytes
from instar.conversation.ports import (
    Event,
    Lease,
    NewEvent,
    Session,
    Sessions,
    SessionSummary,
    TurnCommit,
)
from instar.errors import InstarError, NotFound
from instar.ids import SessionId

log = logging.getLogger(__name__)
# API Gateway takes 128 KB a message and cuts it into frames of 32 KB itself.
FRAME_BYTES = 128_000
CUT = " … [cut: load the session for the whole text]"


class PostsToConnections(Protocol):
    """The client of the @connections endpoint (`apigatewaymanagementapi`)."""

    def post_to_connection(self, *, ConnectionId: str, Data: bytes) -> Any:
        """Sends one message to one socket."""
        ...


class Followers(Protocol):
    """Which connections follow a session: DynamoConnections."""

    def of(self, session: SessionId) -> Sequence[str]:
        """The connections that follow the session."""
        ...

    def remove(self, connection: str) -> None:
        """Forgets a connection."""
        ...


class Numbering(Sessions, Protocol):
    """Sessions that tell the newest event's number: DynamoSessions."""

    def last_event(self, session: SessionId) -> int:
        """The number of the newest event, 0 when there is none."""
        ...


class WebSocketPush:
    """Sends events to sockets; `shown` is how an event looks on a socket."""

    def __init__(
        self,
        client: PostsToConnections,
        connections: Followers,
        shown: Callable[[Event], Mapping[str, Any]],
    ) -> None:
        self._client = client
        self._connections = connections
        self._shown = shown

    def push(self, session: SessionId, events: Sequence[Event]) -> None:
        """Sends the events, in order, to whoever follows the session; never raises."""
        if not events:
            return
        try:
            connections = self._connections.of(session)
        except InstarError as error:
            log.warning("push_skipped", extra={"session": session, "reason": error.detail})
            return
        if not connections:
            return
        frames = [frame_bytes(self._shown(event)) for event in events]
        for connection in connections:
            self._send(connection, frames)

    def send(self, connection: str, frame: Mapping[str, Any]) -> bool:
        """Sends one frame to one socket; False when it could not be sent."""
        return self._send(connection, [frame_bytes(frame)])

    def _send(self, connection: str, frames: Sequence[bytes]) -> bool:
        """The frames in order; the first that fails ends it, for the rest would leave a gap."""
        try:
            for frame in frames:
                with aws_failures(f"connection {connection!r}"):
                    self._client.post_to_connection(ConnectionId=connection, Data=frame)
        except NotFound:
            self._forget(connection)
            return False
        except InstarError as error:
            log.warning("push_failed", extra={"connection": connection, "reason": error.detail})
            return False
        return True

    def _forget(self, connection: str) -> None:
        try:
            self._connections.remove(connection)
        except InstarError as error:
            log.warning("gone_kept", extra={"connection": connection, "reason": error.detail})


class PushingSessions:
    """Sessions whose events also go to the sockets: stored first, then pushed."""

    def __init__(self, sessions: Numbering, push: WebSocketPush) -> None:
        self._sessions = sessions
        self._push = push

    def load(self, session: SessionId) -> Session:
        """The session; an empty one when it is not known."""
        return self._sessions.load(session)

    def list(self) -> Sequence[SessionSummary]:
        """All sessions, the most recently used first."""
        return self._sessions.list()

    def commit(self, lease: Lease, commit: TurnCommit) -> None:
        """Ends a turn, then pushes its closing events. Raises as the store does."""
        before = self._sessions.last_event(lease.session)
        self._sessions.commit(lease, commit)
        try:
            events = self._sessions.events(lease.session, after=before)
        except InstarError as error:
            log.warning("push_skipped", extra={"session": lease.session, "reason": error.detail})
            return
        self._push.push(lease.session, events)

    def publish(self, session: SessionId, events: Sequence[NewEvent]) -> Sequence[Event]:
        """Numbers and keeps the events, then pushes and returns them."""
        published = self._sessions.publish(session, events)
        self._push.push(session, published)
        return published

    def events(self, session: SessionId, *, after: int, limit: int = 500) -> Sequence[Event]:
        """The events with a number greater than `after`, oldest first."""
        return self._sessions.events(session, after=after, limit=limit)


def frame_bytes(frame: Mapping[str, Any]) -> bytes:
    """The frame as JSON within the limit: its longest texts are cut, and `cut` says so."""
    whole = dict(frame)
    data = json_bytes(whole)
    while len(data) > FRAME_BYTES:
        sizes = {name: len(json_bytes(value)) for name, value in whole.items()}
        longest = max(sizes, key=sizes.__getitem__)
        room = sizes[longest] - (len(data) - FRAME_BYTES) - len(CUT.encode()) - 100
        whole |= {longest: _cut(whole[longest], room), "cut": True}
        data = json_bytes(whole)
    return data


def _cut(value: Any, size_bytes: int) -> str:
    """So much of a text (or of another value's JSON) as surely fits, marked."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    sizes = (len(json_bytes(character)) - 2 for character in text)
    fits = takewhile(lambda size: size <= size_bytes, accumulate(sizes))
    return text[: sum(1 for _ in fits)] + CUT
