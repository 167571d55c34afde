"""What one home keeps: settings, secrets, documents, database, queues. Built when first used."""

import base64
import secrets as randomness
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from instar import config
from instar.adapters.http import Egress
from instar.adapters.local.database import Database
from instar.adapters.local.file_secrets import FileSecrets
from instar.adapters.local.folder_documents import FolderDocuments
from instar.adapters.local.home import Home
from instar.adapters.local.sqlite_ledger import SqliteLedger, SqliteManifest
from instar.adapters.local.sqlite_queues import SqliteQueue
from instar.adapters.local.sqlite_sessions import SqliteSessions
from instar.adapters.local.sqlite_turns import SqliteTurns
from instar.clock import utc_now
from instar.errors import NotFound
from instar.ids import new_id
from instar.memory.documents import CONFIG_KEY

TURN_RECEIVES, DELIVERY_RECEIVES = 10, 60


@dataclass(frozen=True)
class HomeStores:
    """The stores of one home, and its settings."""

    home: Home
    environ: Mapping[str, str]

    def text_of(self, key: str) -> str:
        """A document's text, "" when there is none."""
        try:
            return self.documents.get(key).text
        except NotFound:
            return ""

    def config_text(self) -> str:
        """The text of config.toml, "" when there is none."""
        return self.text_of(CONFIG_KEY)

    def settings(self) -> config.Settings:
        """The settings in force now: a change needs no restart."""
        return config.read(self.environ, self.config_text())

    @cached_property
    def secrets(self) -> FileSecrets:
        """Secrets of this home."""
        return FileSecrets(self.home.secrets)

    def secret(self, name: str) -> str | None:
        """A secret by name; the environment wins."""
        return config.secrets_of(self.environ).get(name) or self.secrets.get(name)

    def mark_key(self) -> bytes:
        """The key of tombstone marks, made on first use."""
        found = self.secrets.get("tombstone_key")
        if found is None:
            found = base64.b64encode(randomness.token_bytes(32)).decode()
            self.secrets.set("tombstone_key", found)
        return base64.b64decode(found)

    @cached_property
    def egress(self) -> Egress:
        """The one way out."""
        return Egress()

    @cached_property
    def database(self) -> Database:
        """Sessions, queues, ledger, access."""
        return Database(self.home.database)

    @cached_property
    def documents(self) -> FolderDocuments:
        """The Markdown files."""
        return FolderDocuments(self.home.path, utc_now)

    @cached_property
    def ledger(self) -> SqliteLedger:
        """The record of every write."""
        return SqliteLedger(self.database)

    @cached_property
    def manifest(self) -> SqliteManifest:
        """How far the index is."""
        return SqliteManifest(self.database)

    @cached_property
    def sessions(self) -> SqliteSessions:
        """Transcripts and events."""
        return SqliteSessions(self.database, utc_now)

    @cached_property
    def turns(self) -> SqliteTurns:
        """Rows of turns."""
        return SqliteTurns(self.database, utc_now)

    @cached_property
    def turn_queue(self) -> SqliteQueue:
        """Accepted messages."""
        return SqliteQueue(self.database, utc_now, new_id, name="turns", max_receives=TURN_RECEIVES)

    @cached_property
    def delivery_queue(self) -> SqliteQueue:
        """Replies on their way out."""
        return SqliteQueue(
            self.database, utc_now, new_id, name="deliveries", max_receives=DELIVERY_RECEIVES
        )
