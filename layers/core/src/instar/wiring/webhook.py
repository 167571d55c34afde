"""The webhook function: doors, masking, inbox, queue. Imports neither FastAPI nor PynamoDB nor a
search engine."""

from instar import config
from instar.adapters.aws.clients import Clients
from instar.adapters.aws.dynamo_inbox import DynamoInbox
from instar.adapters.aws.sqs_queues import SqsTurnQueue
from instar.clock import utc_now
from instar.conversation.ingest import Ingest
from instar.conversation.webhooks import Webhooks
from instar.ids import MAIN_AGENT
from instar.memory.secrets import masked
from instar.wiring.aws_settings import AwsSettings
from instar.wiring.channels import doors

RESOURCES = ("SESSIONS_TABLE", "TURN_QUEUE_URL", "DOCUMENTS_BUCKET", "SECRETS_PREFIX")


def build() -> Webhooks:
    """The use case, from the function's environment."""
    environ = config.environment()
    table, queue, *_ = config.resources(environ, *RESOURCES)
    clients = Clients()
    source = AwsSettings(environ, clients)
    return Webhooks(
        doors=doors(source.settings(), source.secret),
        ingest=Ingest(
            inbox=DynamoInbox(clients.dynamodb(), table),
            queue=SqsTurnQueue(clients.sqs(), queue),
            clock=utc_now,
            mask=masked,
        ),
        agent=MAIN_AGENT,
    )
