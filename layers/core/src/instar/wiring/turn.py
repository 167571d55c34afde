"""The turn function: model, tools, sessions, deliveries."""

from dataclasses import dataclass

from instar import config
from instar.adapters.aws.sqs_queues import SqsDeliveryQueue, SqsQueue
from instar.clock import utc_now
from instar.conversation.live import Pace
from instar.conversation.prompt import PromptDocuments
from instar.conversation.rounds import Rounds
from instar.conversation.settings import TurnSettings
from instar.conversation.turn import TurnRunner
from instar.errors import NotFound
from instar.ids import new_id
from instar.memory.documents import PROMPT_DOCUMENT, document_key
from instar.principal import Principal
from instar.wiring.aws_memory import AwsMemory
from instar.wiring.aws_stores import AwsStores
from instar.wiring.models import ModelSource
from instar.wiring.tool import toolbox

RESOURCES = (
    "DOCUMENTS_BUCKET",
    "LEDGER_TABLE",
    "SESSIONS_TABLE",
    "SECRETS_PREFIX",
    "INDEXER_FUNCTION",
    "INSTAR_SEARCH_ENDPOINT",
    "TURN_QUEUE_URL",
    "DELIVERY_QUEUE_URL",
    "CONNECTIONS_URL",
)
# Each batch of deltas is a write and a post; each renewal a write, and how soon a stop is heard.
PACE = Pace(publish_seconds=0.25, renew_seconds=5.0, lease_seconds=90.0)


@dataclass(frozen=True, slots=True)
class Turns:
    """Runs turns; `queue` is where their messages come from."""

    runner: TurnRunner
    queue: SqsQueue


def build() -> Turns:
    """The use case, from the function's environment."""
    stores = AwsStores.bound(config.environment(), *RESOURCES)
    memory = AwsMemory(stores)
    source = stores.settings_source
    settings = TurnSettings(zone=source.settings().time_zone, pace=PACE)
    sqs = stores.clients.sqs()
    runner = TurnRunner(
        sessions=stores.sessions,
        turns=stores.turns,
        deliveries=SqsDeliveryQueue(sqs, stores.environ["DELIVERY_QUEUE_URL"]),
        rounds=Rounds(
            sessions=stores.sessions,
            turns=stores.turns,
            model=ModelSource(source.settings, source.secret, stores.egress).model,
            toolbox=toolbox(memory),
            documents=lambda principal: prompt_documents(stores, principal),
            settings=settings,
            clock=utc_now,
            new_id=new_id,
        ),
        settings=settings,
        clock=utc_now,
    )
    return Turns(runner, SqsQueue(sqs, stores.environ["TURN_QUEUE_URL"]))


def prompt_documents(stores: AwsStores, principal: Principal) -> PromptDocuments:
    """What stands in the owner's prompt."""
    prefix = f"agents/{principal.agent}/persona/"
    persona = [
        (listed.key.removeprefix(prefix), stores.documents.get(listed.key).text)
        for listed in stores.documents.list(prefix)
    ]
    try:
        text = stores.documents.get(document_key(principal.agent, PROMPT_DOCUMENT)).text
    except NotFound:
        text = ""
    characters = stores.settings_source.settings().memory_characters
    return PromptDocuments(persona=persona, memory=text, memory_characters=characters)
