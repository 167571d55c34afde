"""The WebSocket: $connect with a ticket, frames, $disconnect. Idempotent by the frame's id."""

from typing import Any

from instar.errors import InstarError
from instar.wiring import websocket

sockets = websocket.build()


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """API Gateway's entry: a refused connection is 401, a refused frame is told on the socket."""
    request = event["requestContext"]
    connection, route = request["connectionId"], request["routeKey"]
    if route == "$disconnect":
        sockets.disconnect(connection)
    elif route != "$connect":
        sockets.frame(connection, event.get("body") or "")
    else:
        query = event.get("queryStringParameters") or {}
        try:
            sockets.connect(connection, query.get("ticket", ""))
        except InstarError as error:
            return {"statusCode": error.status}
    return {"statusCode": 200}
