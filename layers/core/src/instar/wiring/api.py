"""The HTTP API's function: the same app and use cases as on a laptop, over the stack's stores."""

from fastapi import FastAPI

from instar import __version__, config
from instar.adapters.aws.dynamo_inbox import DynamoInbox
from instar.adapters.aws.dynamo_turns import DynamoStopRequests
from instar.adapters.aws.sqs_queues import SqsTurnQueue
from instar.channels.webhooks import Doors
from instar.clock import utc_now
from instar.conversation.ingest import Ingest
from instar.conversation.webhooks import Webhooks
from instar.ids import MAIN_AGENT
from instar.memory.secrets import masked
from instar.web.app import create_app
from instar.web.hosts import HostRules
from instar.web.services import Services
from instar.wiring.aws_access import keyring
from instar.wiring.aws_doctor import StackDoctor
from instar.wiring.aws_memory import AwsMemory
from instar.wiring.aws_stores import AwsStores
from instar.wiring.setup import ModelSetup
from instar.wiring.tool import outside

RESOURCES = (
    "DOCUMENTS_BUCKET",
    "LEDGER_TABLE",
    "SESSIONS_TABLE",
    "ACCESS_TABLE",
    "SECRETS_PREFIX",
    "INDEXER_FUNCTION",
    "INSTAR_SEARCH_ENDPOINT",
    "TURN_QUEUE_URL",
    "SOCKET_URL",
)


def build() -> FastAPI:
    """The app, from the function's environment."""
    stores = AwsStores.bound(config.environment(), *RESOURCES)
    memory = AwsMemory(stores)
    return create_app(services_of(stores, memory), hosts=HostRules(any=True))


def services_of(stores: AwsStores, memory: AwsMemory) -> Services:
    """The use cases behind the routes of a stack."""
    environ, source = stores.environ, stores.settings_source
    ingest = Ingest(
        inbox=DynamoInbox(stores.clients.dynamodb(), environ["SESSIONS_TABLE"]),
        queue=SqsTurnQueue(stores.clients.sqs(), environ["TURN_QUEUE_URL"]),
        clock=utc_now,
        mask=masked,
    )
    return Services(
        version=__version__,
        agent=MAIN_AGENT,
        keyring=keyring(),
        ingest=ingest,
        sessions=stores.stored_sessions,
        turns=stores.turns,
        stops=DynamoStopRequests(),
        editor=memory.editor,
        remover=memory.remover,
        reader=memory.reader,
        recall=memory.recall,
        outside=outside(memory),
        webhooks=Webhooks(doors=Doors(channels={}), ingest=ingest, agent=MAIN_AGENT),
        setup=ModelSetup(
            settings=source.settings,
            secret=source.secret,
            secrets=source.secrets,
            writer=memory.writer,
            egress=stores.egress,
            environ=environ,
        ),
        doctor=StackDoctor(stores, memory).report,
        socket_url=lambda: environ["SOCKET_URL"],
    )
