"""The tool function: keys and the toolbox, no FastAPI."""

from dataclasses import dataclass

from instar import config
from instar.access.keyring import Caller, Keyring
from instar.adapters.aws.dynamo_access import DynamoCalls
from instar.clock import utc_now
from instar.ids import MAIN_AGENT, new_id
from instar.tools.memory_tools import memory_tools
from instar.tools.outside import OutsideCalls
from instar.tools.toolbox import Toolbox
from instar.wiring.aws_access import keyring
from instar.wiring.aws_memory import AwsMemory
from instar.wiring.aws_stores import AwsStores

RESOURCES = (
    "DOCUMENTS_BUCKET",
    "LEDGER_TABLE",
    "ACCESS_TABLE",
    "SECRETS_PREFIX",
    "INDEXER_FUNCTION",
    "INSTAR_SEARCH_ENDPOINT",
)


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """Who calls, and what they may call."""

    keyring: Keyring
    outside: OutsideCalls

    def caller(self, key: str) -> Caller:
        """The holder of a key. Raises Unauthenticated."""
        return self.keyring.caller_of_key(key, MAIN_AGENT)


def toolbox(memory: AwsMemory) -> Toolbox:
    """The tools there are."""
    return Toolbox(memory_tools(memory.editor, memory.remover, memory.reader, memory.recall))


def outside(memory: AwsMemory) -> OutsideCalls:
    """Tool calls from outside."""
    return OutsideCalls(
        toolbox=toolbox(memory), calls=DynamoCalls(utc_now), clock=utc_now, new_id=new_id
    )


def build() -> ToolCalls:
    """The use case, from the function's environment."""
    memory = AwsMemory(AwsStores.bound(config.environment(), *RESOURCES))
    return ToolCalls(keyring(), outside(memory))
