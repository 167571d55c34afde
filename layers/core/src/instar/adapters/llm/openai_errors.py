"""What a chat-completions provider's refusal means for us, by vendor code first, then by status.

Messages are carried for people and never decide anything.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from instar.clock import Clock
from instar.errors import (
    ContextOverflow,
    Exhausted,
    InstarError,
    Invalid,
    Misconfigured,
    Throttled,
    Unavailable,
)

BODY_BYTES = 4096
DETAIL_CHARACTERS = 500

_CODES: Mapping[str, type[InstarError]] = {
    "context_length_exceeded": ContextOverflow,
    "exceed_context_size_error": ContextOverflow,  # llama.cpp
    "model_max_prompt_tokens_exceeded": ContextOverflow,  # GitHub
    "insufficient_quota": Exhausted,
    "billing_not_active": Exhausted,
    "billing_hard_limit_reached": Exhausted,
    "usage_limit_reached": Exhausted,
    "rate_limit_exceeded": Throttled,
    "rate_limit_error": Throttled,
    "invalid_api_key": Misconfigured,
    "authentication_error": Misconfigured,
    "model_not_found": Misconfigured,
    "server_error": Unavailable,
    "overloaded_error": Unavailable,
}
_STATUSES: Mapping[int, type[InstarError]] = {
    401: Misconfigured,
    402: Exhausted,
    403: Misconfigured,
    404: Misconfigured,
    408: Unavailable,
    413: ContextOverflow,
    425: Unavailable,
    429: Throttled,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A provider's error, parsed. `fields` are the request fields that it names as the reason."""

    status: int
    codes: tuple[str, ...]
    fields: tuple[str, ...]
    message: str
    retry_after_seconds: float | None = None

    @property
    def kind(self) -> type[InstarError]:
        """The error class for the caller."""
        for code in self.codes:
            if code in _CODES:
                return _CODES[code]
        if self.status in _STATUSES:
            return _STATUSES[self.status]
        if 300 <= self.status < 400:
            return Misconfigured
        return Invalid if 400 <= self.status < 500 else Unavailable


def parse_refusal(status: int, headers: Mapping[str, str], body: bytes, clock: Clock) -> Refusal:
    """Reads an error answer of any shape; `body` is already cut."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        parsed = body.decode("utf-8", "replace")
    refusal = refusal_in(parsed, status)
    return Refusal(
        status=status,
        codes=refusal.codes,
        fields=refusal.fields,
        message=refusal.message,
        retry_after_seconds=retry_after_seconds(headers, clock),
    )


def refusal_in(parsed: Any, status: int) -> Refusal:
    """Reads an error object, also one in the middle of a stream, whose `code` may be a status."""
    if isinstance(parsed, list) and parsed:  # Google wraps it in a list
        parsed = parsed[0]
    fields = _named_fields(parsed.get("detail")) if isinstance(parsed, Mapping) else ()
    error = parsed.get("error", parsed) if isinstance(parsed, Mapping) else parsed
    if not isinstance(error, Mapping):
        return Refusal(status=status, codes=(), fields=fields, message=_cut(error))
    codes = tuple(
        value for value in (error.get("code"), error.get("type")) if isinstance(value, str)
    )
    number = error.get("code")
    if isinstance(number, int) and not isinstance(number, bool) and 400 <= number <= 599:
        status = status if status >= 400 else number
    param = error.get("param")
    return Refusal(
        status=status,
        codes=codes,
        fields=(*fields, param) if isinstance(param, str) else fields,
        message=_cut(error.get("message") or error),
    )


def error_from(refusal: Refusal, *, model: str, key_name: str, secret: str | None) -> InstarError:
    """The exception to raise. Neither the key nor its neighbourhood gets into its text."""
    kind = refusal.kind
    said = "" if kind is Misconfigured and refusal.status in (401, 403) else refusal.message
    if secret:
        said = said.replace(secret, "…")
    code = f" ({refusal.codes[0][:80]})" if refusal.codes else ""
    detail = f"the provider of {model!r} answered {refusal.status}{code}"
    detail = f"{detail}: {said}" if said else detail
    if kind is Throttled:
        return Throttled(detail, retry_after_seconds=refusal.retry_after_seconds)
    return kind(detail, fix=_fix(refusal, model, key_name))


def retry_after_seconds(headers: Mapping[str, str], clock: Clock) -> float | None:
    """What the Retry-After header asks for, in seconds or as an HTTP date; never negative."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    seconds = _number(value)
    if seconds is not None:
        return max(0.0, seconds)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - clock()).total_seconds())


def _fix(refusal: Refusal, model: str, key_name: str) -> str:
    kind = refusal.kind
    if kind is Exhausted:
        return "Add credit or raise the limit at the provider, or choose another model."
    if kind is not Misconfigured:
        return ""
    if refusal.status == 404 or "model_not_found" in refusal.codes:
        return (
            f"Check that the provider has a model named {model!r} and that the base URL is right; "
            "most end in /v1."
        )
    if 300 <= refusal.status < 400:
        return "The base URL redirects; set the address that it leads to."
    return f"Set {key_name} to a valid key of this provider."


def _named_fields(detail: Any) -> tuple[str, ...]:
    """The fields in a pydantic-style list of problems: {"loc": ["body", "stream_options"]}."""
    entries = detail if isinstance(detail, list) else []
    return tuple(
        part
        for entry in entries
        if isinstance(entry, Mapping) and isinstance(entry.get("loc"), list)
        for part in entry["loc"]
        if isinstance(part, str)
    )


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < 1e9 else None


def _cut(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    return text if len(text) <= DETAIL_CHARACTERS else text[:DETAIL_CHARACTERS] + "…"
