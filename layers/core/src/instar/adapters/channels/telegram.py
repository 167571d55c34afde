"""Telegram: webhook updates in, sendMessage out.

Receiving needs no HTTP client, so the webhook can import this cheaply; sending needs `post`.
The owner is a number, `from.id`, and only in a private chat and without `sender_chat`. Idempotency
key: `update:<update_id>`.

Sending has no idempotency key on Telegram's side, so the policy is what can be known. A reply is
split the same way every time. A first part that was refused or never sent raises Unavailable: all
may be sent again. Once a part is out, a later refusal raises PartlySent with the number, and the
caller sends the rest with `skip_parts`. A connection that breaks after the request was written
raises Uncertain. A part that Telegram cannot parse is sent once more as plain text.
"""

import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any

from instar.adapters.channels.posting import Post
from instar.adapters.well_formed import well_formed
from instar.channels.markup import telegram_html, visible
from instar.channels.outcomes import NotDelivered, PartlySent, Uncertain
from instar.channels.ports import Incoming, WebhookRequest
from instar.channels.split import split, utf16_units
from instar.errors import Invalid, Misconfigured, Throttled, TooLarge, Unauthenticated, Unavailable
from instar.principal import Audience

SECRET_HEADER = "x-telegram-bot-api-secret-token"  # noqa: S105  the header's name
BODY_BYTES = 1_000_000
MESSAGE_UNITS = 4096
HTML_BYTES = 30_000  # the Bot API refuses raw text of more than 2**15 bytes

_UNREADABLE = (
    *("photo", "sticker", "voice", "audio", "video", "video_note", "animation", "document"),
    *("location", "venue", "contact", "poll", "dice", "story", "game", "paid_media", "checklist"),
)
_FORWARDED = (
    *("forward_origin", "forward_date", "forward_from", "forward_from_chat"),
    *("forward_sender_name", "forward_from_message_id", "is_automatic_forward"),
)


class TelegramChannel:
    """A Channel. Without `post` it only receives."""

    def __init__(
        self,
        *,
        token: Callable[[], str | None],
        secret: Callable[[], str | None],
        owner: int | None,
        post: Post | None = None,
        api_base: str = "https://api.telegram.org",
    ) -> None:
        self._token = token
        self._secret = secret
        self._owner = owner
        self._post = post
        self._api_base = api_base.rstrip("/")

    @property
    def name(self) -> str:
        """See Channel."""
        return "telegram"

    def receive(self, request: WebhookRequest) -> tuple[Incoming, ...]:
        """See Channel. Edits, posts of bots and kinds of update that are not messages give none."""
        self._verify(request)
        if len(request.body) > BODY_BYTES:
            raise TooLarge(f"the update is larger than {BODY_BYTES} bytes")
        update = _object(request.body)
        number = update.get("update_id")
        if not _is_number(number):
            raise Invalid("the update has no number")
        message = update.get("message")
        if not isinstance(message, Mapping):
            return ()
        incoming = _incoming(message, f"update:{number}", self._owner)
        return () if incoming is None else (incoming,)

    def send(
        self, conversation: str, thread: str | None, text: str, *, key: str, skip_parts: int = 0
    ) -> None:
        """See Channel."""
        parts = telegram_parts(text)
        if not parts:
            raise NotDelivered("the reply is empty")
        address = _address(conversation, thread)
        for number, part in enumerate(parts):
            if number < skip_parts:
                continue
            try:
                self._send_part(address, part)
            except Uncertain:
                raise
            except Unavailable as error:
                if number == 0:
                    raise
                wait = error.retry_after_seconds if isinstance(error, Throttled) else None
                raise PartlySent(
                    f"{number} of {len(parts)} parts are out: {error.detail}",
                    parts_sent=number,
                    retry_after_seconds=wait,
                ) from error

    def _verify(self, request: WebhookRequest) -> None:
        """Raises Unauthenticated unless Telegram sent the secret; without one, always."""
        secret = self._secret()
        if not secret or self._owner is None:
            raise Unauthenticated(
                "the Telegram webhook has no secret or no owner",
                fix="Set INSTAR_TELEGRAM_SECRET and INSTAR_TELEGRAM_OWNER.",
            )
        given = request.headers.get(SECRET_HEADER, "")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode()):
            raise Unauthenticated("the secret token of the Telegram webhook is wrong or missing")

    def _send_part(self, address: Mapping[str, Any], part: str) -> None:
        """One part as HTML; if Telegram refuses it as malformed, once as plain text."""
        rendered = telegram_html(part)
        if visible(rendered).strip():
            status, parameters = self._call({**address, "text": rendered, **_AS_HTML})
            if status != 400:
                _require_sent(status, parameters)
                return
        for plain in split(part, MESSAGE_UNITS):
            status, parameters = self._call({**address, "text": plain})
            _require_sent(status, parameters)

    def _call(self, body: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        """The Bot API's status (200 is well) and parameters."""
        if self._post is None:
            raise Misconfigured("this Telegram channel was made for receiving only")
        token = self._token()
        if not token:
            raise Misconfigured("Telegram has no token", fix="Set INSTAR_TELEGRAM_TOKEN.")
        sent = {**body, "link_preview_options": {"is_disabled": True}}
        answer = self._post(f"{self._api_base}/bot{token}/sendMessage", sent)
        if answer.status == 200 and answer.body.get("ok") is True:
            return 200, {}
        code = answer.body.get("error_code")
        status = code if isinstance(code, int) and answer.status == 200 else answer.status
        parameters = answer.body.get("parameters")
        return (502 if status == 200 else status), (
            parameters if isinstance(parameters, Mapping) else {}
        )


_AS_HTML: Mapping[str, str] = {"parse_mode": "HTML"}


def telegram_parts(text: str) -> tuple[str, ...]:
    """The Markdown of each message, none of which is empty to the eye."""
    whole = well_formed(text)
    parts = split(whole, MESSAGE_UNITS, _message_units)
    shown = tuple(part for part in parts if visible(telegram_html(part)).strip())
    return shown or split(whole, MESSAGE_UNITS)  # nothing but markup: it is sent as it is


def _message_units(markdown: str) -> int:
    """The size of a part against the limit: its visible text, or its HTML if that is worse."""
    rendered = telegram_html(markdown)
    by_bytes = -(-len(rendered.encode()) * MESSAGE_UNITS // HTML_BYTES)
    return max(utf16_units(visible(rendered)), by_bytes)


def _require_sent(status: int, parameters: Mapping[str, Any]) -> None:
    """Raises what a refusal means."""
    if status == 200:
        return
    detail = f"Telegram answered {status}"
    if status == 429:
        wait = parameters.get("retry_after")
        known = isinstance(wait, int | float) and not isinstance(wait, bool)
        raise Throttled(detail, retry_after_seconds=float(wait or 0) if known else None)
    if status in (401, 404):
        raise Misconfigured(f"{detail}: it does not know the bot", fix="Set INSTAR_TELEGRAM_TOKEN.")
    if status >= 500 or status < 400:
        raise Unavailable(detail)
    raise NotDelivered(detail)


def _address(conversation: str, thread: str | None) -> dict[str, Any]:
    """Where to: the general topic of a forum (1) takes no thread."""
    try:
        address = {"chat_id": int(conversation)}
        if thread and thread != "1":
            address["message_thread_id"] = int(thread)
    except ValueError as error:
        raise NotDelivered(f"not a Telegram chat: {conversation!r}, {thread!r}") from error
    return address


def _incoming(message: Mapping[str, Any], identity: str, owner: int | None) -> Incoming | None:
    """The message, or None when it is a bot's, a service message or has no sender."""
    chat, sender = message.get("chat"), message.get("from")
    if not isinstance(chat, Mapping) or not _is_number(chat.get("id")):
        raise Invalid("the message has no chat")
    if not isinstance(sender, Mapping) or not _is_number(sender.get("id")) or sender.get("is_bot"):
        return None
    text = message.get("text") or message.get("caption") or ""
    unread = next((kind for kind in _UNREADABLE if kind in message), None)
    if not isinstance(text, str) or (not text.strip() and unread is None):
        return None
    is_private = chat.get("type") == "private"
    is_owner = is_private and "sender_chat" not in message and sender["id"] == owner
    thread = _thread(message, chat)
    return Incoming(
        identity=identity,
        session=str(chat["id"]) if thread is None else f"{chat['id']}:{thread}",
        sender=str(sender["id"]),
        is_owner=is_owner,
        audience=Audience.PRIVATE if is_private else Audience.SHARED,
        text=well_formed(text),
        conversation=str(chat["id"]),
        thread=thread,
        forwarded=any(message.get(name) for name in _FORWARDED),
        unread=unread,
    )


def _thread(message: Mapping[str, Any], chat: Mapping[str, Any]) -> str | None:
    """The topic; outside forums the same field only names a chain of replies."""
    thread = message.get("message_thread_id")
    is_topic = message.get("is_topic_message") or chat.get("is_forum")
    return str(thread) if is_topic and _is_number(thread) else None


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        parsed = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Invalid("the update is not JSON in UTF-8") from error
    if not isinstance(parsed, dict):
        raise Invalid("the update is not a JSON object")
    return parsed


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
