"""The WebSocket: $connect with a ticket, frames, $disconnect. Idempotent by the frame's id."""

from typing import Any

from instar.errors import InstarError
from instar.wiring import websocket

sockets = websocket.build()


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """API Gateway's entry: a refused connection is 401, a refused frame is told on the socket."""
    request = event["requestContext"]
    connection, route = request["connectionId"], request["routeKey"]
    try:
        if route == "$connect":
            query = event.get("queryStringParameters") or {}
            sockets.connect(connection, query.get("ticket", ""))
        elif route == "$disconnect":
            sockets.disconnect(connection)
        else:
            sockets.frame(connection, event.get("body") or "")
    except InstarError as error:
        if route == "$connect":
            return {"statusCode": error.status}
        sockets.tell(connection, error)
    return {"statusCode": 200}
