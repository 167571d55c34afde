"""An embedded agent behind real wires: its settings, its doors, what it left behind."""

import hashlib
import hmac
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from instar.channels.ports import WebhookRequest
from instar.clock import utc_now
from instar.ids import SessionId, TurnId
from instar.testing.builders import WORDS_ALONE, embedded_at, eventually
from instar.testing.wire import BotApiServer, ScriptedModelServer
from instar.wiring.embedded import Embedded

OWNER, STRANGER = 4242, 666
SECRET = "hook-secret"  # noqa: S105  made up
GENERIC_SECRET = "generic-secret"  # noqa: S105  made up
NOWHERE = "http://127.0.0.1:9"


def environ(model: ScriptedModelServer | str, bot: BotApiServer | str = "") -> dict[str, str]:
    """The settings of an agent with that model and that Bot API, or their addresses."""
    return {
        **WORDS_ALONE,
        "INSTAR_MODEL": "openai-chat/scripted",
        "INSTAR_MODEL_BASE_URL": model if isinstance(model, str) else model.base_url,
        "INSTAR_WEBHOOK_SECRET": GENERIC_SECRET,
        "INSTAR_WEBHOOK_OWNER": "me",
        "INSTAR_TELEGRAM_TOKEN": "1:token",
        "INSTAR_TELEGRAM_SECRET": SECRET,
        "INSTAR_TELEGRAM_OWNER": str(OWNER),
        "INSTAR_TELEGRAM_API_BASE": (bot if isinstance(bot, str) else bot.url) or NOWHERE,
    }


def update(number: int, text: str | None, *, sender: int = OWNER, **message: Any) -> dict[str, Any]:
    """A Telegram update with a private message."""
    words = {} if text is None else {"text": text}
    return {
        "update_id": number,
        "message": {
            "message_id": number,
            "date": 1_930_000_000,
            "chat": {"id": sender, "type": "private"},
            "from": {"id": sender, "is_bot": False, "first_name": "A"},
            **words,
            **message,
        },
    }


@dataclass(frozen=True)
class Agent:
    """An embedded agent and the ways to reach it."""

    embedded: Embedded

    def telegram(self, body: Mapping[str, Any] | bytes, *, secret: str = SECRET) -> int:
        """Posts an update; the status."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        call = WebhookRequest(
            account="main",
            headers={"x-telegram-bot-api-secret-token": secret},
            body=raw,
            received_at=utc_now(),
        )
        return self.embedded.webhooks.call("telegram", call)[0]

    def generic(
        self, body: Mapping[str, Any] | bytes, *, secret: str = GENERIC_SECRET, age: float = 0
    ) -> tuple[int, Mapping[str, Any]]:
        """Posts a signed message; status and answer."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        at = str(int(time.time() - age))
        signed = hmac.new(secret.encode(), at.encode() + b"." + raw, hashlib.sha256).hexdigest()
        call = WebhookRequest(
            account="main",
            headers={"x-instar-signature": f"t={at},v1={signed}"},
            body=raw,
            received_at=utc_now(),
        )
        return self.embedded.webhooks.call("generic", call)

    def said(self, session: str) -> list[tuple[str, str]]:
        """Role and text of a session's messages."""
        messages = self.embedded.stores.sessions.load(SessionId(session)).messages
        return [(message.role, message.text()) for message in messages if message.text()]

    def ended(self, turn: str) -> str:
        """The state of a turn once it has ended."""

        def state() -> str:
            found = self.embedded.stores.turns.get(TurnId(turn)).state
            return "" if found in ("queued", "running") else found

        return eventually(state)

    def memory(self, document: str = "MEMORY.md") -> str:
        """A document of the main agent as it stands on the disk."""
        path = self.embedded.stores.home.path / "agents" / "main" / document
        return path.read_text() if path.exists() else ""

    def counted(self, table: str) -> int:
        """Rows of a table, also of `table WHERE …`."""
        with self.embedded.stores.database.read() as connection:
            found = connection.execute(f"SELECT count(*) FROM {table}")  # noqa: S608  our own names
            return int(found.fetchone()[0])

    def time_passes(self, seconds: float = 3600) -> None:
        """Whatever a dead process held runs out."""
        micros = int(seconds * 1_000_000)
        with self.embedded.stores.database.write() as connection:
            for statement in (
                "UPDATE turns SET leased_until = leased_until - ?",
                "UPDATE queue SET visible_at = visible_at - ?",
                "UPDATE outbox SET claimed_until = claimed_until - ?",
                "UPDATE calls SET claimed_at = claimed_at - ? WHERE status IS NULL",
            ):
                connection.execute(statement, (micros,))


def agent_at(home: Path, settings: Mapping[str, str]) -> Agent:
    """The agent on that home."""
    return Agent(embedded_at(home, settings))


def instar(
    home: Path, *words: str, settings: Mapping[str, str] | None = None, stdin: str = ""
) -> tuple[int, Any, str]:
    """The real command: exit code, JSON on stdout, stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "instar", "--json", *words],
        env={**(settings or WORDS_ALONE), "INSTAR_HOME": str(home), "PATH": "/usr/bin:/bin"},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else None, done.stderr
