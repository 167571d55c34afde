"""Every Outbox adapter keeps these promises."""

from threading import Thread

import pytest

from instar.conversation.ports import Claim
from instar.errors import Conflict, NotFound


def test_a_committed_reply_is_claimed_and_sent_once(conversation):
    reply = conversation.committed("t1")

    claim = conversation.outbox.claim(reply.id, seconds=60)
    conversation.outbox.settle(reply.id, state="sent", detail="message 7")

    assert claim == Claim(reply=reply, repeat=False, attempts=1)
    assert conversation.outbox.claim(reply.id, seconds=60) is None
    assert conversation.outbox.unsent() == []


def test_an_unknown_reply_is_no_claim_and_not_settled(conversation):
    assert conversation.outbox.claim("nothing", seconds=60) is None
    with pytest.raises(NotFound):
        conversation.outbox.settle("nothing", state="sent")


def test_a_claim_that_is_held_is_a_conflict(conversation, clock):
    reply = conversation.committed("t1")
    conversation.outbox.claim(reply.id, seconds=60)
    clock.advance(59)

    with pytest.raises(Conflict):
        conversation.outbox.claim(reply.id, seconds=60)

    assert conversation.outbox.unsent() == [reply]


def test_a_claim_that_ran_out_is_claimed_again_as_a_repeat(conversation, clock):
    reply = conversation.committed("t1")
    conversation.outbox.claim(reply.id, seconds=60)
    clock.advance(61)

    assert conversation.outbox.claim(reply.id, seconds=60) == Claim(
        reply=reply, repeat=True, attempts=2
    )


def test_a_reply_that_cannot_have_gone_out_is_no_repeat(conversation):
    reply = conversation.committed("t1")
    conversation.outbox.claim(reply.id, seconds=60)
    conversation.outbox.settle(reply.id, state="pending", detail="429")

    assert conversation.outbox.unsent() == [reply]
    assert conversation.outbox.claim(reply.id, seconds=60) == Claim(
        reply=reply, repeat=False, attempts=2
    )


def test_once_uncertain_a_reply_stays_a_repeat(conversation, clock):
    reply = conversation.committed("t1")
    conversation.outbox.claim(reply.id, seconds=60)
    clock.advance(61)
    conversation.outbox.claim(reply.id, seconds=60)
    conversation.outbox.settle(reply.id, state="pending")

    assert conversation.outbox.claim(reply.id, seconds=60) == Claim(
        reply=reply, repeat=True, attempts=3
    )


def test_a_reply_that_was_given_up_is_not_claimed(conversation):
    reply = conversation.committed("t1")
    conversation.outbox.claim(reply.id, seconds=60)
    conversation.outbox.settle(reply.id, state="given_up", detail="the chat is gone")

    assert conversation.outbox.claim(reply.id, seconds=60) is None
    assert conversation.outbox.unsent() == []


def test_what_was_sent_stays_sent(conversation):
    reply = conversation.committed("t1")
    conversation.outbox.claim(reply.id, seconds=60)
    conversation.outbox.settle(reply.id, state="sent")
    conversation.outbox.settle(reply.id, state="pending")
    conversation.outbox.settle(reply.id, state="given_up")

    assert conversation.outbox.claim(reply.id, seconds=60) is None
    assert conversation.outbox.unsent() == []


def test_unsent_replies_come_oldest_first(conversation):
    replies = [conversation.committed(turn) for turn in ("t3", "t1", "t2")]

    assert conversation.outbox.unsent() == replies


def test_of_many_deliveries_at_once_one_gets_the_claim(conversation):
    reply = conversation.committed("t1")
    claims = []

    def claim() -> None:
        try:
            claims.append(conversation.outbox.claim(reply.id, seconds=60))
        except Conflict:
            claims.append(None)

    threads = [Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [claim for claim in claims if claim] == [Claim(reply=reply, repeat=False, attempts=1)]
