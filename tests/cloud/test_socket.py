"""The WebSocket: a ticket of a single use, deltas while the model still speaks, nothing missed."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from instar.testing.wire import Pause, Step, delta, sse, text_step, usage

pytestmark = pytest.mark.cloud

# The function says 401; the emulator makes 403 of every refusal.
REFUSED = (401, 403)


@contextmanager
def opened(owner) -> Iterator[ClientConnection]:
    made = owner.post("/v1/ticket").json()
    with connect(f"{made['url']}?ticket={made['ticket']}", proxy=None, open_timeout=30) as socket:
        yield socket


def tell(socket: ClientConnection, **frame) -> None:
    socket.send(json.dumps(frame))


def frames_until(
    socket: ClientConnection, end: Callable[[dict], bool], seconds: float = 30
) -> list[dict]:
    """The frames up to the first that ends it."""
    seen: list[dict] = []
    while not (seen and end(seen[-1])):
        seen.append(json.loads(socket.recv(timeout=seconds)))
    return seen


def is_reply(frame: dict) -> bool:
    return frame["kind"] in ("reply", "turn_failed")


def two_deltas(released: threading.Event) -> Step:
    """A model that says its second word only when it is told to."""
    first = sse(delta(content="Hello"), done=False)
    rest = sse(delta(content=" there."), delta("stop"), usage(10, 2))
    return Step(chunks=(first, Pause(released, 60), rest))


def test_the_first_delta_arrives_before_the_model_has_said_the_second(owner, model, word):
    released = threading.Event()
    model.expect(word, two_deltas(released))
    session = f"socket-{word}"

    with opened(owner) as socket:
        tell(socket, kind="message", session=session, text=f"hi {word}", id="one")
        early = frames_until(socket, lambda frame: frame["kind"] == "text_delta")
        assert not released.is_set()
        released.set()
        late = frames_until(socket, is_reply)

    frames = [*early, *late]
    assert early[-1]["text"] == "Hello"
    assert "".join(f["text"] for f in frames if f["kind"] == "text_delta") == "Hello there."
    assert (late[-1]["kind"], late[-1]["text"]) == ("reply", "Hello there.")
    assert [frame["n"] for frame in frames] == list(range(1, len(frames) + 1))
    assert {frame["session"] for frame in frames} == {session}


def test_who_comes_back_gets_exactly_what_was_missed(owner, model, word):
    released = threading.Event()
    model.expect(word, two_deltas(released))
    session = f"socket-{word}"
    with opened(owner) as socket:
        tell(socket, kind="message", session=session, text=f"hi {word}", id="one")
        seen = frames_until(socket, lambda frame: frame["kind"] == "text_delta")
    released.set()

    with opened(owner) as socket:
        tell(socket, kind="resume", session=session, after=seen[-1]["n"])
        missed = frames_until(socket, is_reply)

    numbers = [frame["n"] for frame in [*seen, *missed]]
    assert sorted(set(numbers)) == list(range(1, max(numbers) + 1))
    assert min(frame["n"] for frame in missed) == seen[-1]["n"] + 1
    stored = owner.get(f"/v1/sessions/{session}/events").json()["events"]
    shown = {frame["n"]: frame["kind"] for frame in [*seen, *missed]}
    assert shown == {event["n"]: event["kind"] for event in stored}


def test_the_same_frame_twice_is_one_message(owner, model, word):
    model.expect(word, text_step("Once."))
    session = f"socket-{word}"

    with opened(owner) as socket:
        for _ in range(2):
            tell(socket, kind="message", session=session, text=f"hi {word}", id="same")
        frames_until(socket, is_reply)

    shown = owner.get(f"/v1/sessions/{session}").json()["messages"]
    assert [each["text"] for each in shown] == [f"hi {word}", "Once."]


def test_a_stop_ends_the_turn_with_what_was_said(owner, model, word):
    words = [f"{number} " for number in range(200)]
    steps = [
        chunk
        for each in words
        for chunk in (sse(delta(content=each), done=False), Pause(seconds=0.2))
    ]
    model.expect(word, Step(chunks=(*steps, sse(delta("stop"), usage(10, 200)))))
    session = f"socket-{word}"

    with opened(owner) as socket:
        tell(socket, kind="message", session=session, text=f"count {word}", id="one")
        frames_until(socket, lambda frame: frame["kind"] == "text_delta")
        tell(socket, kind="stop", session=session)
        end = frames_until(socket, is_reply)[-1]

    assert end["kind"] == "reply"
    assert end["text"].startswith("0 1 ")
    assert not end["text"].rstrip().endswith("199")


@pytest.mark.parametrize("frame", ["no json", "{}", '{"kind":"dance","session":"x"}', "[]"])
def test_a_frame_that_is_none_is_answered_in_words(owner, frame):
    with opened(owner) as socket:
        socket.send(frame)
        answer = json.loads(socket.recv(timeout=30))

    assert (answer["kind"], answer["type"]) == ("error", "invalid")
    assert "n" not in answer


def test_a_ticket_opens_once(owner):
    made = owner.post("/v1/ticket").json()
    address = f"{made['url']}?ticket={made['ticket']}"
    with connect(address, proxy=None, open_timeout=30):
        pass

    with pytest.raises(InvalidStatus) as refused, connect(address, proxy=None, open_timeout=30):
        pass

    assert refused.value.response.status_code in REFUSED


@pytest.mark.parametrize("query", ["", "?ticket=", "?ticket=guess"])
def test_who_has_no_ticket_is_not_let_in(stack, query):
    address = stack.tell("socket-url") + query

    with pytest.raises(InvalidStatus) as refused, connect(address, proxy=None, open_timeout=30):
        pass

    assert refused.value.response.status_code in REFUSED
