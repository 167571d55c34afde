"""Repair: a bucket policy knows nothing of conditional writes, and takes a role for its session.

The condition keys s3:if-match, s3:if-none-match and s3:ObjectCreationOperation do not exist. Seen
as: a policy that denies unconditional writes denies none of them, or, without
s3:ObjectCreationOperation, denies every write. And aws:PrincipalArn is, for whoever works under a
role, the session's ARN instead of the role's. Seen as: a policy about roles by name matches none.
Matters only where IAM is enforced.
"""

import re
from typing import Any

from ministack.core import iam_actions, iam_evaluator

CONDITIONS = ("if-match", "if-none-match")
SESSION = re.compile(r"arn:(aws[\w-]*):sts::(\d+):assumed-role/([^/]+)/.*")

context_without_conditions = iam_actions._s3_object_context
value_of_condition = iam_evaluator._resolve_condition_key


def repair() -> None:
    iam_actions._s3_object_context = object_context
    iam_evaluator._resolve_condition_key = resolve_condition


def object_context(
    action: str, query: dict[str, Any], path: str, headers: dict[str, str]
) -> dict[str, Any]:
    context: dict[str, Any] = context_without_conditions(action, query, path, headers)
    if action == "s3:PutObject":
        # Starting an upload and its parts do not create the object; its completion does.
        creates = "uploads" not in query and "partNumber" not in query
        context["s3:ObjectCreationOperation"] = "true" if creates else "false"
        context |= {f"s3:{name}": headers[name] for name in CONDITIONS if headers.get(name)}
    return context


def resolve_condition(key: str, context: Any) -> Any:
    value = value_of_condition(key, context)
    if key.lower() != "aws:principalarn":
        return value
    return SESSION.sub(r"arn:\1:iam::\2:role/\3", str(value))
