"""The generic webhook: any program that can sign a request may talk to the agent.

Header `X-Instar-Signature: t=UNIX,v1=HEX` is an HMAC-SHA256 over `t + "." + body`. The body is
`{"id","text","sender","conversation"}`; nothing else in it counts. Idempotency key: `id`. Replies
stand in the session, so sending does nothing.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from instar.adapters.well_formed import well_formed
from instar.channels.ports import Incoming, WebhookRequest
from instar.errors import Invalid, TooLarge, Unauthenticated
from instar.principal import Audience

SIGNATURE_HEADER = "x-instar-signature"
TOLERANCE_SECONDS = 300
BODY_BYTES = 1_000_000
TEXT_CHARACTERS = 100_000
NAME_CHARACTERS = 180  # "generic:" and the conversation make a session name of at most 200

_TIME = re.compile(r"\d{1,12}")


class GenericWebhookChannel:
    """A Channel. `owner_sender` is the sender that the settings name as the owner, if any."""

    def __init__(
        self, *, secret: Callable[[], str | None], owner_sender: str | None = None
    ) -> None:
        self._secret = secret
        self._owner_sender = owner_sender

    @property
    def name(self) -> str:
        """See Channel."""
        return "generic"

    def receive(self, request: WebhookRequest) -> tuple[Incoming, ...]:
        """See Channel."""
        if len(request.body) > BODY_BYTES:
            raise TooLarge(f"the body is larger than {BODY_BYTES} bytes")
        self._verify(request)
        fields = _object(request.body)
        text = fields.get("text")
        if not isinstance(text, str) or not text.strip():
            raise Invalid("'text' has to be a string that is not blank")
        if len(text) > TEXT_CHARACTERS:
            raise TooLarge(f"'text' is longer than {TEXT_CHARACTERS} characters")
        sender = _name(fields, "sender")
        conversation = _name(fields, "conversation")
        is_owner = bool(self._owner_sender) and sender == self._owner_sender
        return (
            Incoming(
                identity=_name(fields, "id"),
                session=conversation,
                sender=sender,
                is_owner=is_owner,
                audience=Audience.PRIVATE if is_owner else Audience.SHARED,
                text=well_formed(text),
                conversation=conversation,
            ),
        )

    def send(
        self, conversation: str, thread: str | None, text: str, *, key: str, skip_parts: int = 0
    ) -> None:
        """Nothing to do: whoever asked reads the session."""

    def _verify(self, request: WebhookRequest) -> None:
        """Raises Unauthenticated unless a signature fits and is fresh."""
        secret = self._secret()
        if not secret:
            raise Unauthenticated(
                "the generic webhook has no secret", fix="Set INSTAR_WEBHOOK_SECRET."
            )
        pairs = [part.strip().partition("=") for part in _header(request).split(",")]
        times = [value for name, _, value in pairs if name == "t"]
        if len(times) != 1 or not _TIME.fullmatch(times[0]):
            raise Unauthenticated("the signature header has no time")
        age = request.received_at.timestamp() - int(times[0])
        signed = times[0].encode() + b"." + request.body
        expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest().encode()
        fits = [
            hmac.compare_digest(expected, value.lower().encode("utf-8", "replace"))
            for name, _, value in pairs
            if name == "v1"
        ]
        if not any(fits):
            raise Unauthenticated("the signature does not fit the body")
        if abs(age) > TOLERANCE_SECONDS:
            raise Unauthenticated(f"the signature is {abs(age):.0f} seconds off")


def _header(request: WebhookRequest) -> str:
    return request.headers.get(SIGNATURE_HEADER, "")


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        parsed = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Invalid("the body is not JSON in UTF-8") from error
    if not isinstance(parsed, dict):
        raise Invalid("the body is not a JSON object")
    return parsed


def _name(fields: Mapping[str, Any], field: str) -> str:
    value = fields.get(field)
    is_name = isinstance(value, str) and value.strip() and value.isprintable()
    if not is_name or len(str(value)) > NAME_CHARACTERS:
        raise Invalid(f"{field!r} has to be 1 to {NAME_CHARACTERS} printable characters")
    return str(value)
