"""What routes and sockets share when a caller says something in a session."""

from instar.access.keyring import Caller
from instar.conversation.envelopes import ReplyAddress
from instar.conversation.ingest import Draft
from instar.conversation.ports import TurnRecord
from instar.errors import Invalid
from instar.ids import TurnId, session_id
from instar.web.services import Services

ID_CHARACTERS = 200
ENDED = frozenset({"completed", "failed", "stopped"})


def accept(services: Services, caller: Caller, session: str, text: str, id: str | None) -> TurnId:
    """Accepts a message; the same `id` of the same caller in the same session is the same message.

    Raises Invalid, TooLarge, Conflict (another text under the id).
    """
    name = session_id(session)
    if id is not None and not (0 < len(id) <= ID_CHARACTERS and id.isprintable()):
        raise Invalid("not a message id", fix=f"Use 1 to {ID_CHARACTERS} printable characters.")
    draft = Draft(
        identity=f"session:{caller.name}:{name}:{id or services.keyring.new_id()}",
        session=name,
        text=text,
        principal=caller.principal,
        address=ReplyAddress(channel="session", conversation=name),
    )
    return services.ingest.accept(draft)


def ended_turn(services: Services, turn: TurnId) -> TurnRecord | None:
    """The turn's row once it has ended."""
    record = services.turns.get(turn)
    return record if record.state in ENDED else None
