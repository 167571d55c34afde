"""Groups of a FIFO queue are worked on side by side, the messages of one group in turn."""

import uuid

import pytest

pytestmark = pytest.mark.cloud


def test_two_groups_are_in_flight_and_the_second_of_a_group_waits(cloud, outputs, wait_for):
    queue, url, first = cloud.client("sqs"), outputs["TurnsUrl"], uuid.uuid4().hex
    for group in (first, first, uuid.uuid4().hex):
        queue.send_message(
            QueueUrl=url,
            MessageBody="4",
            MessageGroupId=group,
            MessageDeduplicationId=uuid.uuid4().hex,
        )

    assert wait_for(lambda: counts(queue, url) == {"waiting": 1, "in flight": 2}, 10)
    assert wait_for(lambda: counts(queue, url) == {"waiting": 0, "in flight": 0}, 30)


def counts(queue, url):
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = queue.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return {"waiting": int(found[names[0]]), "in flight": int(found[names[1]])}
