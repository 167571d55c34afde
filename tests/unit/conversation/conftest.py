"""What the tests of conversations share: turns over real stores, and a model with a script."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from instar.adapters.local.database import Database
from instar.adapters.local.sqlite_outbox import SqliteOutbox
from instar.adapters.local.sqlite_queues import SqliteDeliveryQueue, SqliteQueue, SqliteTurnQueue
from instar.adapters.local.sqlite_sessions import SqliteSessions
from instar.adapters.local.sqlite_turns import SqliteInbox, SqliteStopRequests, SqliteTurns
from instar.clock import Deadline
from instar.conversation.envelopes import InboundMessage, ReplyAddress
from instar.conversation.ingest import Draft, Ingest
from instar.conversation.live import Pace
from instar.conversation.prompt import PromptDocuments
from instar.conversation.rounds import Rounds
from instar.conversation.settings import TurnSettings
from instar.conversation.turn import TurnRunner
from instar.ids import MAIN_AGENT, SessionId
from instar.llm.request import (
    Finished,
    ModelEvent,
    ModelProfile,
    ModelRequest,
    TextDelta,
    ToolCallReady,
)
from instar.messages import ToolCall, Usage
from instar.principal import Principal, owner
from instar.testing.clock import MovingClock, numbered_ids
from instar.tools.toolbox import Toolbox

Answer = Sequence[ModelEvent] | Exception


def says(text: str) -> list[ModelEvent]:
    """A model that answers with this text."""
    return [TextDelta(text), Finished("end", Usage(input_tokens=5, output_tokens=2))]


def calls(*named: tuple[str, dict[str, Any]]) -> list[ModelEvent]:
    """A model that asks for these tools."""
    ready = [
        ToolCallReady(ToolCall(call=f"c{number}", name=name, arguments=arguments))
        for number, (name, arguments) in enumerate(named)
    ]
    return [*ready, Finished("tool_calls", Usage(input_tokens=5, output_tokens=2))]


@dataclass
class ScriptedModel:
    """A Model that plays its answers in order; what was asked stands in `requests`."""

    answers: list[Answer] = field(default_factory=list)
    requests: list[ModelRequest] = field(default_factory=list)
    profile: ModelProfile = field(default_factory=lambda: ModelProfile(name="scripted"))
    before: Callable[[], None] = lambda: None

    def stream(self, request: ModelRequest) -> Iterator[ModelEvent]:
        self.requests.append(request)
        self.before()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        yield from answer


@dataclass
class Conversation:
    """One agent's conversations over a real database."""

    database: Database
    clock: MovingClock
    tools: list[Any] = field(default_factory=list)
    model: ScriptedModel = field(default_factory=ScriptedModel)
    memory: str = ""
    settings: TurnSettings = field(
        default_factory=lambda: TurnSettings(
            zone=ZoneInfo("Asia/Shanghai"), pace=Pace(renew_seconds=0.05)
        )
    )

    def __post_init__(self) -> None:
        self.sessions = SqliteSessions(self.database, self.clock)
        self.turns = SqliteTurns(self.database, self.clock)
        self.stops = SqliteStopRequests(self.database)
        self.outbox = SqliteOutbox(self.database, self.clock)
        ids = numbered_ids("q")
        self.turn_queue = SqliteQueue(self.database, self.clock, ids, name="turns", max_receives=10)
        self.delivery_queue = SqliteQueue(
            self.database, self.clock, ids, name="deliveries", max_receives=10
        )
        self.ingest = Ingest(
            inbox=SqliteInbox(self.database),
            queue=SqliteTurnQueue(self.turn_queue),
            clock=self.clock,
            mask=lambda text: text.replace("SECRET", "[masked]"),
        )

    @property
    def runner(self) -> TurnRunner:
        return TurnRunner(
            sessions=self.sessions,
            turns=self.turns,
            deliveries=SqliteDeliveryQueue(self.delivery_queue),
            rounds=Rounds(
                sessions=self.sessions,
                turns=self.turns,
                model=lambda: self.model,
                toolbox=Toolbox(self.tools),
                documents=self._documents,
                settings=self.settings,
                clock=self.clock,
                new_id=numbered_ids("m"),
            ),
            settings=self.settings,
            clock=self.clock,
        )

    def _documents(self, principal: Principal) -> PromptDocuments:
        return PromptDocuments(persona=(), memory=self.memory, memory_characters=12_000)

    def draft(self, text: str = "Hi", *, number: int = 1, **fields: Any) -> Draft:
        whole = {
            "identity": f"telegram:main:update:{number}",
            "session": SessionId("telegram:main:7"),
            "text": text,
            "principal": owner(MAIN_AGENT),
            "address": ReplyAddress(channel="telegram", account="main", conversation="7"),
        }
        return Draft(**(whole | fields))

    def accepted(self, text: str = "Hi", **fields: Any) -> InboundMessage:
        """The queued message of a draft."""
        turn = self.ingest.accept(self.draft(text, **fields))
        return self.turns.get(turn).message

    def run(self, message: InboundMessage, *, seconds: float = 3600) -> Any:
        return self.runner.run(message, Deadline.after(seconds, self.clock))

    def texts(self, session: str = "telegram:main:7") -> list[tuple[str, str]]:
        return [(m.role, m.text()) for m in self.sessions.load(SessionId(session)).messages]

    def kinds(self, session: str = "telegram:main:7") -> list[str]:
        return [event.kind for event in self.sessions.events(SessionId(session), after=0)]


@pytest.fixture
def talk(tmp_path: Path, clock: MovingClock) -> Iterator[Conversation]:
    """A conversation with an empty database."""
    made = Conversation(Database(tmp_path / "instar.db"), clock)
    yield made
    made.database.close()


@pytest.fixture
def script() -> dict[str, Callable[..., list[ModelEvent]]]:
    """How a scripted model answers."""
    return {"says": says, "calls": calls}
