"""The FIFO queues on AWS: turns by session, replies by address.

The idempotency key is the deduplication id (turn or reply): SQS drops a repeat for five minutes,
the consumers' rows know it for ever. What SQS takes for an id is 128 characters of ASCII letters,
digits and punctuation; another id is replaced by its SHA-256.
"""

from __future__ import annotations

import hashlib
import math
import re
from typing import TYPE_CHECKING

from instar.adapters.aws.errors import aws_failures
from instar.conversation.envelopes import InboundMessage, Reply
from instar.errors import TooLarge

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

BODY_BYTES = 1_048_576
LONGEST_INVISIBLE_SECONDS = 43_200
_ID = re.compile(r"[!-~]{1,128}")
# The two characters that JSON leaves as they are and SQS refuses.
_REFUSED = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}


class SqsQueue:
    """One FIFO queue."""

    def __init__(self, client: SQSClient, url: str) -> None:
        self._client = client
        self._url = url

    def put(self, body: str, *, group: str, deduplication: str) -> None:
        """Queues a JSON body behind its group. Raises TooLarge."""
        text = body.translate(_REFUSED)
        size = len(text.encode())
        if size > BODY_BYTES:
            raise TooLarge(
                f"a queued message has at most {BODY_BYTES:,} bytes; this one has {size:,}",
                fix="Send it in parts, or put it into a document.",
            )
        with aws_failures("the queue"):
            self._client.send_message(
                QueueUrl=self._url,
                MessageBody=text,
                MessageGroupId=_id(group),
                MessageDeduplicationId=_id(deduplication),
            )

    def change_visibility(self, receipt: str, seconds: float) -> None:
        """Makes a received message visible again in `seconds`; 0 is at once, first of its group.

        Raises Conflict when it was received again since or is gone.
        """
        with aws_failures("the queued message"):
            self._client.change_message_visibility(
                QueueUrl=self._url,
                ReceiptHandle=receipt,
                VisibilityTimeout=min(LONGEST_INVISIBLE_SECONDS, max(0, math.ceil(seconds))),
            )


class SqsTurnQueue:
    """The AWS TurnQueue: the group is the session, the deduplication id the turn."""

    def __init__(self, client: SQSClient, url: str) -> None:
        self._queue = SqsQueue(client, url)

    def put(self, message: InboundMessage) -> None:
        """Queues it; a repeat of the same turn within five minutes is dropped. Raises TooLarge."""
        self._queue.put(
            message.model_dump_json(), group=message.session, deduplication=message.turn
        )


class SqsDeliveryQueue:
    """The AWS DeliveryQueue: the group is the address, the deduplication id the reply."""

    def __init__(self, client: SQSClient, url: str) -> None:
        self._queue = SqsQueue(client, url)

    def put(self, reply: Reply) -> None:
        """Queues it; a repeat of the same reply within five minutes is dropped. Raises TooLarge."""
        self._queue.put(
            reply.model_dump_json(), group=reply.address.group(), deduplication=reply.id
        )


def _id(text: str) -> str:
    if _ID.fullmatch(text):
        return text
    return f"sha256-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
