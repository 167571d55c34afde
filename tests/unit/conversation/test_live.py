"""Events go out in batches and in order; the lease is renewed beside the work."""

import threading

import pytest

from instar.conversation.live import LiveTurn, Pace
from instar.errors import Conflict, Unavailable
from instar.ids import SessionId
from instar.testing.builders import eventually

PACE = Pace(publish_seconds=0.01, renew_seconds=0.05, lease_seconds=90)


@pytest.fixture
def lease(talk):
    return talk.turns.lease(talk.accepted().turn, seconds=90)


def live(talk, lease, also_renew=lambda seconds: None, *, pace=PACE) -> LiveTurn:
    return LiveTurn(lease, talk.sessions, talk.turns, pace, also_renew)


def events(talk):
    return talk.sessions.events(SessionId("telegram:main:7"), after=0)


def test_pieces_of_one_kind_are_joined_and_order_is_kept(talk, lease):
    with live(talk, lease, pace=Pace(publish_seconds=5, renew_seconds=50)) as turn:
        threading.Event().wait(0.05)
        for piece in ("Hel", "lo", " there"):
            turn.delta("text_delta", piece)
        turn.tell("tool_call", {"name": "note"})
        turn.delta("text_delta", "Done")

    kinds = [event.kind for event in events(talk)]
    assert kinds[-2:] == ["tool_call", "text_delta"]
    before = [event.data["text"] for event in events(talk)[:-2]]
    assert "".join(before) == "Hello there"
    assert all(event.data["turn"] == lease.turn for event in events(talk))


def test_the_first_piece_goes_out_at_once(talk, lease):
    with live(talk, lease) as turn:
        turn.delta("text_delta", "Hello")
        eventually(lambda: events(talk), seconds=2)

        assert events(talk)[0].data["text"] == "Hello"


def test_the_lease_is_renewed_and_a_stop_is_heard(talk, lease):
    kept: list[float] = []
    with live(talk, lease, kept.append) as turn:
        assert turn.stop_requested is False
        talk.stops.stop(SessionId("telegram:main:7"))
        eventually(lambda: turn.stop_requested, seconds=2)
        turn.check()

    assert set(kept) == {90}


def test_a_lost_lease_is_noticed_and_nothing_more_is_told(talk, lease):
    with live(talk, lease) as turn:
        talk.clock.advance(91)
        talk.turns.lease(lease.turn, seconds=90)
        eventually(lambda: turn.lost, seconds=2)
        with pytest.raises(Conflict):
            turn.check()
        turn._pending.clear()

    assert events(talk) == []


def test_trouble_with_renewing_once_is_no_loss(talk, lease):
    kept: list[float] = []
    tries: list[float] = []

    def renew(seconds: float) -> None:
        tries.append(seconds)
        if len(tries) == 2:
            raise Unavailable("busy")
        kept.append(seconds)

    with live(talk, lease, renew) as turn:
        eventually(lambda: len(kept) == 2, seconds=2)
        turn.check()

    assert len(tries) >= 3


def test_what_is_pending_goes_out_when_the_work_fails(talk, lease):
    def work() -> None:
        with live(talk, lease) as turn:
            turn.delta("text_delta", "almost")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()

    assert [event.data["text"] for event in events(talk)] == ["almost"]
