"""The system around conversations: health, settings, doctor, webhooks, this API's description."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from instar.channels.ports import WebhookRequest
from instar.web.auth import GuardedRoute, Here, Open
from instar.web.problems import Json

router = APIRouter(route_class=GuardedRoute, tags=["system"])


class Provider(BaseModel):
    """Where models answer. Without a `key` the stored one is used, if there is one."""

    model_config = ConfigDict(extra="forbid")

    base_url: str = Field(default="", max_length=2000)
    key: str | None = Field(default=None, max_length=5000)


class ModelChoice(Provider):
    """A model by the name that its provider gives it."""

    model: str = Field(min_length=1, max_length=300)


class NewSettings(ModelChoice):
    """The settings to keep; `tools` says how the model is offered tools."""

    tools: Literal["native", "schema"] | None = None


async def _raw_body(request: Request) -> bytes:
    return await request.body()


@router.get("/v1/health")
def health(services: Open) -> dict[str, Any]:
    """Whether this server answers: `{"ok","version"}`."""
    return {"ok": True, "version": services.version}


@router.get("/v1/doctor")
def doctor(here: Here, digest: bool = False) -> dict[str, Any]:
    """What works and what does not, and what to do about it; `digest` over everything kept."""
    return dict(here.services.doctor(digest))


@router.get("/v1/settings")
def settings(here: Here) -> dict[str, Any]:
    """The settings in force, without secrets."""
    return dict(here.services.setup.current())


@router.post("/v1/settings/models")
def list_models(here: Here, provider: Provider) -> dict[str, Any]:
    """The models that a provider lists: `{"models":[…]}`."""
    return {"models": here.services.setup.models(provider.base_url, _given(provider.key))}


@router.post("/v1/settings/test")
def test_model(here: Here, choice: ModelChoice) -> dict[str, Any]:
    """Asks the model for one word: `{"ok","reply","seconds"}`."""
    return dict(here.services.setup.test(choice.model, choice.base_url, _given(choice.key)))


@router.put("/v1/settings")
def apply_settings(here: Here, new: NewSettings) -> dict[str, Any]:
    """Keeps the settings; the next turn uses them."""
    here.services.setup.apply(new.model, new.base_url, _given(new.key), new.tools)
    return dict(here.services.setup.current())


@router.post("/webhooks/{channel}/{account}")
def webhook(
    services: Open,
    request: Request,
    channel: str,
    account: str,
    body: Annotated[bytes, Depends(_raw_body)],
) -> Response:
    """A channel's platform calls; the channel verifies it."""
    call = WebhookRequest(
        account=account,
        headers={name.lower(): value for name, value in request.headers.items()},
        body=body,
        received_at=services.keyring.clock(),
    )
    status, answer = services.webhooks.call(channel, call)
    return Json(dict(answer), status_code=status)


@router.get("/openapi.json", include_in_schema=False)
def description(here: Here, request: Request) -> dict[str, Any]:
    """The description of this API."""
    described: dict[str, Any] = request.app.openapi()
    return described


def _given(key: str | None) -> str | None:
    return (key or "").strip() or None
