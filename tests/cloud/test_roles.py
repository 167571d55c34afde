"""Least privilege: what each function's role may do, and one step beyond, tried with its rights."""

import pytest
from botocore.exceptions import ClientError

pytestmark = pytest.mark.cloud

DOCUMENT = "agents/main/MEMORY.md"
DENIED = ("AccessDenied", "AccessDeniedException", "403", "AccessDeniedFault")

# function: (what it may, what it may not), each a service, a call and which thing it is about.
RIGHTS = {
    "webhook": (
        ("dynamodb", "get_item", "SessionsTable"),
        [
            ("s3", "put_object", "DocumentsBucket"),
            ("s3", "get_object", "DocumentsBucket"),
            ("sqs", "receive_message", "TurnQueueUrl"),
            ("dynamodb", "get_item", "AccessTable"),
            ("dynamodb", "scan", "SessionsTable"),
        ],
    ),
    "websocket": (
        ("dynamodb", "get_item", "SessionsTable"),
        [
            ("s3", "get_object", "DocumentsBucket"),
            ("dynamodb", "get_item", "LedgerTable"),
            ("dynamodb", "put_item", "AccessTable"),
            ("sqs", "receive_message", "TurnQueueUrl"),
        ],
    ),
    "api": (
        ("dynamodb", "get_item", "LedgerTable"),
        [
            ("s3", "delete_object", "DocumentsBucket"),
            ("sqs", "receive_message", "TurnQueueUrl"),
            ("dynamodb", "scan", "LedgerTable"),
        ],
    ),
    "tool": (
        ("dynamodb", "get_item", "LedgerTable"),
        [
            ("s3", "delete_object", "DocumentsBucket"),
            ("sqs", "send_message", "TurnQueueUrl"),
            ("dynamodb", "get_item", "SessionsTable"),
        ],
    ),
    "turn": (
        ("dynamodb", "get_item", "SessionsTable"),
        [
            ("s3", "delete_object", "DocumentsBucket"),
            ("sqs", "receive_message", "DeadTurnsUrl"),
            ("sqs", "send_message", "TurnQueueUrl"),
            ("dynamodb", "get_item", "AccessTable"),
        ],
    ),
    "deliver": (
        ("dynamodb", "get_item", "SessionsTable"),
        [
            ("s3", "get_object", "DocumentsBucket"),
            ("s3", "put_object", "DocumentsBucket"),
            ("sqs", "receive_message", "TurnQueueUrl"),
            ("dynamodb", "get_item", "LedgerTable"),
        ],
    ),
    "document-changed": (
        ("dynamodb", "get_item", "LedgerTable"),
        [
            ("s3", "put_object", "DocumentsBucket"),
            ("dynamodb", "get_item", "SessionsTable"),
            ("sqs", "send_message", "TurnQueueUrl"),
        ],
    ),
}


@pytest.mark.parametrize("function", RIGHTS)
def test_a_role_ends_where_its_work_ends(stack, function):
    credentials = stack.role_of(function)
    allowed, forbidden = RIGHTS[function]

    assert outcome(stack, credentials, allowed) == "allowed"
    assert {step: outcome(stack, credentials, step) for step in forbidden} == dict.fromkeys(
        forbidden, "denied"
    )


@pytest.mark.parametrize("function", RIGHTS)
def test_no_function_reads_the_owners_key_or_removes_a_revision(stack, function):
    credentials = stack.role_of(function)

    assert outcome(stack, credentials, ("ssm", "get_parameter", "OwnerKeyParameter")) == "denied"
    assert outcome(stack, credentials, ("s3", "delete_version", "DocumentsBucket")) == "denied"


def outcome(stack, credentials, step) -> str:
    service, call, about = step
    name = stack.outputs[about]
    key = {"pk": {"S": "probe"}, "sk": {"S": "probe"}}
    s3 = {"Bucket": name, "Key": DOCUMENT}
    arguments = {
        "get_item": {"TableName": name, "Key": key},
        "put_item": {"TableName": name, "Item": key},
        "scan": {"TableName": name, "Limit": 1},
        "get_object": s3,
        "put_object": {**s3, "Body": b"x", "IfNoneMatch": "*"},
        "delete_object": s3,
        "delete_version": {**s3, "VersionId": "0" * 32},
        "receive_message": {"QueueUrl": name, "VisibilityTimeout": 0},
        "send_message": {"QueueUrl": name, "MessageBody": "x", "MessageGroupId": "probe"},
        "get_parameter": {"Name": name},
    }[call]
    method = "delete_object" if call == "delete_version" else call
    try:
        getattr(stack.client(service, credentials), method)(**arguments)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        return "denied" if code in DENIED else code
    return "allowed"
