"""Small local HTTP servers that replay wire formats: what tests put behind the real adapters.

`ScriptedModelServer` plays one step per call and fails the test on a call too many and on a step
too few; `BotApiServer` records what is sent to a Telegram-like Bot API. Both listen on loopback, on
a port of their own, one thread per connection.
"""

import json
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

EVENT_STREAM = "text/event-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """A request as it came; header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body parsed."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Pause:
    """Between two chunks: wait until released, or for so many seconds."""

    until: threading.Event | None = None
    seconds: float = 10.0

    def wait(self, closing: threading.Event) -> None:
        """Waits; a closing server ends it."""
        if self.until is None:
            closing.wait(self.seconds)
            return
        for _ in range(int(self.seconds * 20)):
            if self.until.wait(0.05) or closing.is_set():
                return


class Abort:
    """Instead of a chunk: the connection breaks here."""


Chunk = bytes | Pause | Abort


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One answer. `check` may raise AssertionError about the request; `hold` delays all of it."""

    chunks: Sequence[Chunk] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": EVENT_STREAM})
    check: Callable[[WireRequest], None] | None = None
    hold: threading.Event | None = None


class LocalServer:
    """A loopback server around one function from request to answer; a context manager."""

    def __init__(self, answer: Callable[[WireRequest], Step]) -> None:
        self.closing = threading.Event()
        self._server = _Server(answer, self.closing)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    @property
    def url(self) -> str:
        """The address, without a trailing slash."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class ScriptedModelServer(LocalServer):
    """Plays its steps in order at any path below `/v1`; `requests` holds what came.

    Leaving the `with` block raises AssertionError for a failed check, an unexpected call or a step
    that nobody asked for, unless the block itself raised.
    """

    def __init__(self, *steps: Step) -> None:
        super().__init__(self._play)
        self.requests: list[WireRequest] = []
        self.problems: list[str] = []
        self._steps = list(steps)
        self._lock = threading.Lock()

    @property
    def base_url(self) -> str:
        """What INSTAR_MODEL_BASE_URL would be."""
        return f"{self.url}/v1"

    def add(self, *steps: Step) -> None:
        """Appends steps while the server runs."""
        with self._lock:
            self._steps.extend(steps)

    def verify(self) -> None:
        """Raises AssertionError when the script and what happened differ."""
        with self._lock:
            problems = list(self.problems)
            if self._steps:
                problems.append(f"{len(self._steps)} steps were never asked for")
        if problems:
            raise AssertionError("; ".join(problems))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        if error is None:
            self.verify()

    def _play(self, request: WireRequest) -> Step:
        with self._lock:
            self.requests.append(request)
            step = self._steps.pop(0) if self._steps else None
            if step is None:
                self.problems.append(f"unexpected call {len(self.requests)}: {request.path}")
                return error_step(500, message="the script has no step for this call")
        try:
            if step.check is not None:
                step.check(request)
        except AssertionError as failure:
            with self._lock:
                self.problems.append(f"call {len(self.requests)}: {failure}")
            return error_step(500, message="the script's check failed")
        return step


class BotApiServer(LocalServer):
    """Records the Bot API calls at `/bot<token>/<method>` and answers well, or from `failures`."""

    def __init__(self, *failures: Step | None) -> None:
        super().__init__(self._answer)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.paths: list[str] = []
        self._failures = list(failures)
        self._lock = threading.Lock()

    @property
    def sent(self) -> list[dict[str, Any]]:
        """The bodies of sendMessage calls that were answered well."""
        return [body for method, body in self.calls if method == "sendMessage"]

    def fail(self, *failures: Step | None) -> None:
        """Appends answers for the next calls; None is a good one."""
        with self._lock:
            self._failures.extend(failures)

    def _answer(self, request: WireRequest) -> Step:
        method = request.path.rpartition("/")[2]
        with self._lock:
            self.paths.append(request.path)
            failure = self._failures.pop(0) if self._failures else None
            if failure is not None:
                if failure.check is not None:
                    failure.check(request)
                return failure
            self.calls.append((method, request.json()))
            number = len(self.calls)
        return json_step({"ok": True, "result": {"message_id": number}})


def bot_error(status: int, **parameters: Any) -> Step:
    """The Bot API's way to refuse, for example `bot_error(429, retry_after=33)`."""
    body: dict[str, Any] = {"ok": False, "error_code": status, "description": "scripted"}
    if parameters:
        body["parameters"] = parameters
    return json_step(body, status=status)


def cut_step() -> Step:
    """The request is read and the connection breaks without an answer."""
    return Step(status=0)


def json_step(
    body: Any, *, status: int = 200, check: Callable[[WireRequest], None] | None = None
) -> Step:
    """A whole JSON answer."""
    return Step(
        chunks=(json.dumps(body).encode(),),
        status=status,
        headers={"content-type": "application/json"},
        check=check,
    )


def error_step(
    status: int,
    *,
    code: str | None = None,
    type: str | None = None,
    param: str | None = None,
    message: str = "scripted",
    headers: Mapping[str, str] | None = None,
) -> Step:
    """A provider's refusal with the fields that OpenAI uses."""
    error = {"message": message, "type": type, "code": code, "param": param}
    return Step(
        chunks=(json.dumps({"error": error}).encode(),),
        status=status,
        headers={"content-type": "application/json", **(headers or {})},
    )


def sse(*objects: Any, done: bool = True) -> bytes:
    """Server-sent events, one per object, and the end marker."""
    events = [f"data: {json.dumps(item, ensure_ascii=False)}\n\n" for item in objects]
    return "".join([*events, "data: [DONE]\n\n" if done else ""]).encode()


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """One chunk of a chat completion."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }


def usage(read: int, written: int, *, cached: int = 0) -> dict[str, Any]:
    """The chunk that carries the counts."""
    return {
        "choices": [],
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
    }


def call_delta(index: int | None, **fields: Any) -> dict[str, Any]:
    """A fragment of a tool call: `id`, `name`, `arguments`, each if given."""
    function = {name: fields[name] for name in ("name", "arguments") if name in fields}
    entry: dict[str, Any] = {"type": "function", "function": function}
    if index is not None:
        entry["index"] = index
    if "id" in fields:
        entry["id"] = fields["id"]
    return delta(tool_calls=[entry])


def text_step(text: str, *, check: Callable[[WireRequest], None] | None = None) -> Step:
    """A model that answers with this text, word by word."""
    words = text.split(" ")
    pieces = [word if n == 0 else f" {word}" for n, word in enumerate(words)]
    deltas = [delta(content=piece) for piece in pieces]
    return Step(chunks=(sse(*deltas, delta("stop"), usage(10, len(words))),), check=check)


def tool_step(
    *calls: tuple[str, Mapping[str, Any]],
    text: str = "",
    check: Callable[[WireRequest], None] | None = None,
) -> Step:
    """A model that calls these tools: (name, arguments) pairs, ids `call_1`, `call_2`…"""
    deltas = [delta(content=text)] if text else []
    for number, (name, arguments) in enumerate(calls):
        deltas.append(call_delta(number, id=f"call_{number + 1}", name=name, arguments=""))
        deltas.append(call_delta(number, arguments=json.dumps(arguments)))
    return Step(chunks=(sse(*deltas, delta("tool_calls"), usage(10, 5)),), check=check)


def cut_stream_step(text: str) -> Step:
    """A model whose connection breaks after this text."""
    return Step(chunks=(sse(delta(content=text), done=False), Abort()))


class _Server(ThreadingHTTPServer):
    """Carries what its handlers need."""

    daemon_threads = True

    def __init__(self, answer: Callable[[WireRequest], Step], closing: threading.Event) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.closing = closing


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def _serve(self) -> None:
        self.close_connection = True
        length = int(self.headers.get("content-length") or 0)
        request = WireRequest(
            method=self.command,
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(length),
        )
        with suppress(OSError):  # a client may hang up
            self._write(self.server.answer(request))

    def _write(self, step: Step) -> None:
        if step.hold is not None:
            Pause(until=step.hold).wait(self.server.closing)
        if step.status == 0:
            self._break()
            return
        self.send_response(step.status)
        for name, value in step.headers.items():
            self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.send_header("connection", "close")
        self.end_headers()
        for chunk in step.chunks:
            if isinstance(chunk, Pause):
                chunk.wait(self.server.closing)
            elif isinstance(chunk, Abort):
                self._break()
                return
            elif chunk:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def _break(self) -> None:
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
