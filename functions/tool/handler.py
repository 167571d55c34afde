"""Tool calls from outside: GET /v1/tools, POST /v1/tools/{name}. Idempotent by Idempotency-Key."""

from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from instar.adapters.aws.http_answers import answer, bearer, json_of, not_found, refusal
from instar.errors import InstarError
from instar.wiring import tool

tools = tool.build()
app = APIGatewayHttpResolver()
app.not_found(not_found)
app.exception_handler(InstarError)(refusal)


@app.get("/v1/tools")
def listing() -> Response[str]:
    """The tools that this key may call."""
    caller = tools.caller(bearer(app.current_event))
    return answer(200, tools.outside.tools(caller.principal))


@app.post("/v1/tools/<name>")
def call(name: str) -> Response[str]:
    """One tool call."""
    event = app.current_event
    caller = tools.caller(bearer(event))
    key = event.headers.get("idempotency-key")
    arguments = json_of(event)
    found = tools.outside.call(caller.name, caller.principal, name, arguments, key)
    return answer(found.status, found.body)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """API Gateway's entry."""
    return app.resolve(event, context)
