"""HTTP for the functions that do without FastAPI: body and key of an event, JSON answers."""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from instar.errors import InstarError, Invalid, NotFound, TooLarge, Unauthenticated

BODY_BYTES = 1_048_576


def body_of(event: APIGatewayProxyEventV2) -> bytes:
    """The body's bytes as they were sent: API Gateway wraps forms and binaries in base64."""
    body = event.body or ""
    if not event.is_base64_encoded:
        return body.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(body)
    except (binascii.Error, ValueError) as error:
        raise Invalid("the body is not what API Gateway says it is") from error


def json_of(event: APIGatewayProxyEventV2) -> Any:
    """The body as JSON, whatever its content type says. Raises Invalid, TooLarge."""
    body = body_of(event)
    if len(body) > BODY_BYTES:
        raise TooLarge(f"the body has {len(body):,} bytes; at most {BODY_BYTES:,} fit")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Invalid("the body is not JSON in UTF-8", fix="Send a JSON object.") from error


def bearer(event: APIGatewayProxyEventV2) -> str:
    """The key of `Authorization: Bearer KEY`. Raises Unauthenticated."""
    scheme, _, key = (event.headers.get("authorization") or "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise Unauthenticated("no API key was sent", fix="Send `Authorization: Bearer KEY`.")
    return key.strip()


def answer(status: int, body: Mapping[str, Any]) -> Response[str]:
    """A JSON answer."""
    text = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace").decode()
    return Response(status_code=status, content_type="application/json", body=text)


def refusal(error: InstarError) -> Response[str]:
    """A problem document (RFC 9457)."""
    problem = {"title": type(error).__name__, "status": error.status, **error.problem()}
    text = json.dumps(problem, ensure_ascii=False).encode("utf-8", "replace").decode()
    return Response(status_code=error.status, content_type="application/problem+json", body=text)


def not_found(_: Exception) -> Response[str]:
    """An unknown route."""
    return refusal(NotFound("there is no such route", fix="See /openapi.json."))
