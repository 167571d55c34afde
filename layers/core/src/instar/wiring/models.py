"""Settings become a model: one adapter a choice, wrapped in retries, in a fallback over choices."""

import random
from collections.abc import Callable

import httpx

from instar.adapters.http import Egress, Trust
from instar.adapters.llm.demo import DemoModel
from instar.adapters.llm.openai_chat import ChatEndpoint, OpenAIChatModel
from instar.clock import sleep, utc_now
from instar.config import ModelChoice, Settings
from instar.errors import Misconfigured
from instar.ids import new_id
from instar.llm.ports import Model
from instar.llm.schema_tools import SchemaTools
from instar.llm.wrappers import Fallback, Retrying

OPENAI_BASE_URL = "https://api.openai.com/v1"
Secret = Callable[[str], str | None]


class ModelSource:
    """The model of the settings in force, built anew only when they change."""

    def __init__(self, settings: Callable[[], Settings], secret: Secret, egress: Egress) -> None:
        self._settings = settings
        self._secret = secret
        self._egress = egress
        self._built: tuple[Settings, Model] | None = None

    def model(self) -> Model:
        """The model to ask now. Raises Misconfigured."""
        settings = self._settings()
        built = self._built
        if built is None or built[0] != settings:
            built = self._built = (settings, build_model(settings, self._secret, self._egress))
        return built[1]


def build_model(settings: Settings, secret: Secret, egress: Egress) -> Model:
    """The model of these settings. Raises Misconfigured for a provider that is not built in."""
    models = [_retrying(_model(choice, secret, egress)) for choice in settings.models]
    return models[0] if len(models) == 1 else Fallback(models)


def endpoint_of(choice: ModelChoice, secret: Secret) -> ChatEndpoint:
    """How to reach an OpenAI-compatible choice."""
    return ChatEndpoint(
        model=choice.name,
        base_url=choice.base_url or OPENAI_BASE_URL,
        api_key=lambda: secret(choice.key_name),
        key_name=choice.key_variable,
        timeout_seconds=choice.timeout_seconds,
        context_tokens=choice.context_tokens,
        tools=choice.tools == "native",
    )


def owner_client(egress: Egress, timeout_seconds: float) -> httpx.Client:
    """A client for addresses that the owner configured."""
    return egress.client(Trust.OWNER, timeout_seconds=timeout_seconds)


def _model(choice: ModelChoice, secret: Secret, egress: Egress) -> Model:
    if choice.provider == "demo":
        return DemoModel()
    if choice.provider != "openai-chat":
        raise Misconfigured(
            f"the provider {choice.provider!r} is not built into this version",
            fix="Use openai-chat/NAME with INSTAR_MODEL_BASE_URL: most providers offer it.",
        )
    client = owner_client(egress, choice.timeout_seconds)
    model = OpenAIChatModel(endpoint_of(choice, secret), client)
    return SchemaTools(model, new_id=new_id) if choice.tools == "schema" else model


def _retrying(model: Model) -> Model:
    return Retrying(model, clock=utc_now, sleep=sleep, random=random.random)
