"""The websocket function: a ticket opens a socket, frames do what they do on a laptop."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from instar.ids import MAIN_AGENT, SessionId
from instar.principal import owner

CONNECTION = "L0SM9cOFvHcCIhw="
SESSION = SessionId("web:1")


@pytest.fixture
def call(load_function: Any, context: Any) -> Callable[[dict[str, Any]], int]:
    """The deployed function: the status of its answer."""
    handler = load_function("websocket")
    return lambda event: handler(event, context)["statusCode"]


@pytest.fixture
def ticket(call: Any) -> Callable[..., str]:
    """A ticket as the API gives it out, for a key with these scopes."""

    def make(*scopes: str) -> str:
        from instar.access.keyring import TICKET
        from instar.wiring.aws_access import keyring

        _, key = keyring().create(scopes)
        principal = owner(MAIN_AGENT).model_dump_json()
        return keyring().grant(
            TICKET,
            {"name": f"key:{key.id}", "scopes": " ".join(scopes), "principal": principal},
        )

    return make


@pytest.fixture
def open_socket(call: Any, ticket: Any, event: Any) -> Callable[..., None]:
    """Opens the socket of the captured events."""

    def connect(*scopes: str) -> None:
        told = event("websocket_connect")
        told["queryStringParameters"] = {"ticket": ticket(*(scopes or ("owner",)))}
        assert call(told) == 200

    return connect


def says(event: Any, **frame: Any) -> dict[str, Any]:
    """The captured message event with another frame."""
    told: dict[str, Any] = event("websocket_message")
    told["body"] = json.dumps(frame)
    return told


def test_a_message_becomes_a_turn_of_the_session_and_the_socket_follows_it(
    call: Any, open_socket: Any, event: Any, account: Any
) -> None:
    open_socket()

    status = call(event("websocket_message"))

    (queued,) = account.take("TurnQueue")
    message = json.loads(queued["Body"])
    followers = [row["sk"]["S"] for row in account.rows("SessionsTable") if is_follower(row)]
    assert status == 200
    assert queued["Attributes"]["MessageGroupId"] == "web:1"
    assert message["text"] == "Was darf Anna nicht essen?"
    assert message["address"]["channel"] == "session"
    assert followers == [CONNECTION]
    assert account.frames(CONNECTION) == []


def is_follower(row: dict[str, Any]) -> bool:
    return bool(row["pk"]["S"] == f"followers#{SESSION}")


def test_a_frame_that_comes_twice_is_one_message(
    call: Any, open_socket: Any, event: Any, account: Any
) -> None:
    open_socket()

    statuses = [call(event("websocket_message")), call(event("websocket_message"))]

    turns = [row for row in account.rows("SessionsTable") if row["sk"]["S"] == "turn"]
    assert statuses == [200, 200]
    assert len(turns) == 1
    assert len(account.take("TurnQueue")) == 1


@pytest.mark.parametrize("name", ["websocket_connect", "websocket_connect_without_ticket"])
def test_a_socket_without_a_known_ticket_is_401(
    call: Any, event: Any, account: Any, name: str
) -> None:
    assert call(event(name)) == 401
    assert account.rows("SessionsTable") == []


def test_a_ticket_opens_one_socket_only(call: Any, ticket: Any, event: Any) -> None:
    told = event("websocket_connect")
    told["queryStringParameters"] = {"ticket": ticket("owner")}

    assert [call(told), call(told)] == [200, 401]


def test_a_frame_on_a_socket_that_was_never_opened_is_told_so_and_not_queued(
    call: Any, event: Any, account: Any
) -> None:
    assert call(event("websocket_message")) == 200

    (frame,) = account.frames(CONNECTION)
    assert (frame["kind"], frame["type"]) == ("error", "unauthenticated")
    assert account.take("TurnQueue") == []


@pytest.mark.parametrize("name", ["websocket_unknown_frame", "websocket_not_json"])
def test_a_frame_that_is_none_is_refused_on_the_socket(
    call: Any, open_socket: Any, event: Any, account: Any, name: str
) -> None:
    open_socket()

    assert call(event(name)) == 200

    (frame,) = account.frames(CONNECTION)
    assert (frame["kind"], frame["type"]) == ("error", "invalid")


def test_a_frame_over_the_limit_is_refused_on_the_socket(
    call: Any, open_socket: Any, event: Any, account: Any
) -> None:
    open_socket()

    call(says(event, kind="message", session="web:1", text="x" * 32_001, id="f1"))

    (frame,) = account.frames(CONNECTION)
    assert (frame["kind"], frame["type"]) == ("error", "invalid")
    assert "32,001" in frame["detail"]
    assert account.take("TurnQueue") == []


def test_a_key_that_may_only_read_sessions_may_resume_but_not_talk(
    call: Any, open_socket: Any, event: Any, account: Any
) -> None:
    open_socket("sessions:read")

    call(event("websocket_resume"))
    call(event("websocket_message"))

    (frame,) = account.frames(CONNECTION)
    assert (frame["kind"], frame["type"]) == ("error", "forbidden")
    assert account.take("TurnQueue") == []


def test_resuming_sends_what_came_after_in_order(
    call: Any, open_socket: Any, event: Any, account: Any
) -> None:
    from instar.adapters.aws.dynamo_sessions import DynamoSessions
    from instar.conversation.ports import NewEvent

    open_socket()
    sessions = DynamoSessions(lambda: datetime.now(UTC))
    for text in ("one", "two", "three"):
        sessions.publish(SESSION, [NewEvent(kind="notice", data={"text": text})])

    call(says(event, kind="resume", session="web:1", after=1))

    frames = account.frames(CONNECTION)
    assert [(frame["n"], frame["text"]) for frame in frames] == [(2, "two"), (3, "three")]
    assert {frame["session"] for frame in frames} == {"web:1"}


def test_stopping_where_nothing_runs_is_no_error(
    call: Any, open_socket: Any, event: Any, account: Any
) -> None:
    open_socket()

    assert call(event("websocket_stop")) == 200
    assert account.frames(CONNECTION) == []


def test_a_disconnected_socket_is_forgotten_and_a_second_disconnect_is_no_error(
    call: Any, open_socket: Any, event: Any, account: Any
) -> None:
    open_socket()
    call(event("websocket_resume"))

    statuses = [call(event("websocket_disconnect")), call(event("websocket_disconnect"))]

    assert statuses == [200, 200]
    assert account.rows("SessionsTable") == []


def test_a_message_that_asks_for_a_receipt_learns_its_turn(
    call: Any, open_socket: Any, event: Any, account: Any
) -> None:
    open_socket()

    call(says(event, kind="message", session="web:1", text="hi", id="f1", receipt=True))

    turn = json.loads(account.take("TurnQueue")[0]["Body"])["turn"]
    accepted = {"kind": "accepted", "session": "web:1", "id": "f1", "turn": turn}
    assert account.frames(CONNECTION) == [accepted]


def test_a_refused_message_names_its_session_and_id(
    call: Any, open_socket: Any, event: Any, account: Any
) -> None:
    open_socket()

    call(says(event, kind="message", session="web:1", text=" ", id="f1"))

    (frame,) = account.frames(CONNECTION)
    assert (frame["session"], frame["id"], frame["type"]) == ("web:1", "f1", "invalid")


def test_a_revoked_key_may_not_talk_on_a_socket_that_it_opened(
    call: Any, ticket: Any, event: Any, account: Any, key: Any
) -> None:
    from instar.access.keyring import TICKET
    from instar.wiring.aws_access import keyring

    caller = keyring().caller_of_key(key("chat"), MAIN_AGENT)
    data = {"name": caller.name, "scopes": "chat", "principal": caller.principal.model_dump_json()}
    told = event("websocket_connect")
    told["queryStringParameters"] = {"ticket": keyring().grant(TICKET, data)}
    call(told)
    keyring().keys.revoke(caller.name.removeprefix("key:"))

    call(event("websocket_message"))

    assert account.take("TurnQueue") == []
