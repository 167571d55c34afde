"""Errors as problem documents (RFC 9457): what every refused request is answered with.

One place turns exceptions into answers; what is not ours is a bug and says nothing about itself.
"""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from instar.errors import InstarError, Invalid, Refused, Throttled, Unavailable

PROBLEM = "application/problem+json"
RETRY_SECONDS = 5
NOSNIFF = {"x-content-type-options": "nosniff"}  # a bug's answer passes no other layer


class PreconditionRequired(Refused):
    """A change of something that exists has to name the revision that it replaces."""

    type = "precondition_required"
    status = 428


class Misdirected(Refused):
    """The Host is none that this server answers to."""

    type = "misdirected"
    status = 421


class Problem(BaseModel):
    """How every refusal looks; `type` is a stable word, `fix` says what to do about it."""

    type: str = Field(examples=["not_found"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str
    fix: str


class Json(JSONResponse):
    """JSON as UTF-8; half a surrogate pair becomes a question mark, never an error."""

    def render(self, content: Any) -> bytes:
        """The bytes of the body."""
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def problem_response(
    error: InstarError, *, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """The answer to a request that ended in this error."""
    body = {"title": _title(error.status), "status": error.status, **error.problem()}
    return Json(
        body,
        status_code=error.status,
        headers={**NOSNIFF, **_advice(error), **(headers or {})},
        media_type=PROBLEM,
    )


def install_problems(app: FastAPI) -> None:
    """Makes every refusal and failure of the app a problem document."""
    app.add_exception_handler(InstarError, _ours)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _unexpected)


async def _ours(request: Request, error: Exception) -> Response:
    return problem_response(error) if isinstance(error, InstarError) else _bug()


async def _http(request: Request, error: Exception) -> Response:
    """What Starlette and FastAPI refuse by themselves: routes, methods, bodies."""
    if not isinstance(error, HTTPException):
        return _bug()
    path = request.url.path[:120]
    words = {
        400: ("invalid", "the body could not be read", "Send UTF-8 JSON."),
        404: ("not_found", f"there is no route {path!r}", "See /openapi.json."),
        405: ("method_not_allowed", f"{request.method} does not work on {path!r}", ""),
    }
    type, detail, fix = words.get(error.status_code, ("refused", str(error.detail), ""))
    status = 422 if error.status_code == 400 else error.status_code
    body = {"type": type, "title": _title(status), "status": status, "detail": detail, "fix": fix}
    return Json(body, status_code=status, headers=error.headers, media_type=PROBLEM)


async def _invalid(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        return _bug()
    return problem_response(invalid_request(error.errors()))


def invalid_request(found: Sequence[Any]) -> Invalid:
    """What pydantic found wrong with a request, by field; values are never repeated."""
    errors = [{"field": _field(one["loc"]), "detail": str(one["msg"])} for one in found]
    if any(one["type"] == "json_invalid" for one in found):
        errors = [{"field": "(body)", "detail": "this is not JSON"}]
    return Invalid(
        "the request does not fit: " + "; ".join(f"{e['field']}: {e['detail']}" for e in errors),
        fix="Send the fields of /openapi.json, as Content-Type: application/json.",
        extra={"errors": errors},
    )


async def _unexpected(request: Request, error: Exception) -> Response:
    return _bug()


def _bug() -> Response:
    """The server's log has the details, the answer has none."""
    return problem_response(InstarError("something went wrong in here", fix="See the log."))


def _field(location: Sequence[Any]) -> str:
    named = [str(part) for part in location[1:]]
    return ".".join(named) or "(body)"


def _title(status: int) -> str:
    return HTTPStatus(status).phrase


def _advice(error: InstarError) -> dict[str, str]:
    """Headers that tell a client what it may do next."""
    if isinstance(error, Throttled) and error.retry_after_seconds is not None:
        return {"retry-after": str(max(1, round(error.retry_after_seconds)))}
    if isinstance(error, Unavailable):
        return {"retry-after": str(RETRY_SECONDS)}
    if error.status == 401:
        return {"www-authenticate": "Bearer"}
    return {}
