"""The command line's operations on a home that this process opens: the owner's, without a key."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from instar import config
from instar.clock import Deadline, sleep, utc_now
from instar.conversation.envelopes import ReplyAddress
from instar.conversation.ingest import Draft
from instar.conversation.report import step_rows, tool_calls, turn_result, usage
from instar.errors import InstarError, Invalid, Unavailable
from instar.ids import SessionId, TurnId, new_id, session_id
from instar.memory.documents import CONFIG_KEY
from instar.memory.write import Authorship
from instar.principal import Principal, owner
from instar.wiring.doctor import home_digest, home_report
from instar.wiring.embedded import Embedded
from instar.wiring.home_memory_door import memory_operations
from instar.wiring.workers import Workers

CHAT_SECONDS = 600.0
Operation = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class HomeDoor:
    """A Door: conversation, access, settings; memory's operations are `home_memory_door.py`."""

    embedded: Embedded

    def call(self, operation: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """See Door."""
        found = self._operations().get(operation)
        if found is None:
            raise Invalid(f"unknown operation {operation!r}")
        return found(**arguments)

    def _operations(self) -> dict[str, Operation]:
        return {
            **memory_operations(self.embedded),
            "chat.send": self.chat,
            "session.list": self.sessions,
            "session.show": self.session,
            "turn.show": self.turn,
            "key.create": self.key_create,
            "key.list": self.key_list,
            "key.revoke": self.key_revoke,
            "secret.set": self.secret_set,
            "config.get": self.config_get,
            "config.set": self.config_set,
            "config.show": self.config_show,
            "doctor": self.doctor,
        }

    @property
    def _principal(self) -> Principal:
        return owner(self.embedded.agent)

    def chat(self, session: str, text: str) -> dict[str, Any]:
        """`chat --once`: by the server of this home, or by workers of our own."""
        draft = Draft(
            identity=f"session:{new_id()}",
            session=session_id(session),
            text=text,
            principal=self._principal,
            address=ReplyAddress(channel="session"),
        )
        self.embedded.build()
        turn = self.embedded.ingest.accept(draft)
        if self.embedded.stores.home.server_running():
            return self._wait(turn)
        workers = Workers(self.embedded)
        workers.start()
        try:
            return self._wait(turn)
        finally:
            workers.stop()

    def _wait(self, turn: TurnId) -> dict[str, Any]:
        deadline = Deadline.after(CHAT_SECONDS, utc_now)
        while not deadline.has_passed():
            record = self.embedded.stores.turns.get(turn)
            if record.state not in ("queued", "running"):
                return turn_result(record)
            sleep(0.03)
        raise Unavailable(f"turn {turn} has not ended", fix="See `instar turn show`.")

    def sessions(self) -> dict[str, Any]:
        """`session list`."""
        rows = self.embedded.stores.sessions.list()
        return {
            "sessions": [
                {
                    "session": row.session,
                    "channel": row.channel,
                    "address": row.address,
                    "at": row.at.isoformat(),
                }
                for row in rows
            ]
        }

    def session(self, session: str, full: bool = False) -> dict[str, Any]:
        """`session show`."""
        found = self.embedded.stores.sessions.load(SessionId(session))
        rows = []
        for message in found.messages:
            row = {
                "id": message.id,
                "role": message.role,
                "text": message.text(),
                "at": message.at.isoformat(),
                "turn": message.turn,
            }
            if full:
                row["parts"] = json.loads(message.model_dump_json())["parts"]
            if full or message.text():
                rows.append(row)
        return {"session": session, "messages": rows}

    def turn(self, turn: str) -> dict[str, Any]:
        """`turn show`."""
        record = self.embedded.stores.turns.get(TurnId(turn))
        return {
            "turn": turn,
            "session": record.message.session,
            "state": record.state,
            "attempts": record.attempts,
            "crashes": record.crashes,
            "iterations": step_rows(record),
            "tool_calls": tool_calls(record),
            "usage": usage(record),
        }

    def key_create(self, scopes: list[str], tools: list[str] | None = None) -> dict[str, Any]:
        """`key create`."""
        key, row = self.embedded.keyring.create(scopes, tools)
        listed = None if row.tools is None else sorted(row.tools)
        return {"key": key, "id": row.id, "scopes": sorted(row.scopes), "tools": listed}

    def key_list(self) -> dict[str, Any]:
        """`key list`."""
        return {
            "keys": [
                {
                    "id": row.id,
                    "scopes": sorted(row.scopes),
                    "tools": None if row.tools is None else sorted(row.tools),
                    "created_at": row.created_at.isoformat(),
                    "revoked": row.revoked,
                }
                for row in self.embedded.keyring.keys.list()
            ]
        }

    def key_revoke(self, id: str) -> dict[str, Any]:
        """`key revoke`."""
        self.embedded.keyring.keys.revoke(id)
        return {"id": id, "revoked": True}

    def secret_set(self, name: str, value: str) -> dict[str, Any]:
        """`secret set`: the name with or without INSTAR_, in any case."""
        plain = name.lower().removeprefix("instar_")
        if not plain.replace("_", "").isalnum() or not plain.endswith(("key", "token", "secret")):
            raise Invalid(
                f"not a secret's name: {name[:80]!r}",
                fix="Use names such as MODEL_API_KEY, TELEGRAM_TOKEN, WEBHOOK_SECRET.",
            )
        self.embedded.stores.secrets.set(plain, value)
        return {"name": plain, "set": bool(value)}

    def config_get(self, key: str) -> dict[str, Any]:
        """`config get`."""
        stores = self.embedded.stores
        return {"key": key, "value": config.value_of(stores.environ, stores.config_text(), key)}

    def config_show(self) -> dict[str, Any]:
        """`config show`."""
        stores = self.embedded.stores
        return {"settings": config.all_values(stores.environ, stores.config_text())}

    def config_set(self, key: str, value: str) -> dict[str, Any]:
        """`config set`: config.toml is a document like any other, with revisions."""
        written = self.embedded.memory.writer.edit(
            CONFIG_KEY,
            lambda text: config.with_value(text or "", key, value),
            Authorship(author="owner", reason=f"set {key}"),
        )
        return {"key": key, "value": value, "revision": written.revision}

    def doctor(self, digest: bool = False) -> dict[str, Any]:
        """`doctor`."""
        if digest:
            return {"digest": home_digest(self.embedded)}
        if not self.embedded.stores.home.server_running():
            with suppress(InstarError):  # the report says what is wrong
                self.embedded.memory.indexer.level()
        return home_report(self.embedded)
