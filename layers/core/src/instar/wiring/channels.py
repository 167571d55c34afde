"""Settings become channels: for receiving (light: no HTTP client) and for sending."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from instar.adapters.channels.generic_webhook import GenericWebhookChannel
from instar.adapters.channels.telegram import TelegramChannel
from instar.channels.ports import Channel
from instar.channels.webhooks import Doors
from instar.config import Settings

if TYPE_CHECKING:
    from instar.adapters.channels.posting import Post

Secret = Callable[[str], str | None]


def doors(settings: Settings, secret: Secret) -> Doors:
    """The webhooks: what verifies and parses."""
    return Doors(
        channels={
            "telegram": _telegram(settings, secret, None),
            "generic": GenericWebhookChannel(
                secret=lambda: secret("webhook_secret"),
                owner_sender=settings.webhook_owner or None,
            ),
        }
    )


def senders(settings: Settings, secret: Secret, post: "Post") -> Mapping[str, Channel]:
    """The channels that replies go out through; `session` and `generic` have no outside."""
    return {"telegram": _telegram(settings, secret, post)}


def _telegram(settings: Settings, secret: Secret, post: "Post | None") -> TelegramChannel:
    return TelegramChannel(
        token=lambda: secret("telegram_token"),
        secret=lambda: secret("telegram_secret"),
        owner=settings.telegram_owner or None,
        post=post,
        api_base=settings.telegram_api_base,
    )
