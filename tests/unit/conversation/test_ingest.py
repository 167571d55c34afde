"""The door: masked, once per identity, queued."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.channels.ports import Incoming
from instar.conversation.envelopes import InboundMessage
from instar.conversation.ingest import MESSAGE_CHARACTERS, draft_of, turn_id
from instar.errors import Conflict, Invalid, TooLarge
from instar.ids import MAIN_AGENT
from instar.principal import ALL_RIGHTS, Audience


def test_an_accepted_message_is_a_queued_turn(talk):
    turn = talk.ingest.accept(talk.draft("Hello"))

    record = talk.turns.get(turn)
    assert (record.state, record.message.text, record.attempts) == ("queued", "Hello", 0)
    assert record.message.principal.turn == turn
    assert record.message.principal.session == "telegram:main:7"
    received = talk.turn_queue.receive(30)
    assert InboundMessage.model_validate_json(received.body) == record.message
    assert received.group == "telegram:main:7"


def test_a_repeat_is_the_same_turn_and_queued_once(talk):
    turns = {talk.ingest.accept(talk.draft("Hello")) for _ in range(3)}

    assert len(turns) == 1
    assert talk.turn_queue.receive(30) is not None
    assert talk.turn_queue.receive(30) is None


def test_a_message_whose_queueing_failed_is_queued_by_the_next_delivery(talk):
    turn = talk.ingest.accept(talk.draft("Hello"))
    talk.turn_queue.delete(talk.turn_queue.receive(30).receipt)
    with talk.database.write() as connection:
        connection.execute("DELETE FROM queue_seen")

    assert talk.ingest.accept(talk.draft("Hello")) == turn
    assert talk.turn_queue.receive(30) is not None


@pytest.mark.parametrize("change", [{"text": "other"}, {"session": "telegram:main:8"}])
def test_another_message_under_the_identity_is_a_conflict(talk, change):
    turn = talk.ingest.accept(talk.draft("Hello"))

    with pytest.raises(Conflict):
        talk.ingest.accept(talk.draft(**({"text": "Hello"} | change)))

    assert talk.turns.get(turn).message.text == "Hello"


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_a_blank_message_is_refused(talk, blank):
    with pytest.raises(Invalid):
        talk.ingest.accept(talk.draft(blank))

    assert talk.turn_queue.receive(30) is None


def test_a_message_may_have_32000_characters(talk):
    talk.ingest.accept(talk.draft("x" * MESSAGE_CHARACTERS))

    with pytest.raises(TooLarge, match="32,001"):
        talk.ingest.accept(talk.draft("x" * (MESSAGE_CHARACTERS + 1), number=2))


def test_secrets_are_masked_before_anything_is_kept(talk):
    turn = talk.ingest.accept(talk.draft("my SECRET and my cat"))

    assert talk.turns.get(turn).message.text == "my [masked] and my cat"
    assert "SECRET" not in talk.turn_queue.receive(30).body


def test_half_characters_are_made_whole(talk):
    turn = talk.ingest.accept(talk.draft("\ud83c\udf78 and \ud83c"))

    assert talk.turns.get(turn).message.text == "🍸 and \N{REPLACEMENT CHARACTER}"


@given(st.text(max_size=50), st.text(max_size=50))
def test_a_turns_name_follows_from_the_identity(one, other):
    assert (turn_id(one) == turn_id(other)) == (one == other)
    assert len(turn_id(one)) == 26
    assert turn_id(one).isalnum()


# --- what a platform's message becomes ----------------------------------------------------------


def incoming(**fields) -> Incoming:
    whole = {
        "identity": "update:1",
        "session": "7",
        "sender": "7",
        "is_owner": True,
        "audience": Audience.PRIVATE,
        "text": "Hi",
        "conversation": "7",
    }
    return Incoming(**(whole | fields))


def drafted(channel: str = "telegram", *, answers_guests: bool = False, **fields):
    return draft_of(channel, "main", incoming(**fields), MAIN_AGENT, answers_guests=answers_guests)


def test_the_owner_in_private_has_every_right():
    draft = drafted()

    assert draft.principal.is_owner
    assert draft.principal.rights == ALL_RIGHTS
    assert (draft.session, draft.identity) == ("telegram:main:7", "telegram:main:update:1")
    assert (draft.refused, draft.text) == (False, "Hi")


def test_a_stranger_in_private_is_refused_and_in_a_group_ignored():
    assert drafted(is_owner=False, sender="9").refused
    assert drafted(is_owner=False, audience=Audience.SHARED) is None


def test_a_guest_has_no_right_at_all():
    draft = drafted("generic", answers_guests=True, is_owner=False, sender="bob")

    assert (draft.principal.guest, draft.principal.rights) == ("bob", frozenset())
    assert (draft.refused, draft.session) == (False, "generic:7")


def test_the_owner_before_an_audience_has_no_right_either():
    draft = drafted("generic", answers_guests=True, audience=Audience.SHARED)

    assert draft.principal.rights == frozenset()


@pytest.mark.parametrize("command", ["/new", " /reset", "/memory delete all", "\n/status"])
def test_a_guests_command_is_refused(command):
    guest = {"answers_guests": True, "is_owner": False}

    assert drafted("generic", text=command, **guest).refused
    assert not drafted("generic", text="what is /new?", **guest).refused
    assert not drafted(text=command).refused


def test_what_cannot_be_read_is_named():
    assert drafted(text="", unread="video_note").text == (
        "[a video note came with this message; it cannot be read here]"
    )
    assert drafted(text="our cat", unread="photo").text.endswith("\nour cat")


def test_forwarded_text_stays_marked():
    assert drafted(forwarded=True).forwarded
    assert not drafted().forwarded
