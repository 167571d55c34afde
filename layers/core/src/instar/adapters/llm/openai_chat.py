"""Any model behind an OpenAI-compatible chat-completions address: OpenAI, Ollama, vLLM, llama.cpp…

The answer is streamed. What providers do differently is decided by structure, never by the words
of their messages: a refusal that names one of our optional fields is answered once with a request
without it; a history with tool calls that is refused is sent once more with ids that every provider
takes. `timeout_seconds` bounds the silence: a stream that brings nothing new for so long (comments
do not count) is given up.
"""

import json
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from instar.adapters.http import read_capped, translated
from instar.adapters.llm.openai_answer import ChatAnswer
from instar.adapters.llm.openai_errors import (
    BODY_BYTES,
    Refusal,
    error_from,
    parse_refusal,
    refusal_in,
)
from instar.adapters.llm.openai_history import chat_messages, chat_tools
from instar.adapters.llm.sse import data_of_events
from instar.adapters.well_formed import json_bytes
from instar.clock import Clock, utc_now
from instar.errors import InstarError, Invalid, Misconfigured, Unavailable
from instar.ids import MessageId, NewId, new_id
from instar.llm.collect import collect
from instar.llm.request import ModelEvent, ModelProfile, ModelRequest
from instar.messages import Message, Text

WHOLE_ANSWER_BYTES = 16_000_000
_SENDINGS = 4
_OTHER_NAMES = (
    ("max_tokens", "max_completion_tokens"),
    ("max_completion_tokens", "max_tokens"),
)


def chat_base_url(url: str) -> str:
    """The base address without trailing slashes.

    Raises Invalid when it is no http(s) address, holds credentials, or is the endpoint itself.
    """
    trimmed = url.strip().rstrip("/")
    try:
        parts = urlsplit(trimmed)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise Invalid(
            f"not an http or https address with a host: {trimmed[:200]!r}",
            fix="Use the form https://host/v1.",
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise Invalid(
            f"the base URL of {parts.hostname!r} has a user name, a query or a fragment",
            fix="Leave them out; the key is set on its own.",
        )
    base = trimmed.removesuffix("/chat/completions").rstrip("/")
    if base != trimmed:
        raise Invalid(f"{trimmed!r} is the endpoint, not the base URL", fix=base)
    return trimmed


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatEndpoint:
    """Where a model is and how it is reached. `key_name` is what errors tell people to set."""

    model: str
    base_url: str
    api_key: Callable[[], str | None] = field(default=lambda: None, repr=False)
    key_name: str = "INSTAR_MODEL_API_KEY"
    timeout_seconds: float = 60.0
    context_tokens: int = 128_000
    tools: bool = True


class OpenAIChatModel:
    """A Model. `client` comes from Egress with Trust.OWNER and the endpoint's timeout."""

    def __init__(
        self,
        endpoint: ChatEndpoint,
        client: httpx.Client,
        *,
        clock: Clock = utc_now,
        monotonic: Callable[[], float] = time.monotonic,
        new_id: NewId = new_id,
    ) -> None:
        self._endpoint = endpoint
        self._base = chat_base_url(endpoint.base_url)
        self._client = client
        self._clock = clock
        self._monotonic = monotonic
        self._new_id = new_id

    @property
    def profile(self) -> ModelProfile:
        """What the endpoint was configured with."""
        return ModelProfile(
            name=self._endpoint.model,
            context_tokens=self._endpoint.context_tokens,
            tools="native" if self._endpoint.tools else "none",
        )

    def stream(self, request: ModelRequest) -> Iterator[ModelEvent]:
        """See Model."""
        body = self._body(request)
        for sending in range(1, _SENDINGS + 1):
            refusal = yield from self._attempt(request, body)
            if refusal is None:
                return
            adjusted = _adjusted(body, refusal, request)
            if adjusted is None or sending == _SENDINGS:
                raise self._error(refusal)
            body = adjusted

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        host = urlsplit(self._base).hostname or ""
        messages = chat_messages(request, short_ids=host.endswith("mistral.ai"))
        if not any(message["role"] != "system" for message in messages):
            raise Invalid("there is no message to send to the model")
        official = host == "api.openai.com"
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_completion_tokens" if official else "max_tokens": request.max_output_tokens,
        }
        if request.tools:
            body["tools"] = chat_tools(request.tools)
        if request.response_schema is not None:
            schema = {"name": "answer", "schema": dict(request.response_schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    def _attempt(
        self, request: ModelRequest, body: Mapping[str, Any]
    ) -> Generator[ModelEvent, None, Refusal | None]:
        """One exchange: yields its events, or returns the refusal that came instead."""
        answer = ChatAnswer(request, self._new_id)
        done = False
        try:
            with (
                translated(self._provider),
                self._client.stream(
                    "POST",
                    f"{self._base}/chat/completions",
                    content=json_bytes(body),
                    headers=_headers(self._endpoint.api_key(), self._endpoint.key_name),
                ) as response,
            ):
                if response.status_code != 200:
                    return _refusal(response, self._clock)
                silence = _Silence(self._monotonic, self._endpoint.timeout_seconds)
                for chunk in _chunks(response, silence):
                    if chunk is None:
                        done = True
                        break
                    if chunk.get("error"):
                        raise self._error(refusal_in(chunk, response.status_code))
                    yield from answer.take(chunk)
                    silence.heard()
        except Unavailable:
            if not answer.is_finished:
                raise
        yield from answer.end(done=done)
        return None

    @property
    def _provider(self) -> str:
        return f"the provider of {self._endpoint.model!r}"

    def _error(self, refusal: Refusal) -> InstarError:
        return error_from(
            refusal,
            model=self._endpoint.model,
            key_name=self._endpoint.key_name,
            secret=self._endpoint.api_key(),
        )


def check_model(endpoint: ChatEndpoint, client: httpx.Client) -> None:
    """Asks the model for one token; raises what a turn would. For the page that sets models up."""
    question = Message(
        id=MessageId("check"), role="user", parts=(Text(text="Say OK."),), at=utc_now()
    )
    request = ModelRequest(system="", messages=(question,), max_output_tokens=1)
    collect(OpenAIChatModel(endpoint, client).stream(request))


def list_models(endpoint: ChatEndpoint, client: httpx.Client) -> tuple[str, ...]:
    """The names that the address offers, sorted; the endpoint's own model name is not used."""
    base = chat_base_url(endpoint.base_url)
    headers = _headers(endpoint.api_key(), endpoint.key_name)
    with (
        translated(f"the provider at {base}"),
        client.stream("GET", f"{base}/models", headers=headers) as response,
    ):
        if response.status_code != 200:
            raise error_from(
                _refusal(response, utc_now),
                model="/models",
                key_name=endpoint.key_name,
                secret=endpoint.api_key(),
            )
        listed = _loads(read_capped(response, WHOLE_ANSWER_BYTES))
    entries = listed.get("data") if isinstance(listed.get("data"), list) else listed.get("models")
    entries = entries if isinstance(entries, list) else []
    names = {entry.get("id") or entry.get("name") for entry in entries if isinstance(entry, dict)}
    return tuple(sorted(name for name in names if isinstance(name, str)))


class _Silence:
    """Bounds how long nothing new may come."""

    def __init__(self, monotonic: Callable[[], float], limit_seconds: float) -> None:
        self._monotonic = monotonic
        self._limit = limit_seconds
        self._since = monotonic()

    def heard(self) -> None:
        self._since = self._monotonic()

    def check(self) -> None:
        if self._monotonic() - self._since > self._limit:
            raise Unavailable(f"the model sent nothing new for {self._limit:g} seconds")


def _chunks(response: httpx.Response, silence: _Silence) -> Iterator[Mapping[str, Any] | None]:
    """The parsed chunks of an answer, streamed or whole; None is the provider's end marker."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "text/html":
        raise Misconfigured(
            f"{response.request.url.host!r} answered with a web page",
            fix="Check the base URL of the model; most end in /v1.",
        )
    if kind == "application/json":  # the provider does not stream
        whole = read_capped(response, WHOLE_ANSWER_BYTES)
        if not whole.lstrip().startswith(b"data:"):
            yield _loads(whole)
            return
        events = data_of_events((whole,))
    else:
        events = data_of_events(_watched(response, silence))
    for data in events:
        if data.strip() == "[DONE]":
            yield None
            return
        if data.strip():
            yield _loads(data)


def _watched(response: httpx.Response, silence: _Silence) -> Iterator[bytes]:
    for chunk in response.iter_bytes():
        silence.check()
        yield chunk


def _loads(data: str | bytes) -> Mapping[str, Any]:
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Unavailable("the provider sent something that is not JSON") from error
    if not isinstance(parsed, dict):
        raise Unavailable("the provider sent JSON that is no object")
    return parsed


def _refusal(response: httpx.Response, clock: Clock) -> Refusal:
    body = read_capped(response, BODY_BYTES, cut=True)
    return parse_refusal(response.status_code, response.headers, body, clock)


def _headers(key: str | None, key_name: str) -> dict[str, str]:
    headers = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
    key = (key or "").strip()
    if key:
        if not (key.isascii() and key.isprintable()):
            raise Misconfigured(
                "the model's key has characters that no key has", fix=f"Set {key_name} again."
            )
        headers["authorization"] = f"Bearer {key}"
    return headers


def _adjusted(
    body: Mapping[str, Any], refusal: Refusal, request: ModelRequest
) -> dict[str, Any] | None:
    """The body without what the provider refuses; None when there is nothing to leave out."""
    if refusal.kind is not Invalid:
        return None
    named = {name.partition(".")[0] for name in refusal.fields}
    if "stream_options" in named & body.keys():
        return {name: value for name, value in body.items() if name != "stream_options"}
    for old, new in _OTHER_NAMES:
        if old in named & body.keys():
            return {new if name == old else name: value for name, value in body.items()}
    short = chat_messages(request, short_ids=True)
    return {**body, "messages": short} if short != body["messages"] else None
