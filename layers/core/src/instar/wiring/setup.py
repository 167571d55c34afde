"""The page's set-up: which model answers, whether it does, what to keep."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

from instar import config
from instar.access.ports import Secrets
from instar.adapters.http import Egress
from instar.adapters.llm.openai_chat import ChatEndpoint, check_model, list_models
from instar.errors import Invalid
from instar.memory.documents import CONFIG_KEY
from instar.memory.write import Authorship, Writer
from instar.wiring.models import OPENAI_BASE_URL, owner_client

TEST_SECONDS = 30.0
KEY_NAME = "model_api_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSetup:
    """A Setup: settings go into config.toml, the key into Secrets."""

    settings: Callable[[], config.Settings]
    secret: Callable[[str], str | None]
    secrets: Secrets
    writer: Writer
    egress: Egress
    environ: Mapping[str, str]

    def current(self) -> Mapping[str, Any]:
        """See Setup."""
        choice = self.settings().models[0]
        return {
            "model": choice.name or choice.provider,
            "base_url": choice.base_url,
            "tools": choice.tools,
            "has_key": self.secret(KEY_NAME) is not None,
            "is_demo": choice.provider == "demo",
            "from_environment": bool(self.environ.get("INSTAR_MODEL")),
        }

    def models(self, base_url: str, key: str | None) -> list[str]:
        """See Setup."""
        client = owner_client(self.egress, TEST_SECONDS)
        return list(list_models(self._endpoint("", base_url, key), client))

    def test(self, model: str, base_url: str, key: str | None) -> Mapping[str, Any]:
        """See Setup."""
        started = monotonic()
        client = owner_client(self.egress, TEST_SECONDS)
        check_model(self._endpoint(model, base_url, key), client)
        return {"ok": True, "seconds": round(monotonic() - started, 2)}

    def apply(self, model: str, base_url: str, key: str | None, tools: str | None) -> None:
        """See Setup."""
        if not model.strip():
            raise Invalid("no model was chosen", fix="Choose one from the list, or name it.")
        values = {
            "model.name": f"openai-chat/{model.strip()}",
            "model.base_url": base_url.strip(),
            "model.tools": tools or "native",
        }

        def edit(text: str | None) -> str:
            changed = text or ""
            for name, value in values.items():
                changed = config.with_value(changed, name, value)
            return changed

        if key:
            self.secrets.set(KEY_NAME, key)
        self.writer.edit(CONFIG_KEY, edit, Authorship(author="owner", reason="chose a model"))

    def _endpoint(self, model: str, base_url: str, key: str | None) -> ChatEndpoint:
        return ChatEndpoint(
            model=model,
            base_url=base_url.strip() or OPENAI_BASE_URL,
            api_key=lambda: key or self.secret(KEY_NAME),
        )
