"""The whole agent in one process, on one home: what `instar serve` and every command run on."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from zoneinfo import ZoneInfo

import httpx

from instar.access.keyring import Keyring
from instar.adapters.http import json_post
from instar.adapters.local.home import Home
from instar.adapters.local.sqlite_access import SqliteCalls, SqliteGrants, SqliteKeys
from instar.adapters.local.sqlite_outbox import SqliteOutbox
from instar.adapters.local.sqlite_queues import SqliteDeliveryQueue, SqliteTurnQueue
from instar.adapters.local.sqlite_turns import SqliteInbox, SqliteStopRequests
from instar.clock import utc_now
from instar.conversation.deliver import Delivery
from instar.conversation.ingest import Ingest
from instar.conversation.live import Pace
from instar.conversation.prompt import PromptDocuments
from instar.conversation.rounds import Rounds
from instar.conversation.settings import TurnSettings
from instar.conversation.turn import TurnRunner
from instar.conversation.webhooks import Webhooks
from instar.errors import Misconfigured
from instar.ids import AgentId, new_id
from instar.llm.ports import Model
from instar.memory.documents import PROMPT_DOCUMENT, document_key
from instar.memory.secrets import masked
from instar.principal import Principal
from instar.tools.memory_tools import memory_tools
from instar.tools.outside import OutsideCalls
from instar.tools.toolbox import Toolbox
from instar.wiring.channels import doors, senders
from instar.wiring.home_memory import HomeMemory
from instar.wiring.home_stores import HomeStores
from instar.wiring.models import ModelSource, owner_client

SEND_TIMEOUT_SECONDS = 20.0
# Nothing but a crash keeps a thread of this process from renewing a lease every five seconds.
LEASE_SECONDS = 30.0


@dataclass(frozen=True)
class Embedded:
    """Every use case of one home, built when it is first used."""

    stores: HomeStores
    agent: AgentId

    @classmethod
    def open(cls, path: str | None, agent: AgentId, environ: Mapping[str, str]) -> "Embedded":
        """The home at that path, INSTAR_HOME or ~/.instar."""
        home = Home(Path(path or environ.get("INSTAR_HOME") or "~/.instar"))
        return cls(HomeStores(home, environ), agent)

    def build(self) -> None:
        """Builds what threads share before there are any. Raises Misconfigured."""
        _ = self.memory.indexer, self.memory.editor, self.memory.recall
        _ = self.runner, self.delivery, self.outside, self.webhooks

    @cached_property
    def memory(self) -> HomeMemory:
        """Memory's use cases."""
        return HomeMemory(self.stores)

    @cached_property
    def stops(self) -> SqliteStopRequests:
        """How a running turn is stopped."""
        return SqliteStopRequests(self.stores.database)

    @cached_property
    def model_source(self) -> ModelSource:
        """The model of the settings in force."""
        return ModelSource(self.stores.settings, self.stores.secret, self.stores.egress)

    def model(self) -> Model:
        """The model to ask now."""
        return self.model_source.model()

    def prompt_documents(self, principal: Principal) -> PromptDocuments:
        """What stands in the owner's prompt."""
        prefix = f"agents/{principal.agent}/persona/"
        persona = [
            (listed.key.removeprefix(prefix), self.stores.text_of(listed.key))
            for listed in self.stores.documents.list(prefix)
        ]
        return PromptDocuments(
            persona=persona,
            memory=self.stores.text_of(document_key(principal.agent, PROMPT_DOCUMENT)),
            memory_characters=self.stores.settings().memory_characters,
        )

    @cached_property
    def toolbox(self) -> Toolbox:
        """The tools there are."""
        return Toolbox(
            memory_tools(
                self.memory.editor,
                self.memory.remover,
                self.memory.reader,
                self.memory.recall,
            )
        )

    @cached_property
    def ingest(self) -> Ingest:
        """The door of conversations."""
        return Ingest(
            inbox=SqliteInbox(self.stores.database),
            queue=SqliteTurnQueue(self.stores.turn_queue),
            clock=utc_now,
            mask=masked,
        )

    @cached_property
    def runner(self) -> TurnRunner:
        """Runs turns."""
        turn_settings = TurnSettings(
            zone=self.stores.settings().time_zone, pace=Pace(lease_seconds=LEASE_SECONDS)
        )
        return TurnRunner(
            sessions=self.stores.sessions,
            turns=self.stores.turns,
            deliveries=SqliteDeliveryQueue(self.stores.delivery_queue),
            rounds=Rounds(
                sessions=self.stores.sessions,
                turns=self.stores.turns,
                model=self.model,
                toolbox=self.toolbox,
                documents=self.prompt_documents,
                settings=turn_settings,
                clock=utc_now,
                new_id=new_id,
            ),
            settings=turn_settings,
            clock=utc_now,
        )

    def _time_zone(self) -> ZoneInfo:
        """The owner's; with settings that cannot be used the turn itself says so."""
        try:
            return self.stores.settings().time_zone
        except Misconfigured:
            return ZoneInfo("UTC")

    @cached_property
    def delivery(self) -> Delivery:
        """Sends replies."""
        return Delivery(
            outbox=SqliteOutbox(self.stores.database, utc_now),
            sessions=self.stores.sessions,
            channels=senders(
                self.stores.settings(), self.stores.secret, json_post(self._telegram_client)
            ),
        )

    def _telegram_client(self) -> httpx.Client:
        return owner_client(self.stores.egress, SEND_TIMEOUT_SECONDS)

    @cached_property
    def keyring(self) -> Keyring:
        """API keys and grants."""
        return Keyring(
            keys=SqliteKeys(self.stores.database),
            grants=SqliteGrants(self.stores.database, utc_now),
            clock=utc_now,
            new_id=new_id,
        )

    @cached_property
    def outside(self) -> OutsideCalls:
        """Tool calls from outside."""
        return OutsideCalls(
            toolbox=self.toolbox,
            calls=SqliteCalls(self.stores.database, utc_now),
            clock=utc_now,
            new_id=new_id,
        )

    @cached_property
    def webhooks(self) -> Webhooks:
        """The channels' doors."""
        return Webhooks(
            doors=doors(self.stores.settings(), self.stores.secret),
            ingest=self.ingest,
            agent=self.agent,
        )
