"""Who is calling: every route goes through `GuardedRoute`, before its body is looked at.

    route -> its scopes (none: refused) -> key or browser session -> scope -> endpoint

A key comes as `Authorization: Bearer KEY`, never in a URL. A browser session comes as a cookie and
opens unsafe methods only to requests whose Origin is this server.
"""

from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection
from starlette.responses import Response

from instar.access.keyring import BROWSER, LIFETIMES, TICKET, Caller
from instar.access.tokens import digest_of
from instar.errors import Forbidden, Invalid, TooLarge, Unauthenticated
from instar.ids import AgentId, agent_id
from instar.principal import Principal
from instar.web.hosts import is_same_origin
from instar.web.scopes import OPEN, needed_scopes, opens
from instar.web.services import Services

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
COOKIE = "instar_session"
BODY_BYTES = 1_048_576


class BoundedRequest(Request):
    """A request whose body is read up to a limit, whatever its headers say."""

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """The body's pieces. Raises TooLarge."""
        size = 0
        async for piece in super().stream():
            size += len(piece)
            if size > BODY_BYTES:
                raise TooLarge(
                    f"the body is too large; at most {BODY_BYTES:,} bytes fit",
                    fix="Send it in parts.",
                )
            yield piece


class GuardedRoute(APIRoute):
    """A route that nobody reaches whom the table of scopes does not let in."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The endpoint behind the guard."""
        endpoint = super().get_route_handler()
        path = self.path

        async def guarded(request: Request) -> Response:
            bounded = BoundedRequest(request.scope, request.receive)
            bounded.state.caller = await run_in_threadpool(_admitted, bounded, path)
            _check_charset(await bounded.body(), bounded)
            return await endpoint(bounded)

        return guarded


@dataclass(frozen=True, slots=True)
class Call:
    """What an endpoint works with: the use cases, and who is asking."""

    services: Services
    caller: Caller

    @property
    def principal(self) -> Principal:
        """Who is asking, as tools and memory see it."""
        return self.caller.principal


async def _call(request: Request) -> Call:
    return Call(request.app.state.services, request.state.caller)


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


Here = Annotated[Call, Depends(_call)]
Open = Annotated[Services, Depends(_services)]


def _admitted(request: Request, path: str) -> Caller | None:
    """The caller, None on an open route. Raises Unauthenticated, Forbidden."""
    needed = needed_scopes(request.method, path)
    if needed is None:
        raise Forbidden(f"nobody may call {request.method} {path}")
    if needed == OPEN:
        return None
    caller = _caller(request)
    if not opens(caller.scopes, needed):
        raise Forbidden(
            f"{request.method} {path} needs the scope {' or '.join(sorted(needed))}",
            fix="Use a key that has it: `instar key create --scopes …`.",
        )
    return caller


def _caller(request: Request) -> Caller:
    services: Services = request.app.state.services
    agent = _agent(request, services)
    header = request.headers.get("authorization")
    if header is not None:
        scheme, _, key = header.partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthenticated("the Authorization is none of ours", fix="Send Bearer KEY.")
        return services.keyring.caller_of_key(key.strip(), agent)
    token = request.cookies.get(cookie_name(request))
    if token is None:
        raise Unauthenticated(
            "this needs a key or a browser session",
            fix="Send Authorization: Bearer KEY, or open the set-up link.",
        )
    caller = services.keyring.caller_of_browser(token, agent)
    if request.method not in SAFE_METHODS:
        require_own_origin(request)
    return caller


def _agent(request: Request, services: Services) -> AgentId:
    """The agent that the caller asks for: one of the owner's own, so a parameter may name it."""
    named = request.query_params.get("agent")
    return services.agent if named is None else agent_id(named)


def require_own_origin(connection: HTTPConnection) -> None:
    """Raises Forbidden unless the browser says that the page asking is our own."""
    origin = connection.headers.get("origin", "")
    if not is_same_origin(origin, connection.headers.get("host", "")):
        raise Forbidden(
            f"a request from {origin[:80]!r} is not from this page",
            fix="Use the page that this server serves, or a key.",
        )


def _check_charset(body: bytes, request: Request) -> None:
    """JSON is UTF-8; anything else is refused as such, not as a failure to read it."""
    if "json" not in request.headers.get("content-type", ""):
        return
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise Invalid(
            f"the body is not UTF-8 (byte {error.start})",
            fix="Send JSON in UTF-8.",
            extra={"errors": [{"field": "(body)", "detail": "this is not UTF-8"}]},
        ) from error


# --- browser sessions -----------------------------------------------------------------------


def cookie_name(connection: HTTPConnection) -> str:
    """One cookie a port: browsers send cookies to every port of a host."""
    port = connection.headers.get("host", "").rpartition(":")[2]
    return f"{COOKIE}_{port}" if port.isdigit() else COOKIE


def begin_browser(services: Services, request: Request, response: Response) -> None:
    """Gives the browser a session that no script can read and no other site can use."""
    response.set_cookie(
        cookie_name(request),
        services.keyring.grant(BROWSER),
        max_age=int(LIFETIMES[BROWSER].total_seconds()),
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


def end_browser(services: Services, request: Request, response: Response) -> None:
    """Ends the browser's session, here and in the browser."""
    name = cookie_name(request)
    services.keyring.end_browser(request.cookies.get(name, ""))
    response.delete_cookie(name, path="/", httponly=True, samesite="strict")


# --- tickets of sockets ---------------------------------------------------------------------


def ticket_for(caller: Caller, services: Services, request: Request) -> str:
    """A ticket of a single use that opens a socket for this caller."""
    token = request.cookies.get(cookie_name(request), "")
    data = {
        "name": caller.name,
        "scopes": " ".join(sorted(caller.scopes)),
        "principal": caller.principal.model_dump_json(),
        "browser": digest_of(token) if caller.name == "browser" else "",
    }
    return services.keyring.grant(TICKET, data)


@dataclass(frozen=True, slots=True)
class TicketHolder:
    """Who came with a ticket. A socket stays open for long, so `check` asks again."""

    caller: Caller
    browser: str

    @classmethod
    def of(cls, data: Mapping[str, str]) -> "TicketHolder":
        """The holder of a redeemed ticket."""
        principal = Principal.model_validate_json(data["principal"])
        scopes = frozenset(data["scopes"].split())
        return cls(Caller(name=data["name"], scopes=scopes, principal=principal), data["browser"])

    def check(self, services: Services) -> None:
        """Raises Unauthenticated when the key was revoked or the browser session ended."""
        keyring = services.keyring
        if self.browser:
            stands = keyring.grants.get(BROWSER, self.browser) is not None
        else:
            key = keyring.keys.find(self.caller.name.removeprefix("key:"))
            stands = key is not None and not key.revoked
        if not stands:
            raise Unauthenticated("the key or session of this socket has ended")
