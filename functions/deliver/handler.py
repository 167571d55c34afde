"""The delivery queue: replies go out through their channel. Idempotent by reply id."""

from typing import Any

from aws_lambda_powertools.utilities.batch import SqsFifoPartialProcessor, process_partial_response
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from instar.conversation.envelopes import Reply
from instar.wiring import deliver
from instar.wiring.aws_redelivery import redelivered

deliveries = deliver.build()


def handler(event: dict[str, Any], context: Any) -> PartialItemFailureResponse:
    """Lambda's entry; a reply that could not be sent is reported and comes back."""

    def run(record: SQSRecord) -> None:
        receives = int(record.attributes.approximate_receive_count)
        with redelivered(deliveries.queue, record.receipt_handle, receives):
            deliveries.delivery.run(Reply.model_validate_json(record.body))

    processor = SqsFifoPartialProcessor(skip_group_on_error=True)
    processor.raise_on_entire_batch_failure = False
    return process_partial_response(event, run, processor, context)
