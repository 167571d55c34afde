"""The websocket function: tickets, frames, connections. What a frame does is what it does on a
laptop; events go out from the functions that make them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from instar import config
from instar.access.keyring import BROWSER, TICKET, Caller, Keyring
from instar.access.tokens import allows
from instar.adapters.aws.dynamo_connections import DynamoConnections
from instar.adapters.aws.dynamo_inbox import DynamoInbox
from instar.adapters.aws.dynamo_turns import DynamoStopRequests
from instar.adapters.aws.sqs_queues import SqsTurnQueue
from instar.adapters.aws.websocket_push import WebSocketPush
from instar.clock import utc_now
from instar.conversation.envelopes import ReplyAddress
from instar.conversation.ingest import Draft, Ingest
from instar.conversation.ports import Sessions
from instar.errors import Forbidden, InstarError, Unauthenticated
from instar.ids import SessionId, session_id
from instar.memory.secrets import masked
from instar.principal import Principal
from instar.web.frames import Frame, MessageFrame, ResumeFrame, StopFrame, error_frame, parsed_frame
from instar.web.transcripts import event_json
from instar.wiring.aws_access import keyring
from instar.wiring.aws_stores import AwsStores

RESOURCES = ("SESSIONS_TABLE", "ACCESS_TABLE", "TURN_QUEUE_URL", "CONNECTIONS_URL")
RESUMED_EVENTS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sockets:
    """What happens on a socket of the stack."""

    keyring: Keyring
    connections: DynamoConnections
    ingest: Ingest
    sessions: Sessions
    stops: DynamoStopRequests
    push: WebSocketPush

    def connect(self, connection: str, ticket: str) -> None:
        """Opens a socket for who holds the ticket. Raises Unauthenticated."""
        self.connections.add(connection, self.keyring.redeem(TICKET, ticket))

    def disconnect(self, connection: str) -> None:
        """Forgets the socket; best effort, its row expires by itself."""
        self.connections.remove(connection)

    def frame(self, connection: str, text: str) -> None:
        """Does what a frame asks; a refusal is told on the socket, naming the frame."""
        frame: Frame | None = None
        try:
            frame = parsed_frame(text)
            self._handle(connection, frame)
        except InstarError as error:
            self.push.send(connection, error_frame(error, frame))

    def _handle(self, connection: str, frame: Frame) -> None:
        caller = self._caller(connection)
        session = session_id(frame.session)
        needed = ("chat", "sessions:read") if isinstance(frame, ResumeFrame) else ("chat",)
        if not any(allows(caller.scopes, scope) for scope in needed):
            raise Forbidden(f"a {frame.kind} frame needs the scope {' or '.join(needed)}")
        if isinstance(frame, StopFrame):
            self.stops.stop(session)
            return
        self.connections.subscribe(connection, session)
        if isinstance(frame, ResumeFrame):
            self._resume(connection, session, frame.after)
            return
        turn = self.ingest.accept(_draft(caller, session, frame, self.keyring.new_id))
        if frame.receipt:
            accepted = {"kind": "accepted", "session": session, "id": frame.id, "turn": turn}
            self.push.send(connection, accepted)

    def _resume(self, connection: str, session: SessionId, after: int) -> None:
        sent = 0
        while sent < RESUMED_EVENTS:
            events = self.sessions.events(session, after=after)
            if not events:
                return
            for event in events:
                self.push.send(connection, event_json(event))
            after, sent = events[-1].n, sent + len(events)

    def _caller(self, connection: str) -> Caller:
        data = self.connections.caller(connection)
        if data is None:
            raise Unauthenticated("this socket has expired", fix="Connect again with a new ticket.")
        self._require_standing(data)
        return Caller(
            name=data["name"],
            scopes=frozenset(data["scopes"].split()),
            principal=Principal.model_validate_json(data["principal"]),
        )

    def _require_standing(self, data: Mapping[str, str]) -> None:
        """Raises Unauthenticated once the key was revoked or the browser has signed out."""
        if data.get("browser"):
            stands = self.keyring.grants.get(BROWSER, data["browser"]) is not None
        elif data["name"].startswith("key:"):
            key = self.keyring.keys.find(data["name"].removeprefix("key:"))
            stands = key is not None and not key.revoked
        else:
            stands = True
        if not stands:
            raise Unauthenticated("the key or session of this socket has ended")


def _draft(caller: Caller, session: SessionId, frame: MessageFrame, new_id: Any) -> Draft:
    return Draft(
        identity=f"session:{caller.name}:{session}:{frame.id or new_id()}",
        session=session,
        text=frame.text,
        principal=caller.principal,
        address=ReplyAddress(channel="session", conversation=session),
    )


def build() -> Sockets:
    """The use case, from the function's environment."""
    stores = AwsStores.bound(config.environment(), *RESOURCES)
    clients, environ = stores.clients, stores.environ
    return Sockets(
        keyring=keyring(),
        connections=stores.connections,
        ingest=Ingest(
            inbox=DynamoInbox(clients.dynamodb(), environ["SESSIONS_TABLE"]),
            queue=SqsTurnQueue(clients.sqs(), environ["TURN_QUEUE_URL"]),
            clock=utc_now,
            mask=masked,
        ),
        sessions=stores.stored_sessions,
        stops=DynamoStopRequests(),
        push=stores.push,
    )
