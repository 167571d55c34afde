"""The HTTP edge as an app: routes in front, use cases behind, nothing else in between.

Edge (Host, path, headers) -> GuardedRoute (table of scopes, credential) -> endpoint -> use case
                                                                         └> problem document
"""

from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI

from instar.web import (
    page,
    routes_access,
    routes_memory,
    routes_sessions,
    routes_system,
    routes_tools,
    socket,
)
from instar.web.edge import Edge
from instar.web.hosts import HostRules
from instar.web.problems import Json, Problem, install_problems
from instar.web.services import Services

DESCRIPTION = """A personal agent that remembers in documents its owner can read and undo.

Every route but `/v1/health`, `/v1/setup` and the signed webhooks needs `Authorization: Bearer KEY`
(`instar key create --scopes …`) or the page's session. `?agent=NAME` chooses another agent of the
owner. Refusals are problem documents `{"type","title","status","detail","fix"}`; `type` is stable.
The socket at the address of `POST /v1/ticket` takes `{"kind":"message","session","text","id"}`,
`{"kind":"resume","session","after"}` and `{"kind":"stop","session"}`; it sends the events of
`/v1/sessions/{session}/events`, and `{"kind":"error",…}` for a frame that it refuses.
"""
REFUSALS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": Problem, "description": "Refused: what is wrong, and what to do."},
    "422": {"model": Problem, "description": "Invalid; `errors` names the fields."},
    "5XX": {"model": Problem, "description": "Failed: repeat it later."},
}


def create_app(services: Services, *, hosts: HostRules | None = None) -> FastAPI:
    """The app over these use cases, answering to this machine's names and those of `hosts`."""
    app = FastAPI(
        title="Instar",
        version=services.version,
        description=DESCRIPTION,
        default_response_class=Json,
        responses=REFUSALS,
        redirect_slashes=False,
        openapi_url=None,
    )
    app.state.services = services
    app.state.assets = page.load_assets()
    install_problems(app)
    for routes in (
        page,
        routes_access,
        routes_sessions,
        routes_tools,
        routes_memory,
        routes_system,
        socket,
    ):
        app.include_router(routes.router)
    app.add_middleware(Edge, hosts=hosts or HostRules(), connect=_connect(services))
    return app


def _connect(services: Services) -> tuple[str, ...]:
    """Where the page may connect to: its own origin, and a socket's elsewhere (the cloud)."""
    parts = urlsplit(services.socket_url())
    return ("'self'", f"{parts.scheme}://{parts.netloc}") if parts.netloc else ("'self'",)
