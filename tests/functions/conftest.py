"""A function as Lambda loads it, in an account that holds what `template.yaml` declares.

Tables, queues, bucket and variables are read from the template, so a test cannot pass on resources
that a deployment would not have. What a function asks of the network is on loopback: a scripted
model, a Bot API, a small search engine; without them it meets a closed port.
"""

import copy
import importlib.util
import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import boto3
import pytest
from cfnlint.decode.cfn_yaml import loads
from moto import mock_aws
from moto.apigatewaymanagementapi.models import apigatewaymanagementapi_backends

from instar.testing.wire import LocalServer, Step, WireRequest, json_step

ROOT = Path(__file__).resolve().parents[2]
REGION, ACCOUNT, STACK = "eu-central-1", "123456789012", "instar"
KEEP_ON_AWS = {"BillingMode", "AttributeDefinitions", "KeySchema"}
_numbers = count(1)

Handler = Callable[[dict[str, Any], Any], Any]


@dataclass
class Account:
    """The stack in moto: `values` are template parameters; what they leave out is the default."""

    template: dict[str, Any]
    session: boto3.Session
    values: dict[str, str] = field(default_factory=dict)

    def resolved(self, node: Any) -> Any:
        """A value of the template as a deployment would resolve it."""
        if not isinstance(node, dict) or len(node) != 1:
            return node
        ((function, given),) = node.items()
        match function:
            case "Ref":
                return self.name(given)
            case "Fn::Sub":
                return self.substituted(given)
            case "Fn::If":
                made = {"MakesDomain": not self.name("SearchEndpoint")}
                return self.resolved(given[1] if made[given[0]] else given[2])
        raise AssertionError(f"a value that these tests cannot resolve: {node}")

    def substituted(self, text: str) -> str:
        """A !Sub: names of parameters, resources and pseudo parameters in ${…}."""
        head, _, rest = text.partition("${")
        if not rest:
            return head
        name, _, tail = rest.partition("}")
        return head + self.name(name) + self.substituted(tail)

    def name(self, name: str) -> str:
        """What !Ref gives: a parameter's value, a pseudo parameter, a resource's physical name."""
        pseudo = {
            "AWS::StackName": STACK,
            "AWS::AccountId": ACCOUNT,
            "AWS::Region": REGION,
            "AWS::Partition": "aws",
            "AWS::URLSuffix": "amazonaws.com",
        }
        if name in pseudo:
            return pseudo[name]
        if name in self.template["Parameters"]:
            return str(self.values.get(name, self.template["Parameters"][name]["Default"]))
        resource = self.template["Resources"].get(name.partition(".")[0])
        if resource and resource["Type"] == "AWS::SQS::Queue":
            queue = self.substituted(resource["Properties"]["QueueName"]["Fn::Sub"])
            return f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{queue}"
        return f"{STACK}-{name}"

    def of_type(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, resource in self.template["Resources"].items():
            if resource["Type"] == kind:
                yield name, resource["Properties"]

    def make(self) -> None:
        """Tables, queues and bucket, as declared."""
        for name, given in self.of_type("AWS::DynamoDB::Table"):
            table = {key: value for key, value in given.items() if key in KEEP_ON_AWS}
            self.client("dynamodb").create_table(TableName=self.name(name), **table)
        for _, given in self.of_type("AWS::SQS::Queue"):
            fifo = {"FifoQueue": "true"} if given.get("FifoQueue") else {}
            queue = self.substituted(given["QueueName"]["Fn::Sub"])
            self.client("sqs").create_queue(QueueName=queue, Attributes=fifo)
        for _, given in self.of_type("AWS::S3::Bucket"):
            bucket = self.substituted(given["BucketName"]["Fn::Sub"])
            place = {"LocationConstraint": REGION}
            self.client("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration=place)
            self.client("s3").put_bucket_versioning(
                Bucket=bucket, VersioningConfiguration=dict(given["VersioningConfiguration"])
            )

    def environment(self, function: str) -> dict[str, str]:
        """The variables of the function whose folder has that name."""
        whole = dict(self.template["Globals"]["Function"]["Environment"]["Variables"])
        for _, given in self.of_type("AWS::Serverless::Function"):
            if given["CodeUri"] == f"functions/{function}":
                whole |= given.get("Environment", {}).get("Variables", {})
        return {name: str(self.resolved(value)) for name, value in whole.items()}

    def client(self, service: str) -> Any:
        make: Any = self.session.client
        return make(service)

    def secret(self, name: str, value: str) -> None:
        """Keeps a secret, as `make deploy` does."""
        self.client("ssm").put_parameter(
            Name=f"/{STACK}/secrets/{name}", Value=value, Type="SecureString", Overwrite=True
        )

    @property
    def bucket(self) -> str:
        return f"{STACK}-documents-{ACCOUNT}"

    def put(self, key: str, text: str) -> str:
        """Writes a document as its owner would; its revision."""
        body = text.encode()
        done = self.client("s3").put_object(Bucket=self.bucket, Key=key, Body=body)
        return str(done["VersionId"])

    def text(self, key: str) -> str:
        found = self.client("s3").get_object(Bucket=self.bucket, Key=key)
        return str(found["Body"].read().decode())

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of a table, in DynamoDB's own types."""
        found = self.client("dynamodb").scan(TableName=self.name(table))
        return list(found["Items"])

    def take(self, queue: str) -> list[dict[str, Any]]:
        """Up to ten messages of a queue, as SQS hands them out."""
        found = self.client("sqs").receive_message(
            QueueUrl=self.name(queue), MaxNumberOfMessages=10, AttributeNames=["All"]
        )
        return list(found.get("Messages", []))

    def frames(self, connection: str) -> list[dict[str, Any]]:
        """What was sent to a socket, in order."""
        connections = apigatewaymanagementapi_backends[ACCOUNT][REGION].connections
        sent = connections[quote(connection)].data
        text, frames, decoder = sent.decode(), [], json.JSONDecoder()
        while text:
            frame, end = decoder.raw_decode(text)
            frames.append(frame)
            text = text[end:]
        return frames


@pytest.fixture(scope="session")
def session() -> boto3.Session:
    """One for all tests: it has read the service descriptions, which takes longer than a test."""
    return boto3.Session("testing", "testing", region_name=REGION)


@pytest.fixture(scope="session")
def template() -> dict[str, Any]:
    found: dict[str, Any] = loads((ROOT / "template.yaml").read_text())
    return found


@pytest.fixture
def closed_port() -> str:
    """An address at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def account(
    clean_environment: None,
    monkeypatch: pytest.MonkeyPatch,
    template: dict[str, Any],
    session: boto3.Session,
    closed_port: str,
) -> Iterator[Account]:
    """The deployed stack: no vectors, and a search engine that is down unless `engine` is asked."""
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    with mock_aws():
        account = Account(template, session, {"SearchEndpoint": closed_port, "Embeddings": "none"})
        account.make()
        yield account


LoadFunction = Callable[..., Handler]


@pytest.fixture
def load_function(account: Account, monkeypatch: pytest.MonkeyPatch) -> LoadFunction:
    """Loads `functions/<name>/handler.py` anew; keywords are template parameters."""

    def load(name: str, **parameters: str) -> Handler:
        account.values |= parameters
        for variable, value in account.environment(name).items():
            monkeypatch.setenv(variable, value)
        file = ROOT / "functions" / name / "handler.py"
        spec = importlib.util.spec_from_file_location(f"{name}_handler_{next(_numbers)}", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        handler: Handler = module.handler
        return handler

    return load


@dataclass
class Context:
    """What Lambda hands to a handler beside the event."""

    seconds: float = 300.0
    function_name: str = "instar-function"
    function_version: str = "$LATEST"
    memory_limit_in_mb: int = 1024
    aws_request_id: str = "6d8c0f9e-2f3b-4a57-9d2e-1b1f0d1c7a11"
    invoked_function_arn: str = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:instar-function"

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


@pytest.fixture
def context() -> Context:
    return Context()


Event = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="session")
def event() -> Event:
    """A copy of a captured event: `event("webhook_telegram_text")`."""

    def read(name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((ROOT / "events" / f"{name}.json").read_text())
        return copy.deepcopy(found)

    return read


@pytest.fixture(scope="session")
def batch(event: Event) -> Callable[..., dict[str, Any]]:
    """A batch of one FIFO queue: (group, body) pairs become records m1, m2, …"""

    def build(*messages: tuple[str, str], receipt: str = "receipt") -> dict[str, Any]:
        captured = event("deliver_reply")["Records"][0]
        records = []
        for number, (group, body) in enumerate(messages, 1):
            record = copy.deepcopy(captured) | {
                "messageId": f"m{number}",
                "receiptHandle": receipt,
                "body": body,
            }
            record["attributes"]["MessageGroupId"] = group
            records.append(record)
        return {"Records": records}

    return build


def failed(answer: dict[str, Any]) -> list[str]:
    """The messages that a consumer gives back."""
    return [item["itemIdentifier"] for item in answer["batchItemFailures"]]


@pytest.fixture(scope="session", name="failed")
def failed_fixture() -> Callable[[dict[str, Any]], list[str]]:
    return failed


class SmallEngine(LocalServer):
    """As much of OpenSearch as the indexer speaks: `_bulk` and `_search` by a document's key.

    Indexing of a key in `broken` is refused; `bulks` counts the writes.
    """

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.entries: dict[str, dict[str, Any]] = {}
        self.broken: set[str] = set()
        self.bulks = 0

    def texts(self, key: str) -> list[str]:
        """The texts of a document's passages."""
        return [each["passage"]["text"] for each in self._passages(key)]

    def _answer(self, request: WireRequest) -> Step:
        if request.path.partition("?")[0].endswith("/_bulk"):
            self.bulks += 1
            return json_step({"errors": False, "items": self._write(request.body)})
        query = request.json()
        if "aggs" in query:
            keys = sorted({each["key"] for each in self.entries.values()})
            buckets = [self._bucket(key) for key in keys]
            return json_step({"aggregations": {"keys": {"buckets": buckets}}})
        key = query["query"]["bool"]["filter"][1]["term"]["key"]
        hits = [
            {"_source": {"passage": each["passage"]}, "sort": [each["ordinal"], each["id"]]}
            for each in self._passages(key)
        ]
        return json_step({"hits": {"hits": hits}})

    def _passages(self, key: str) -> list[dict[str, Any]]:
        found = [e for e in self.entries.values() if e["key"] == key and e["type"] == "passage"]
        return sorted(found, key=lambda each: each["ordinal"])

    def _bucket(self, key: str) -> dict[str, Any]:
        found = len(self._passages(key))
        return {
            "key": {"key": key},
            "passages": {"doc_count": found},
            "vectors": {"doc_count": 0},
        }

    def _write(self, body: bytes) -> list[dict[str, Any]]:
        lines, items = iter(body.decode().splitlines()), list[dict[str, Any]]()
        for line in lines:
            ((verb, place),) = json.loads(line).items()
            if verb == "delete":
                self.entries.pop(place["_id"], None)
                items.append({verb: {"status": 200}})
                continue
            given = json.loads(next(lines))["script"]["params"]
            entry = given.get("entry") or {**self.entries[place["_id"]], **given["change"]}
            if entry["key"] in self.broken:
                error = {"type": "mapper_parsing_exception", "reason": "scripted"}
                items.append({verb: {"status": 400, "error": error}})
                continue
            self.entries[place["_id"]] = entry
            items.append({verb: {"status": 200}})
        return items


@pytest.fixture
def engine(account: Account) -> Iterator[SmallEngine]:
    """A search engine that is up."""
    with SmallEngine() as engine:
        account.values["SearchEndpoint"] = engine.url
        yield engine


@pytest.fixture
def key(account: Account) -> Callable[..., str]:
    """Makes an API key with these scopes, as `instar key create` does."""

    def make(*scopes: str, tools: list[str] | None = None) -> str:
        from instar.adapters.aws.rows import bind_tables
        from instar.wiring.aws_access import keyring

        bind_tables(
            ledger=account.name("LedgerTable"),
            sessions=account.name("SessionsTable"),
            access=account.name("AccessTable"),
        )
        made, _ = keyring().create(scopes, tools)
        return made

    return make
