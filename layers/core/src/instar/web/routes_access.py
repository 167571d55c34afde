"""Getting in: the set-up code, browser sessions, API keys. The owner's alone but for the code."""

from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from instar.access.keyring import SETUP
from instar.access.ports import StoredKey
from instar.web.auth import (
    GuardedRoute,
    Here,
    Open,
    begin_browser,
    end_browser,
    require_own_origin,
)
from instar.web.problems import Json

router = APIRouter(route_class=GuardedRoute, tags=["access"])


class SetupCode(BaseModel):
    """The code of the set-up link."""

    model_config = ConfigDict(extra="forbid")

    code: str = Field(max_length=200)


class NewKey(BaseModel):
    """What a key may do; `tools` narrows it to those."""

    model_config = ConfigDict(extra="forbid")

    scopes: list[str] = Field(max_length=50)
    tools: list[str] | None = Field(default=None, max_length=200)


@router.post("/v1/setup")
def redeem_setup_code(services: Open, request: Request, setup: SetupCode) -> Response:
    """Trades the one-time code of the set-up link for a browser session (a cookie)."""
    if "origin" in request.headers:
        require_own_origin(request)
    services.keyring.redeem(SETUP, setup.code.strip())
    return _signed_in(services, request)


@router.post("/v1/login")
def log_in(here: Here, request: Request) -> Response:
    """Trades an owner's key for a browser session (a cookie)."""
    return _signed_in(here.services, request)


@router.post("/v1/logout")
def log_out(here: Here, request: Request) -> Response:
    """Ends the browser's session; its open sockets close."""
    response = Json({"signed_in": False})
    end_browser(here.services, request, response)
    return response


@router.get("/v1/keys")
def list_keys(here: Here) -> dict[str, Any]:
    """All keys, without what makes them keys."""
    return {"keys": [_row(key) for key in here.services.keyring.keys.list()]}


@router.post("/v1/keys", status_code=201)
def create_key(here: Here, wanted: NewKey) -> dict[str, Any]:
    """A new key: `{"key","id","scopes","tools"}`, shown this once."""
    key, row = here.services.keyring.create(wanted.scopes, wanted.tools)
    return {"key": key, **_row(row)}


@router.delete("/v1/keys/{key}")
def revoke_key(here: Here, key: str) -> dict[str, Any]:
    """Revokes the key of that id."""
    here.services.keyring.keys.revoke(key)
    return {"id": key, "revoked": True}


def _signed_in(services: Open, request: Request) -> Response:
    response = Json({"signed_in": True})
    begin_browser(services, request, response)
    return response


def _row(key: StoredKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "scopes": sorted(key.scopes),
        "tools": None if key.tools is None else sorted(key.tools),
        "created_at": key.created_at.isoformat(),
        "revoked": key.revoked,
    }
