import hashlib

import pytest

from instar.adapters.aws.sqs_queues import SqsQueue
from instar.errors import Conflict, Misconfigured, TooLarge


@pytest.fixture
def sqs(aws):
    return aws.sqs()


@pytest.fixture
def url(sqs):
    return sqs.create_queue(QueueName="turns.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]


@pytest.fixture
def queue(sqs, url):
    return SqsQueue(sqs, url)


def received(sqs, url):
    return sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["MessageGroupId"]
    ).get("Messages", [])


@pytest.mark.parametrize("group", ["telegram:main:12345", "x" * 128])
def test_a_group_that_sqs_takes_stays_as_it_is(queue, sqs, url, group):
    queue.put("{}", group=group, deduplication="d")

    assert received(sqs, url)[0]["Attributes"]["MessageGroupId"] == group


def test_another_group_is_its_hash(queue, sqs, url):
    queue.put("{}", group="mein Chat", deduplication="d")

    digest = hashlib.sha256(b"mein Chat").hexdigest()
    assert received(sqs, url)[0]["Attributes"]["MessageGroupId"] == f"sha256-{digest}"


def test_long_names_of_any_script_stay_apart(queue, sqs, url):
    queue.put("{}", group="é" * 200, deduplication="ü" * 300)
    queue.put("{}", group="é" * 199, deduplication="ü" * 299)

    groups = {message["Attributes"]["MessageGroupId"] for message in received(sqs, url)}
    assert len(groups) == 2


def test_characters_that_sqs_refuses_are_escaped(queue, sqs, url):
    queue.put('"a\uffff\ufffeb"', group="g", deduplication="d")

    assert received(sqs, url)[0]["Body"] == '"a\\uffff\\ufffeb"'


def test_a_body_over_the_limit_is_too_large(queue, wire):
    with pytest.raises(TooLarge):
        queue.put("ü" * 524_289, group="g", deduplication="d")

    assert wire.requests == []


def test_a_message_is_made_visible_again(queue, sqs, url):
    queue.put("{}", group="g", deduplication="d")
    (message,) = received(sqs, url)
    assert received(sqs, url) == []

    queue.change_visibility(message["ReceiptHandle"], 0)

    assert len(received(sqs, url)) == 1


def test_a_message_that_is_gone_is_a_conflict(queue, wire):
    wire.next(wire.plain(400, '{"__type": "com.amazonaws.sqs#ReceiptHandleIsInvalid"}'))
    with pytest.raises(Conflict):
        queue.change_visibility("gone", 90)
    wire.next(wire.plain(400, '{"__type": "com.amazonaws.sqs#MessageNotInflight"}'))
    with pytest.raises(Conflict):
        queue.change_visibility("gone", 90)


def test_a_missing_queue_is_a_deployment_mistake(sqs, url):
    with pytest.raises(Misconfigured):
        SqsQueue(sqs, url + "x").put("{}", group="g", deduplication="d")
