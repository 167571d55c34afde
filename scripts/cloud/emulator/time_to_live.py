"""Repair: a table's TimeToLiveSpecification in a template has no effect.

Seen as: `describe_time_to_live` answers DISABLED after the deployment, and expired rows stay.
A table that was deployed before the repair gets it with its next change.
"""

from typing import Any

from ministack.services import dynamodb
from ministack.services.cloudformation import provisioners

TABLE_TYPE = "AWS::DynamoDB::Table"
# The position of the new properties among each handler's arguments.
POSITIONS = {"create": 1, "update": 2}


def repair() -> None:
    handlers = provisioners._RESOURCE_HANDLERS[TABLE_TYPE]
    for verb, position in POSITIONS.items():
        handlers[verb] = with_time_to_live(handlers[verb], position)


def with_time_to_live(original: Any, position: int) -> Any:
    def handle(*arguments: Any, **keywords: Any) -> Any:
        made = original(*arguments, **keywords)
        specification = arguments[position].get("TimeToLiveSpecification")
        if specification:
            dynamodb._update_ttl({"TableName": made[0], "TimeToLiveSpecification": specification})
        return made

    return handle
