"""Repair: a FIFO queue hands its function one batch at a time, whatever the groups.

Seen as: a second conversation waits until the first one's model has answered. The emulator is
careful because one batch may hold several groups. A mapping with a batch size of 1 mixes none, and
the queue itself keeps back a group whose message is in flight: such batches may run side by side.
"""

from typing import Any

from ministack.services import lambda_svc

one_at_a_time = lambda_svc._sqs_esm_concurrency


def repair() -> None:
    lambda_svc._sqs_esm_concurrency = batches_in_flight


def batches_in_flight(mapping: Any, function: Any, config: Any, queue: Any = None) -> int:
    mixes_groups = mapping.get("BatchSize", 10) != 1
    # Without its queue a mapping counts as a standard queue's.
    return int(one_at_a_time(mapping, function, config, queue if mixes_groups else None))
