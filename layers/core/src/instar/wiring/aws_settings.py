"""Settings and secrets of a stack: light enough for the webhook.

`config.toml` in the bucket is read again every quarter of a minute, so that a change needs no
deployment; the environment (the template's parameters) wins.
"""

import base64
import secrets as randomness
from collections.abc import Mapping
from functools import cached_property
from time import monotonic

from instar import config
from instar.adapters.aws.clients import Clients
from instar.adapters.aws.s3_documents import S3Documents
from instar.adapters.aws.ssm_secrets import SsmSecrets
from instar.errors import NotFound
from instar.memory.documents import CONFIG_KEY

CONFIG_SECONDS = 15.0
TOMBSTONE_KEY = "tombstone_key"


class AwsSettings:
    """What a function may know of settings and secrets."""

    def __init__(self, environ: Mapping[str, str], clients: Clients) -> None:
        self._environ = environ
        self._clients = clients
        self._config: tuple[float, str] | None = None

    def settings(self) -> config.Settings:
        """The settings in force."""
        return config.read(self._environ, self.config_text())

    def config_text(self) -> str:
        """The text of config.toml, "" when there is none."""
        now = monotonic()
        if self._config is None or self._config[0] < now:
            self._config = (now + CONFIG_SECONDS, self._read_config())
        return self._config[1]

    def secret(self, name: str) -> str | None:
        """A secret by name. Raises Unavailable when it cannot be read."""
        return self.secrets.get(name)

    @cached_property
    def secrets(self) -> SsmSecrets:
        """The stack's secrets."""
        return SsmSecrets(self._clients.ssm(), self._environ["SECRETS_PREFIX"])

    def mark_key(self) -> bytes:
        """The key of tombstone marks. Deployment makes it; a stack without one makes it here."""
        found = self.secrets.get(TOMBSTONE_KEY)
        if found is None:
            found = base64.b64encode(randomness.token_bytes(32)).decode()
            self.secrets.set(TOMBSTONE_KEY, found)
        return base64.b64decode(found)

    def _read_config(self) -> str:
        documents = S3Documents(self._clients.s3(), self._environ["DOCUMENTS_BUCKET"])
        try:
            return documents.get(CONFIG_KEY).text
        except NotFound:
            return ""
