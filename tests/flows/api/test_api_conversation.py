"""Conversations over HTTP and over the socket, end to end."""

import threading
import time

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from instar.testing.wire import Pause, Step, delta, error_step, sse, text_step, tool_step
from instar.wiring.embedded import Embedded


def test_waiting_for_a_message_gives_the_reply(instar):
    instar.model.add(text_step("Oslo is in Norway."))

    with instar.client("chat") as client:
        answer = client.post("/v1/sessions/web:1/messages?wait=20", json={"text": "Where is Oslo?"})

    assert answer.status_code == 200
    assert answer.json()["reply"] == "Oslo is in Norway."
    assert answer.json()["session"] == "web:1"
    assert answer.json()["usage"]["output_tokens"] > 0


def test_without_waiting_the_turn_is_named_and_can_be_followed(instar):
    instar.model.add(text_step("Good morning."))

    with instar.client() as client:
        accepted = client.post("/v1/sessions/a/messages", json={"text": "Hello"})
        turn = accepted.json()["turn"]
        while (shown := client.get(f"/v1/turns/{turn}").json())["state"] in ("queued", "running"):
            time.sleep(0.02)

    assert accepted.status_code == 202
    assert shown["reply"] == "Good morning."
    assert shown["state"] == "completed"


def test_a_message_under_the_same_idempotency_key_is_one_message(instar):
    instar.model.add(text_step("Once."))
    once = {"idempotency-key": "k-1"}

    with instar.client("chat") as client:
        first = client.post("/v1/sessions/a/messages?wait=20", json={"text": "Hi"}, headers=once)
        again = client.post("/v1/sessions/a/messages?wait=20", json={"text": "Hi"}, headers=once)
        other = client.post("/v1/sessions/a/messages", json={"text": "Ho"}, headers=once)

    assert first.json() == again.json()
    assert (other.status_code, other.json()["type"]) == (409, "conflict")


def test_a_provider_that_fails_is_told_as_unavailable(instar):
    instar.model.add(error_step(401, code="invalid_api_key"))

    with instar.client("chat") as client:
        answer = client.post("/v1/sessions/a/messages?wait=20", json={"text": "Hi"})

    assert answer.status_code >= 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["turn"]


def test_events_are_numbered_without_gaps_and_end_in_a_rendered_reply(instar):
    instar.model.add(text_step("**Bold** words."))

    with instar.client() as client:
        client.post("/v1/sessions/a/messages?wait=20", json={"text": "Hi"})
        events = client.get("/v1/sessions/a/events?after=0").json()["events"]
        rest = client.get("/v1/sessions/a/events?after=1").json()["events"]

    assert [event["n"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["kind"] == "turn_started"
    assert events[-1]["kind"] == "reply"
    assert events[-1]["html"].strip() == "<p><strong>Bold</strong> words.</p>"
    assert rest == events[1:]


def test_a_session_shows_messages_and_its_first_words_in_the_list(instar):
    instar.model.add(
        tool_step(("memory_save", {"content": "The tea is oolong."})), text_step("Noted.")
    )

    with instar.client("chat", "sessions:read", "tools:write") as client:
        client.post("/v1/sessions/tea/messages?wait=20", json={"text": "My tea is oolong"})
        shown = client.get("/v1/sessions/tea").json()
        full = client.get("/v1/sessions/tea?full=true").json()
        listed = client.get("/v1/sessions?titles=true").json()["sessions"]

    assert [(m["role"], m["text"]) for m in shown["messages"]] == [
        ("user", "My tea is oolong"),
        ("assistant", "Noted."),
    ]
    parts = [part["kind"] for message in full["messages"] for part in message["parts"]]
    assert parts == ["text", "tool_call", "tool_result", "text"]
    assert listed[0]["title"] == "My tea is oolong"


def test_a_session_that_nobody_used_is_not_found(instar):
    with instar.client() as client:
        answer = client.get("/v1/sessions/never")

    assert (answer.status_code, answer.json()["type"]) == (404, "not_found")


def test_the_first_words_reach_the_socket_while_the_model_still_speaks(instar):
    go_on = threading.Event()
    instar.model.add(
        Step(
            chunks=(
                sse(delta(content="First"), done=False),
                Pause(until=go_on),
                sse(delta(content=" and last."), delta("stop")),
            )
        )
    )

    with instar.client("chat") as client, instar.socket(client) as socket:
        socket.send(kind="message", session="live", text="Speak", id="1")
        begun = socket.until("text_delta")
        go_on.set()
        rest = socket.until("reply")

    frames = begun + rest
    assert begun[-1]["text"] == "First"
    assert rest[-1]["text"] == "First and last."
    assert [frame["n"] for frame in frames] == list(range(1, len(frames) + 1))
    assert {frame["session"] for frame in frames} == {"live"}


def test_a_socket_resumes_without_gaps_or_doubles(instar):
    instar.model.add(text_step("One two three four five six."))

    with instar.client("chat") as client:
        with instar.socket(client) as socket:
            socket.send(kind="message", session="s", text="Count", id="1")
            seen = [socket.receive(), socket.receive()]
        with instar.socket(client) as socket:
            socket.send(kind="resume", session="s", after=seen[-1]["n"])
            seen += socket.until("reply")

    assert [frame["n"] for frame in seen] == list(range(1, len(seen) + 1))


def test_two_sockets_of_a_session_see_the_same(instar):
    instar.model.add(text_step("For both."))

    with (
        instar.client("chat") as client,
        instar.socket(client) as one,
        instar.socket(client) as two,
    ):
        two.send(kind="resume", session="s", after=0)
        one.send(kind="message", session="s", text="Hi", id="1")

        assert two.until("reply") == one.until("reply")


def test_a_message_sent_twice_under_one_id_is_answered_once(instar):
    instar.model.add(text_step("Once."))

    with instar.client("chat") as client, instar.socket(client) as socket:
        for _ in range(2):
            socket.send(kind="message", session="s", text="Hi", id="same", receipt=True)
        frames = [*socket.until("accepted"), *socket.until("reply")]
        frames += socket.whatever_comes_within(0.5)

    kinds = [frame["kind"] for frame in frames]
    assert kinds.count("reply") == kinds.count("turn_started") == 1
    assert len({frame["turn"] for frame in frames if frame["kind"] == "accepted"}) == 1


def test_stop_ends_the_reply_that_is_being_written(instar):
    instar.model.add(
        Step(chunks=(sse(delta(content="Long"), done=False), Pause(seconds=8), sse(delta("stop"))))
    )

    with instar.client("chat") as client, instar.socket(client) as socket:
        socket.send(kind="message", session="s", text="Talk", id="1")
        socket.until("text_delta")
        socket.send(kind="stop", session="s")
        reply = socket.until("reply")[-1]

    assert reply["text"] == "Long"


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "{",
        "[]",
        '{"kind":"dance","session":"s"}',
        '{"kind":"resume","session":"s","after":-1}',
        '{"kind":"message","session":"","text":"x"}',
        '{"kind":"message","session":"s","text":" "}',
        '{"kind":"message","session":"s","text":"' + "x" * 300_000 + '"}',
    ],
    ids=lambda frame: frame[:40],
)
def test_a_frame_that_does_not_fit_is_refused_and_the_socket_lives(calm_instar, frame):
    with calm_instar.client("chat") as client, calm_instar.socket(client) as socket:
        socket.connection.send(frame)
        refused = socket.receive()
        socket.connection.send(frame)

        assert socket.receive() == refused
    assert refused["kind"] == "error"
    assert refused["type"] == "invalid"


def test_a_ticket_opens_one_socket(instar):
    with instar.client("chat") as client:
        ticket = client.post("/v1/ticket").json()
        headers = {"authorization": client.headers["authorization"]}
    address = f"{ticket['url']}?ticket={ticket['ticket']}"
    with connect(address):
        pass

    with pytest.raises(InvalidStatus) as again:
        connect(address, additional_headers=headers)
    assert again.value.response.status_code == 401


def test_a_page_of_another_site_gets_no_socket(instar):
    with (
        instar.client("chat") as client,
        pytest.raises(InvalidStatus) as refused,
        instar.socket(client, origin="https://evil.example"),
    ):
        pass

    assert refused.value.response.status_code == 403


def test_a_key_that_may_only_follow_cannot_speak(instar):
    with instar.client("sessions:read") as client, instar.socket(client) as socket:
        socket.send(kind="message", session="s", text="Hi", id="1")

        assert socket.receive()["type"] == "forbidden"


def test_a_socket_closes_when_its_key_is_revoked(instar):
    embedded: Embedded = instar.embedded
    key, row = embedded.keyring.create(["chat"])

    with instar.stranger() as client:
        client.headers["authorization"] = f"Bearer {key}"
        with instar.socket(client) as socket:
            embedded.keyring.keys.revoke(row.id)
            with pytest.raises(ConnectionClosed):
                socket.receive(8)
