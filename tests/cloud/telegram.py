"""What Telegram sends and gets: updates of one chat in, messages to it out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from instar.testing.wire import BotApiServer

OWNER = 4242
TOKEN = "77:cloud-test"
SECRET = "hook-secret"


@dataclass
class Chat:
    """One chat; `new_number` numbers its updates."""

    http: httpx.Client
    bot: BotApiServer
    number: int
    sender: int
    new_number: Callable[[], int]

    def update(self, text: str) -> dict[str, Any]:
        """A text message as Telegram wraps it."""
        number = self.new_number()
        return {
            "update_id": number,
            "message": {
                "message_id": number,
                "date": 1_796_000_000,
                "chat": {"id": self.number, "type": "private", "first_name": "Ada"},
                "from": {"id": self.sender, "is_bot": False, "first_name": "Ada"},
                "text": text,
            },
        }

    def say(self, text: str) -> httpx.Response:
        """Sends a text message."""
        return self.post(self.update(text))

    def post(self, update: Any, secret: str = SECRET) -> httpx.Response:
        """Delivers an update, as often as it is called."""
        headers = {"x-telegram-bot-api-secret-token": secret}
        return self.http.post("/webhooks/telegram/main", json=update, headers=headers)

    def replies(self) -> list[str]:
        """The texts that were sent to this chat, oldest first."""
        return [each["text"] for each in self.bot.sent if each["chat_id"] == self.number]
