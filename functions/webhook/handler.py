"""A channel calls: verify, mask, enqueue, answer within a second. Idempotent by the update's id."""

from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from instar.adapters.aws.http_answers import answer, body_of, not_found, refusal
from instar.channels.ports import WebhookRequest
from instar.clock import utc_now
from instar.errors import InstarError
from instar.wiring import webhook

webhooks = webhook.build()
app = APIGatewayHttpResolver()
app.not_found(not_found)
app.exception_handler(InstarError)(refusal)


@app.post("/webhooks/<channel>/<account>")
def call(channel: str, account: str) -> Response[str]:
    """One call of a platform."""
    event = app.current_event
    request = WebhookRequest(
        account=account,
        headers={name.lower(): value for name, value in event.headers.items()},
        body=body_of(event),
        received_at=utc_now(),
    )
    return answer(*webhooks.call(channel, request))


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """API Gateway's entry."""
    return app.resolve(event, context)
