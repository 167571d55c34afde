"""The deliver function: the outbox and the channels that replies go out through."""

from dataclasses import dataclass

import httpx

from instar import config
from instar.adapters.aws.dynamo_outbox import DynamoOutbox
from instar.adapters.aws.sqs_queues import SqsQueue
from instar.adapters.http import json_post
from instar.clock import utc_now
from instar.conversation.deliver import Delivery
from instar.wiring.aws_stores import AwsStores
from instar.wiring.channels import senders
from instar.wiring.models import owner_client

RESOURCES = (
    "DOCUMENTS_BUCKET",
    "SESSIONS_TABLE",
    "SECRETS_PREFIX",
    "DELIVERY_QUEUE_URL",
    "CONNECTIONS_URL",
)
SEND_TIMEOUT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Sends replies; `queue` is where they come from."""

    delivery: Delivery
    queue: SqsQueue


def build() -> Deliveries:
    """The use case, from the function's environment."""
    stores = AwsStores.bound(config.environment(), *RESOURCES)

    def client() -> httpx.Client:
        return owner_client(stores.egress, SEND_TIMEOUT_SECONDS)

    source = stores.settings_source
    delivery = Delivery(
        outbox=DynamoOutbox(utc_now),
        sessions=stores.sessions,
        channels=senders(source.settings(), source.secret, json_post(client)),
    )
    queue = SqsQueue(stores.clients.sqs(), stores.environ["DELIVERY_QUEUE_URL"])
    return Deliveries(delivery, queue)
