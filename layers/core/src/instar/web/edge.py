"""What surrounds every request: the Host check, a readable path, the headers that browsers obey."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from instar.errors import InstarError, Invalid
from instar.web.hosts import HostRules
from instar.web.problems import Misdirected, problem_response

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src {connect}; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True)
class Edge:
    """The outermost layer. `connect` are the origins that the page may talk to."""

    app: ASGIApp
    hosts: HostRules
    connect: Sequence[str] = ("'self'",)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Checks the request and adds headers to its answer."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if scope["type"] == "websocket":
            if refusal is None:
                await self.app(scope, receive, send)
            else:
                await receive()
                await send({"type": "websocket.close", "code": 1008, "reason": refusal.type})
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._add_headers(MutableHeaders(scope=message))
            await send(message)

        if refusal is None:
            await self.app(scope, receive, send_guarded)
        else:
            await problem_response(refusal)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> InstarError | None:
        hosts = Headers(scope=scope).getlist("host")
        if len(hosts) != 1 or not self.hosts.allows(hosts[0]):
            return Misdirected(
                "this server does not answer to that Host",
                fix="Use http://127.0.0.1, or start it with --allowed-host NAME.",
            )
        if not scope["path"].isprintable():
            return Invalid(
                "the path holds characters that no name has", fix="Take out control characters."
            )
        return None

    def _add_headers(self, headers: MutableHeaders) -> None:
        headers["content-security-policy"] = POLICY.format(connect=" ".join(self.connect))
        headers["x-content-type-options"] = "nosniff"
        headers["referrer-policy"] = "no-referrer"
        headers["x-frame-options"] = "DENY"
        headers["cross-origin-opener-policy"] = "same-origin"
        headers["cross-origin-resource-policy"] = "same-origin"
        headers.setdefault("cache-control", "no-store")
