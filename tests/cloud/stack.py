"""The stack of this repository in a local cloud of its own: its commands, addresses and clients."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import boto3
import httpx
from botocore.config import Config

REPOSITORY = Path(__file__).resolve().parents[2]
COMMANDS = REPOSITORY / "scripts" / "cloud" / "cloud.py"
# How this machine reaches its caches; every other setting of its owner stays out.
KEPT = ("INSTAR_CACHE", "INSTAR_OPENSEARCH_HEAP", "INSTAR_OPENSEARCH_MVN")
FUNCTIONS = ("webhook", "websocket", "api", "tool", "turn", "deliver", "document-changed")
T = TypeVar("T")


class Stack:
    """One local cloud. `settings` are the INSTAR_ variables of its deployment."""

    def __init__(self, port: int, settings: Mapping[str, str]) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self.settings = settings
        own = {name: value for name, value in os.environ.items() if is_kept(name)}
        self.environment = own | {
            "INSTAR_CLOUD_PORT": str(port),
            "INSTAR_OPENSEARCH_PORT": str(port + 1),
            **settings,
        }

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs cloud.py, which is what `make cloud` runs."""
        return subprocess.run(
            [sys.executable, COMMANDS, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def tell(self, *arguments: str) -> str:
        """The answer of a command that has to go well."""
        done = self.command(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    @cached_property
    def outputs(self) -> dict[str, str]:
        """The stack's outputs, with addresses that work here."""
        found: dict[str, str] = json.loads(self.tell("outputs"))
        return found

    @cached_property
    def url(self) -> str:
        """Of the HTTP API."""
        return self.tell("url")

    @cached_property
    def key(self) -> str:
        """The owner's."""
        return self.tell("key")

    def http(self, key: str | None = None) -> httpx.Client:
        """A client of the HTTP API, with a key or without."""
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False)

    def client(self, service: str, credentials: Mapping[str, str] | None = None) -> Any:
        """A client of AWS: the account's owner, or who has these credentials."""
        given = credentials or {"AccessKeyId": "test", "SecretAccessKey": "test"}
        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=given["AccessKeyId"],
            aws_secret_access_key=given["SecretAccessKey"],
            aws_session_token=given.get("SessionToken"),
            config=Config(inject_host_prefix=False, retries={"total_max_attempts": 2}),
        )

    def role_of(self, function: str) -> dict[str, str]:
        """Credentials of a function's role."""
        configuration = self.client("lambda").get_function_configuration(
            FunctionName=f"instar-{function}"
        )
        assumed = self.client("sts").assume_role(
            RoleArn=configuration["Role"], RoleSessionName="tests"
        )
        found: dict[str, str] = assumed["Credentials"]
        return found

    def rows(self, table: str, partition: str) -> list[dict[str, Any]]:
        """The items of a partition; `table` is the output that names it."""
        resource = boto3.resource(
            "dynamodb",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        found = resource.Table(self.outputs[table]).query(
            KeyConditionExpression=boto3.dynamodb.conditions.Key("pk").eq(partition),
            ConsistentRead=True,
        )
        return list(found["Items"])

    def writes_of(self, document: str, agent: str = "main") -> list[dict[str, Any]]:
        """The ledger's rows of a document."""
        return self.rows("LedgerTable", f"document#agents/{agent}/{document}")

    def queued(self, queue: str) -> int:
        """How many messages a queue has, in flight or not; `queue` is the output that names it."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.client("sqs").get_queue_attributes(
            QueueUrl=self.outputs[queue], AttributeNames=names
        )
        return sum(int(found["Attributes"][name]) for name in names)

    def workers(self, function: str) -> list[int]:
        """The processes that play this function in this local cloud."""
        endpoint = f"AWS_ENDPOINT_URL={self.endpoint}"
        name = f"AWS_LAMBDA_FUNCTION_NAME=instar-{function}"
        return [
            int(process.name)
            for process in Path("/proc").iterdir()
            if process.name.isdigit() and {endpoint, name} <= set(environment_of(process))
        ]

    def logs(self, since: float) -> str:
        """What the functions wrote since then (seconds since 1970)."""
        client, lines = self.client("logs"), []
        for function in FUNCTIONS:
            group = f"/instar/instar/{function.replace('-', '_')}"
            found = client.filter_log_events(logGroupName=group, startTime=int(since * 1000))
            lines += [(each["timestamp"], function, each["message"]) for each in found["events"]]
        return "\n".join(f"{name}: {text.rstrip()}" for _, name, text in sorted(lines))


def is_kept(name: str) -> bool:
    return name in KEPT or not name.startswith(("INSTAR_", "AWS_"))


def environment_of(process: Path) -> Sequence[str]:
    try:
        command = (process / "cmdline").read_bytes()
        variables = (process / "environ").read_bytes()
    except OSError:  # it is gone, or not ours
        return ()
    return variables.decode(errors="replace").split("\0") if b"awslambdaric" in command else ()


def eventually(read: Callable[[], T], seconds: float = 20) -> T:
    """The first true answer, or the last one."""
    deadline = time.monotonic() + seconds
    while not (answer := read()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return answer
