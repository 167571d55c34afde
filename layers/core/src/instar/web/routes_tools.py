"""Tools over HTTP: what a caller may use, and using it."""

from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Response

from instar.web.auth import GuardedRoute, Here
from instar.web.problems import Json

router = APIRouter(route_class=GuardedRoute, tags=["tools"])


@router.get("/v1/tools")
def list_tools(here: Here) -> dict[str, Any]:
    """The tools that this key may use: `{"tools":[{"name","description","parameters"}]}`."""
    return here.services.outside.tools(here.principal)


@router.post("/v1/tools/{name}")
def call_tool(
    here: Here,
    name: str,
    arguments: Annotated[Any, Body()] = None,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> Response:
    """Uses a tool; the body is its arguments: 200 `{"result","is_error","call"}`. A repeat under
    the same Idempotency-Key gets the earlier answer for 24 hours, another body under it 409.
    """
    answer = here.services.outside.call(
        here.caller.name, here.principal, name, arguments, idempotency_key
    )
    location = f"/v1/calls/{answer.body.get('call')}"
    headers = {"location": location} if answer.status == 202 else None
    return Json(dict(answer.body), status_code=answer.status, headers=headers)
