"""How sending can end, apart from well: both matter to what delivery does next."""

from instar.errors import Refused, Unavailable


class NotDelivered(Refused):
    """The platform refuses this reply for good: blocked, unknown chat, not allowed."""

    type = "not_delivered"


class Uncertain(Unavailable):
    """The connection broke after the request was written: it may or may not have gone out."""

    type = "uncertain"


class PartlySent(Uncertain):
    """The first `parts_sent` parts of a reply are out, the next is certainly not.

    A caller that keeps the number sends again with `skip_parts`, and nothing is doubled. One that
    does not treats this as Uncertain: the whole reply once more, marked as a repeat.
    """

    type = "partly_sent"

    def __init__(
        self, detail: str, *, parts_sent: int, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(detail)
        self.parts_sent = parts_sent
        self.retry_after_seconds = retry_after_seconds
