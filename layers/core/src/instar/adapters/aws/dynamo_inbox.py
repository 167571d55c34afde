"""The door on AWS, for the webhook: one transaction of the plain client, no PynamoDB.

It writes the turn's row that DynamoTurns reads and puts the session on the list. The attributes
are those of rows.TurnRow and rows.HeadRow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boto3.dynamodb.types import TypeSerializer

from instar.adapters.aws.contention import persist, races
from instar.adapters.aws.errors import aws_failures
from instar.adapters.aws.places import SESSIONS, TURN, micros, shown_address, turn_place
from instar.clock import Sleep, sleep
from instar.conversation.envelopes import InboundMessage
from instar.errors import Conflict, TooLarge

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# An item holds 400 KB; the turn's end needs some of it too.
MESSAGE_BYTES = 350_000


class DynamoInbox:
    """The AWS Inbox. The idempotency key is the turn's id."""

    def __init__(self, client: DynamoDBClient, table: str, *, sleep: Sleep = sleep) -> None:
        self._client = client
        self._table = table
        self._sleep = sleep

    def accept(self, message: InboundMessage) -> bool:
        """Records the message as a queued turn; False when it stands there.

        Raises Conflict when the turn stands there with another digest, TooLarge.
        """
        row = _turn_row(message)
        if len(row["message"].encode()) > MESSAGE_BYTES:
            raise TooLarge(f"a message has at most {MESSAGE_BYTES:,} bytes")
        return persist(f"turn {message.turn!r}", lambda: self._try(message, row), self._sleep)

    def _try(self, message: InboundMessage, row: dict[str, Any]) -> bool:
        known = self._digest(message.turn)
        if known is None:
            with races():
                self._write(message, row)
            return True
        if known != message.digest:
            raise Conflict(
                f"another message stands under {message.identity!r}",
                fix="Give a new message a new id.",
            )
        return False

    def _digest(self, turn: str) -> str | None:
        """The digest under which the turn stands."""
        with aws_failures(f"turn {turn!r}"):
            found = self._client.get_item(
                TableName=self._table,
                Key=_row({"pk": turn_place(turn), "sk": TURN}),
                ProjectionExpression="digest",
                ConsistentRead=True,
            )
        return str(found["Item"]["digest"]["S"]) if "Item" in found else None

    def _write(self, message: InboundMessage, row: dict[str, Any]) -> None:
        """The turn and the session's line together. Raises Conflict when the turn stands there."""
        put: Any = {
            "Put": {
                "TableName": self._table,
                "Item": _row(row),
                "ConditionExpression": "attribute_not_exists(pk)",
            }
        }
        with aws_failures(f"turn {message.turn!r}"):
            listed = self._listed(message)
            self._client.transact_write_items(TransactItems=[put, *listed])

    def _listed(self, message: InboundMessage) -> list[Any]:
        """What puts the session on the list or to its top; nothing when it is higher already."""
        key = _row({"pk": SESSIONS, "sk": message.session})
        found = self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        at = found.get("Item", {}).get("at", {}).get("N")
        if at is not None and int(at) > micros(message.at):
            return []
        seen = "attribute_not_exists(#at)" if at is None else "#at = :seen"
        values = {
            ":channel": message.address.channel,
            ":address": shown_address(message.address),
            ":at": micros(message.at),
        }
        update = {
            "TableName": self._table,
            "Key": key,
            "UpdateExpression": "SET channel = :channel, address = :address, #at = :at",
            "ConditionExpression": seen,
            "ExpressionAttributeNames": {"#at": "at"},
            "ExpressionAttributeValues": _row(
                values if at is None else values | {":seen": int(at)}
            ),
        }
        return [{"Update": update}]


def _turn_row(message: InboundMessage) -> dict[str, Any]:
    return {
        "pk": turn_place(message.turn),
        "sk": TURN,
        "session": message.session,
        "digest": message.digest,
        "message": message.model_dump_json(),
        "state": "queued",
        "attempts": 0,
        "crashes": 0,
        "fence": 0,
    }


def _row(values: dict[str, Any]) -> dict[str, Any]:
    """The values in DynamoDB's own types."""
    serialize = TypeSerializer().serialize
    return {name: serialize(value) for name, value in values.items()}
