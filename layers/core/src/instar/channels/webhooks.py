"""A call to a channel's webhook: find the channel, bound the body, verify, parse."""

from collections.abc import Mapping
from dataclasses import dataclass

from instar.channels.ports import Channel, Incoming, WebhookRequest
from instar.errors import NotFound, TooLarge

BODY_BYTES = 1_048_576
ACCOUNT = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """The channels that have a webhook, by name."""

    channels: Mapping[str, Channel]

    def receive(self, channel: str, request: WebhookRequest) -> tuple[Incoming, ...]:
        """The messages of a call. Raises NotFound, TooLarge and what the channel raises."""
        found = self.channels.get(channel)
        if found is None or request.account != ACCOUNT:
            raise NotFound(
                f"there is no webhook {channel[:40]!r}/{request.account[:40]!r}",
                fix="Use /webhooks/telegram/main or /webhooks/generic/main.",
            )
        if len(request.body) > BODY_BYTES:
            raise TooLarge(f"the body has {len(request.body):,} bytes; at most {BODY_BYTES:,} fit")
        return found.receive(request)
