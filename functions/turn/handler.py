"""The turn queue: one agent turn per message, in order within a session. Idempotent by turn id."""

from typing import Any

from aws_lambda_powertools.utilities.batch import SqsFifoPartialProcessor, process_partial_response
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from instar.clock import Deadline, utc_now
from instar.conversation.envelopes import InboundMessage
from instar.conversation.turn import Continued
from instar.errors import Unavailable
from instar.wiring import turn
from instar.wiring.aws_redelivery import redelivered

turns = turn.build()


def handler(event: dict[str, Any], context: Any) -> PartialItemFailureResponse:
    """Lambda's entry; a message that was not finished is reported and comes back."""
    deadline = Deadline.after(context.get_remaining_time_in_millis() / 1000, utc_now)

    def run(record: SQSRecord) -> None:
        def keep(seconds: float) -> None:
            turns.queue.change_visibility(record.receipt_handle, seconds)

        receives = int(record.attributes.approximate_receive_count)
        with redelivered(turns.queue, record.receipt_handle, receives):
            message = InboundMessage.model_validate_json(record.body)
            outcome = turns.runner.run(message, deadline, keep)
        if isinstance(outcome, Continued):
            keep(0)
            raise Unavailable(f"turn {message.turn} goes on in the next invocation")

    processor = SqsFifoPartialProcessor(skip_group_on_error=True)
    processor.raise_on_entire_batch_failure = False
    return process_partial_response(event, run, processor, context)
