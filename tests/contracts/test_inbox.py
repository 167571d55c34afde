"""Every Inbox adapter keeps these promises."""

from threading import Thread

import pytest

from instar.errors import Conflict


def test_a_message_becomes_a_queued_turn_once(conversation):
    message = conversation.inbound("t1")

    assert conversation.inbox.accept(message) is True
    assert conversation.inbox.accept(message) is False

    record = conversation.turns.get("t1")
    assert record.message == message
    assert (record.state, record.attempts, record.crashes) == ("queued", 0, 0)


def test_another_message_under_the_same_turn_is_a_conflict(conversation):
    conversation.inbox.accept(conversation.inbound("t1", digest="one"))

    with pytest.raises(Conflict):
        conversation.inbox.accept(conversation.inbound("t1", digest="two"))

    assert conversation.turns.get("t1").message.digest == "one"


def test_a_repeat_after_the_turn_ended_changes_nothing(conversation):
    conversation.committed("t1")

    assert conversation.inbox.accept(conversation.inbound("t1")) is False
    assert conversation.turns.get("t1").state == "completed"


def test_of_many_deliveries_at_once_one_is_accepted(conversation):
    accepted = []

    def accept() -> None:
        accepted.append(conversation.inbox.accept(conversation.inbound("t1")))

    threads = [Thread(target=accept) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(accepted) == [False] * 7 + [True]
