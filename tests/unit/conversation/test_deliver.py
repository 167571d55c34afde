"""Replies on their way out: once, marked when in doubt, never lost silently."""

from dataclasses import dataclass, field

import pytest

from instar.channels.outcomes import NotDelivered, PartlySent, Uncertain
from instar.conversation.deliver import ATTEMPTS, CLAIM_SECONDS, REPEAT_MARK, Delivery
from instar.errors import Conflict, Misconfigured, Throttled, Unavailable
from instar.ids import ReplyId


@dataclass
class Platform:
    """A channel whose next answers a test sets; what arrived stands in `sent`."""

    answers: list[Exception | None] = field(default_factory=list)
    sent: list[tuple[str, str | None, str, str]] = field(default_factory=list)

    def send(self, conversation, thread, text, *, key, skip_parts=0):
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer
        self.sent.append((conversation, thread, text, key))


@pytest.fixture
def platform():
    return Platform()


@pytest.fixture
def delivery(talk, platform):
    return Delivery(outbox=talk.outbox, sessions=talk.sessions, channels={"telegram": platform})


@pytest.fixture
def reply(talk, script):
    talk.model.answers = [script["says"]("Hello.")]
    return talk.run(talk.accepted()).record.reply


def test_a_reply_is_sent_once(talk, delivery, platform, reply):
    delivery.run(reply)
    delivery.run(reply)

    assert platform.sent == [("7", None, "Hello.", reply.id)]
    assert talk.outbox.unsent() == []


@pytest.mark.parametrize(
    "error", [Unavailable("502"), Throttled("429", retry_after_seconds=3), Misconfigured("token?")]
)
def test_what_certainly_did_not_go_out_is_sent_again_unmarked(delivery, platform, reply, error):
    platform.answers = [error, error]
    for _ in range(2):
        with pytest.raises(type(error)):
            delivery.run(reply)

    delivery.run(reply)

    assert [sent[2] for sent in platform.sent] == ["Hello."]


@pytest.mark.parametrize("error", [Uncertain("cut"), PartlySent("2 of 3", parts_sent=2)])
def test_what_may_have_gone_out_is_repeated_after_its_claim_and_marked(
    talk, delivery, platform, reply, error
):
    platform.answers = [error]
    with pytest.raises(type(error)):
        delivery.run(reply)
    with pytest.raises(Conflict):
        delivery.run(reply)

    talk.clock.advance(CLAIM_SECONDS + 1)
    delivery.run(reply)

    assert [sent[2] for sent in platform.sent] == [f"{REPEAT_MARK}Hello."]


def test_a_refused_reply_is_given_up_with_a_notice(talk, delivery, platform, reply):
    platform.answers = [NotDelivered("blocked by the user")]

    delivery.run(reply)
    delivery.run(reply)

    assert platform.sent == []
    assert talk.kinds()[-1] == "notice"
    event = talk.sessions.events(reply.session, after=0)[-1]
    assert event.data["text"] == "The reply could not be delivered: blocked by the user"
    assert talk.outbox.unsent() == []


def test_after_many_tries_it_is_given_up_with_a_notice(talk, delivery, platform, reply):
    platform.answers = [Unavailable("502")] * ATTEMPTS
    for _ in range(ATTEMPTS):
        with pytest.raises(Unavailable):
            delivery.run(reply)

    delivery.run(reply)

    assert platform.sent == []
    assert talk.kinds()[-1] == "notice"


def test_a_channel_without_an_outside_is_settled(talk, platform, reply):
    Delivery(outbox=talk.outbox, sessions=talk.sessions, channels={}).run(reply)

    assert talk.outbox.unsent() == []
    assert platform.sent == []


def test_a_reply_that_was_never_committed_is_not_sent(delivery, platform, reply):
    delivery.run(reply.model_copy(update={"id": ReplyId("forged")}))
    delivery.run(reply)

    assert [sent[3] for sent in platform.sent] == [reply.id]
