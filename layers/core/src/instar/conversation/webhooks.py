"""A webhook call from verification to the queue: what `POST /webhooks/{channel}/{account}` does.

The idempotency key is the platform's own (update id, message id), per channel and account.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from instar.channels.ports import WebhookRequest
from instar.channels.webhooks import Doors
from instar.conversation.ingest import Ingest, draft_of
from instar.ids import AgentId, TurnId

ANSWERS_GUESTS = frozenset({"generic"})
STATUS = {"generic": 202}


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    """All webhooks; light enough for a function that does nothing else."""

    doors: Doors
    ingest: Ingest
    agent: AgentId

    def call(self, channel: str, request: WebhookRequest) -> tuple[int, Mapping[str, object]]:
        """Status and body to answer with. Raises InstarError for a refusal."""
        turns: list[TurnId] = []
        for incoming in self.doors.receive(channel, request):
            draft = draft_of(
                channel,
                request.account,
                incoming,
                self.agent,
                answers_guests=channel in ANSWERS_GUESTS,
            )
            if draft is not None:
                turns.append(self.ingest.accept(draft))
        body: dict[str, object] = {"turn": turns[0]} if turns else {}
        return STATUS.get(channel, 200), body
