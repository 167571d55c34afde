"""The command line's operations on a running Instar, over its HTTP API with a key."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from instar.errors import (
    Conflict,
    Forbidden,
    Forgotten,
    InstarError,
    Invalid,
    NotFound,
    Throttled,
    Unauthenticated,
    Unavailable,
)

CHAT_WAIT_SECONDS = 25
_BY_STATUS: Mapping[int, type[InstarError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    429: Throttled,
    503: Unavailable,
}
_BY_TYPE: Mapping[str, type[InstarError]] = {
    error.type: error
    for error in (Conflict, Forbidden, Forgotten, Invalid, NotFound, Unauthenticated, Unavailable)
}
Request = tuple[str, str, Mapping[str, Any] | None]


class Told(InstarError):
    """A problem that the server told; its type word is kept."""

    def __init__(self, problem: Mapping[str, Any], status: int) -> None:
        known = {"type", "title", "status", "detail", "fix"}
        extra = {key: value for key, value in problem.items() if key not in known}
        super().__init__(
            str(problem.get("detail", f"the server answered {status}")),
            fix=str(problem.get("fix", "")),
            extra=extra,
        )
        fallback = _BY_STATUS.get(status, Invalid if status < 500 else Unavailable).type
        self._type = str(problem.get("type", fallback))

    def problem(self) -> dict[str, Any]:
        """The problem with the server's own type word."""
        return {**super().problem(), "type": self._type}


@dataclass(frozen=True, slots=True)
class UrlDoor:
    """A Door. `client` carries base address and key."""

    client: httpx.Client

    def call(self, operation: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """See Door."""
        build = _REQUESTS.get(operation)
        if build is None:
            raise Invalid(
                f"{operation!r} is not offered over --url", fix="Run it on the home itself."
            )
        method, path, body = build(dict(arguments))
        answer = self._send(method, path, body)
        return _unwrapped(operation, answer)

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        try:
            response = self.client.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise Unavailable(
                f"{self.client.base_url} cannot be reached: {type(error).__name__}",
                fix="Check the address, and that Instar runs there.",
            ) from error
        try:
            answer = response.json()
        except ValueError:
            answer = {}
        if response.is_success and isinstance(answer, dict):
            return answer
        raise Told(answer if isinstance(answer, dict) else {}, response.status_code)


def _unwrapped(operation: str, answer: dict[str, Any]) -> dict[str, Any]:
    """The result of a tool call; a refusal in it becomes the error that it is."""
    if "is_error" not in answer or "result" not in answer:
        return answer
    if answer["is_error"]:
        raise Told(answer["result"], _BY_TYPE.get(answer["result"].get("type"), Invalid).status)
    return dict(answer["result"])


def _tool(name: str, *, drops: tuple[str, ...] = ()) -> Callable[[dict[str, Any]], Request]:
    def build(arguments: dict[str, Any]) -> Request:
        if arguments.get("unforget"):
            raise Invalid(
                "a tombstone is not lifted over a tool call", fix="Run it on the home itself."
            )
        body = {k: v for k, v in arguments.items() if v is not None and k not in drops}
        return "POST", f"/v1/tools/{name}", body

    return build


def _document(suffix: str) -> Callable[[dict[str, Any]], Request]:
    def build(arguments: dict[str, Any]) -> Request:
        path = quote(arguments.pop("document"), safe="/")
        query = "&".join(f"{k}={quote(str(v))}" for k, v in arguments.items() if v is not None)
        return "GET", f"/v1/documents/{path}{suffix}" + (f"?{query}" if query else ""), None

    return build


def _chat(arguments: dict[str, Any]) -> Request:
    session = quote(arguments["session"], safe="")
    path = f"/v1/sessions/{session}/messages?wait={CHAT_WAIT_SECONDS}"
    return "POST", path, {"text": arguments["text"]}


_REQUESTS: Mapping[str, Callable[[dict[str, Any]], Request]] = {
    "memory.save": _tool("memory_save", drops=("unforget",)),
    "memory.search": _tool("memory_search"),
    "memory.get": _tool("memory_get"),
    "memory.delete": _tool("memory_delete"),
    "memory.history": _tool("memory_history"),
    "memory.restore": _tool("memory_restore"),
    "memory.diff": _document("/diff"),
    "chat.send": _chat,
    "session.list": lambda _: ("GET", "/v1/sessions", None),
    "session.show": lambda a: (
        "GET",
        f"/v1/sessions/{quote(a['session'], safe='')}?full={str(a['full']).lower()}",
        None,
    ),
    "turn.show": lambda a: ("GET", f"/v1/turns/{quote(a['turn'], safe='')}", None),
    "key.create": lambda a: ("POST", "/v1/keys", a),
    "key.list": lambda _: ("GET", "/v1/keys", None),
    "key.revoke": lambda a: ("DELETE", f"/v1/keys/{quote(a['id'], safe='')}", None),
    "doctor": lambda a: ("GET", f"/v1/doctor?digest={str(a['digest']).lower()}", None),
}
