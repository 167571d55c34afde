"""What a worker that dies leaves: a turn that goes on, and a message nobody can read."""

import os
import signal
import sys
import threading
import time
import uuid

import pytest

from instar.testing.wire import Pause, Step, delta, sse, text_step, tool_step
from tests.cloud.stack import eventually

pytestmark = pytest.mark.cloud

LEASE_SECONDS = 90


@pytest.mark.skipif(
    not sys.platform.startswith("linux") and os.environ.get("CI") != "true",
    reason="finds the worker to kill in /proc, which this machine does not have",
)
def test_a_turn_whose_worker_is_killed_finishes_once(stack, model, new_chat, word):
    fact = f"The {word} is under the mat"
    talking = Step(
        chunks=(
            sse(delta(content="Half of an ans"), done=False),
            Pause(threading.Event(), 150),
        )
    )
    script = model.expect(
        word, tool_step(("memory_save", {"content": fact})), talking, text_step("All of it.")
    )
    chat = new_chat()
    answered = chat.say(f"keep in mind: {word}")
    turn = answered.json()["turn"]
    assert eventually(lambda: len(script.requests) == 2), "the tool has run, the model speaks again"

    killed_at = time.monotonic()
    workers = stack.workers("turn")
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    eventually(chat.replies, LEASE_SECONDS + 60)
    took = time.monotonic() - killed_at
    time.sleep(3)

    assert workers
    assert chat.replies() == ["All of it."], f"after {took:.0f} s"
    assert took < LEASE_SECONDS + 30
    assert len(script.requests) == 3, "the step that stood was not asked for again"
    [write] = [row for row in stack.writes_of("MEMORY.md") if row.get("turn") == turn]
    assert write["state"] == "done"
    [row] = [row for row in stack.rows("SessionsTable", f"turn#{turn}") if row["sk"] == "turn"]
    assert (row["state"], int(row["crashes"]), int(row["attempts"])) == ("completed", 1, 2)


def test_a_message_that_nobody_can_read_does_not_hold_up_its_conversation(
    stack, owner, model, word
):
    model.expect(word, text_step("Still here."))
    session = f"poison-{word}"
    before = stack.queued("DeadTurnsUrl")
    poison = f'{{"version": 99, "from": "the future", "id": "{uuid.uuid4().hex}"}}'
    stack.client("sqs").send_message(
        QueueUrl=stack.outputs["TurnQueueUrl"],
        MessageBody=poison,
        MessageGroupId=session,
        MessageDeduplicationId=uuid.uuid4().hex,
    )

    turn = owner.post(f"/v1/sessions/{session}/messages", json={"text": f"hello {word}"}).json()
    shown = eventually(lambda: reply_of(owner, turn["turn"]), 90)

    assert shown == "Still here."
    assert stack.queued("DeadTurnsUrl") == before + 1


def test_a_reply_that_nobody_can_read_does_not_hold_up_the_next(stack, model, new_chat, word):
    model.expect(word, text_step("Delivered."))
    chat = new_chat()
    before = stack.queued("DeadDeliveriesUrl")
    queue = stack.outputs["TurnQueueUrl"].replace("-turns.fifo", "-deliveries.fifo")
    stack.client("sqs").send_message(
        QueueUrl=queue,
        MessageBody="{}",
        MessageGroupId=f"telegram:main:{chat.number}:",
        MessageDeduplicationId=uuid.uuid4().hex,
    )

    chat.say(f"hello {word}")
    eventually(chat.replies, 90)

    assert chat.replies() == ["Delivered."]
    assert stack.queued("DeadDeliveriesUrl") == before + 1


def reply_of(owner, turn: str) -> str | None:
    return owner.get(f"/v1/turns/{turn}").json().get("reply")
