"""The one way out: HTTP clients that connect only to addresses they have checked.

`Trust.OWNER` is for addresses that the owner configured (a model, a home server): loopback and
private networks are fine, cloud metadata is not. `Trust.OUTSIDE` is for addresses from a model, a
tool argument, a page or a payload: every address behind the name must be public. In both cases the
connection goes to the very address that was checked, on every hop of a redirect; a client for the
owner's addresses follows none. Proxies of the environment are not used: they would connect for us.
Foreign errors are translated here, by class, apart from what a status means to one vendor.
"""

import json
import logging
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

import httpx

from instar.adapters.addresses import is_odd_number, is_permitted_for_owner, is_public
from instar.adapters.channels.posting import Answer, Post
from instar.channels.outcomes import Uncertain
from instar.errors import Forbidden, Invalid, TooLarge, Unavailable

MAX_REDIRECTS = 3
CONNECT_SECONDS = 10.0
ANSWER_BYTES = 1_000_000

Resolve = Callable[[str, int], Sequence[str]]


class Trust(Enum):
    """Who named the address."""

    OWNER = "owner"
    OUTSIDE = "outside"


class Interrupted(Unavailable):
    """The connection broke after the request went out: it may have been received."""


def resolve_by_system(host: str, port: int) -> Sequence[str]:
    """All addresses of the host, in the system's order. Raises Unavailable when it has none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unavailable(f"the host {host!r} has no address") from error
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True, slots=True)
class Egress:
    """Makes clients. Hosts in `exceptions` (set by the owner, by name) count as the owner's."""

    resolve: Resolve = resolve_by_system
    exceptions: frozenset[str] = frozenset()
    transport: Callable[[], httpx.BaseTransport] = httpx.HTTPTransport

    def check(self, url: str, trust: Trust) -> tuple[str, ...]:
        """The addresses that a request to this URL may connect to.

        Raises Invalid for what is no http(s) URL, Forbidden when one address is not allowed,
        Unavailable when there is none.
        """
        try:
            return self.addresses(httpx.URL(url), trust)
        except httpx.InvalidURL as error:
            if is_odd_number(_host_of(url)):
                raise Forbidden(f"{url[:200]!r} is not a usual way to write an address") from error
            raise Invalid(f"not a URL: {url[:200]!r}") from error

    def addresses(self, url: httpx.URL, trust: Trust) -> tuple[str, ...]:
        """The same for a parsed URL."""
        host = url.host.rstrip(".").lower()
        if url.scheme not in ("http", "https") or not host:
            raise Invalid(f"not an http or https address: {str(url.copy_with(userinfo=b''))!r}")
        if trust is Trust.OUTSIDE and url.userinfo:
            raise Forbidden(f"an address with a user name before {host!r} is refused")
        if is_odd_number(host):
            raise Forbidden(f"{host!r} is not a usual way to write an address")
        port = url.port or (443 if url.scheme == "https" else 80)
        found = tuple(self.resolve(host, port))
        if not found:
            raise Unavailable(f"the host {host!r} has no address")
        outside = trust is Trust.OUTSIDE and host not in self.exceptions
        for address in found:
            if not (is_public(address) if outside else is_permitted_for_owner(address)):
                raise Forbidden(
                    f"{host!r} leads to {address}, which is not allowed",
                    fix="Only public addresses can be reached from here."
                    if outside
                    else "Link-local and metadata addresses are never reached.",
                )
        return found

    def client(self, trust: Trust, *, timeout_seconds: float) -> httpx.Client:
        """A client (thread-safe, to be closed) whose every request is checked and pinned.

        `timeout_seconds` bounds each wait for bytes, not the whole exchange.
        """
        for name in ("httpx", "httpcore"):  # they log whole URLs, and a bot's token is part of one
            logging.getLogger(name).setLevel(logging.WARNING)
        return httpx.Client(
            transport=PinnedTransport(self, trust),
            timeout=httpx.Timeout(timeout_seconds, connect=min(CONNECT_SECONDS, timeout_seconds)),
            follow_redirects=trust is Trust.OUTSIDE,
            max_redirects=MAX_REDIRECTS,
            trust_env=False,
            headers={"user-agent": "instar"},
        )


class PinnedTransport(httpx.BaseTransport):
    """Resolves, checks, and connects to the checked address; names stay in Host and TLS.

    One pool per host name, because a pool keys connections by address: two names on one address
    must not share a TLS connection that was verified for only one of them.
    """

    def __init__(self, egress: Egress, trust: Trust) -> None:
        self._egress = egress
        self._trust = trust
        self._pools: dict[str, httpx.BaseTransport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Tries the checked addresses in order until one accepts the connection."""
        addresses = self._egress.addresses(request.url, self._trust)
        host = request.url.host
        pool = self._pools.setdefault(host, self._egress.transport())
        refused: httpx.TransportError | None = None
        for address in addresses:
            pinned = httpx.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
            try:
                return pool.handle_request(pinned)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                refused = error
        raise refused or httpx.ConnectError("no address", request=request)

    def close(self) -> None:
        """Closes all connections."""
        for pool in self._pools.values():
            pool.close()


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turns httpx's errors into ours; `what` names the other side, without secrets.

    Raises Unavailable when nothing was sent, Interrupted when the request may have been received.
    """
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        raise Unavailable(f"{what} cannot be reached ({type(error).__name__})") from error
    except (httpx.UnsupportedProtocol, httpx.InvalidURL, httpx.LocalProtocolError) as error:
        raise Invalid(f"{what}: not a request that can be sent ({type(error).__name__})") from error
    except httpx.TooManyRedirects as error:
        raise Invalid(f"{what} redirects more than {MAX_REDIRECTS} times") from error
    except httpx.RequestError as error:
        raise Interrupted(f"{what} broke off ({type(error).__name__})") from error


def read_capped(response: httpx.Response, limit_bytes: int, *, cut: bool = False) -> bytes:
    """The body up to a limit; beyond it, cut or refused with TooLarge."""
    read = bytearray()
    for chunk in response.iter_bytes():
        read += chunk
        if len(read) > limit_bytes:
            if cut:
                return bytes(read[:limit_bytes])
            raise TooLarge(f"the answer is larger than {limit_bytes} bytes")
    return bytes(read)


def json_post(client: Callable[[], httpx.Client]) -> Post:
    """A function that posts JSON once and returns the answer, whatever its status.

    It raises Unavailable when nothing went out and Uncertain when the request may have arrived.
    """

    def post(url: str, body: Mapping[str, Any]) -> Answer:
        what = "the channel's server"
        try:
            with translated(what), client() as opened, opened.stream("POST", url, json=body) as got:
                raw = read_capped(got, ANSWER_BYTES, cut=True)
        except Interrupted as error:
            raise Uncertain(f"{what} may have received the message: {error.detail}") from error
        return Answer(status=got.status_code, body=_object(raw))

    return post


def _host_of(url: str) -> str:
    """The host of what httpx does not take for a URL; blank when it is none at all."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _object(raw: bytes) -> Mapping[str, Any]:
    """A JSON object; an empty one when the answer is a proxy's page or nothing at all."""
    try:
        parsed = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}
