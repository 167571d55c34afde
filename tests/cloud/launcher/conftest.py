"""The sample stack in a local cloud of its own, driven over the wire.

It has its own port (INSTAR_LAUNCHER_PORT, 4577) and goes away with the session, unless
INSTAR_LAUNCHER_KEEP is set: then the next run finds it and starts in seconds.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

HERE = Path(__file__).parent
SCRIPTS = HERE.parents[2] / "scripts" / "cloud"
STACK = "launcher-sample"


class Cloud:
    """The commands, and clients of what they started."""

    def __init__(self, port: str) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self.environment = os.environ | {
            "INSTAR_CLOUD_PORT": port,
            "INSTAR_MODEL_BASE_URL": 'http://127.0.0.1:1/v1?a="b c",d',
            "INSTAR_SAMPLE_TOKEN": "s3cret",
        }

    def run(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        sample = ["--template", str(HERE / "sample" / "template.yaml"), "--stack", STACK]
        return subprocess.run(
            [sys.executable, SCRIPTS / script, *sample, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def tell(self, *arguments: str) -> str:
        done = self.run("cloud.py", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.rstrip("\n")

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(inject_host_prefix=False),
        )

    def invoke(self, function: str, event: object) -> Any:
        answer = self.client("lambda").invoke(FunctionName=function, Payload=json.dumps(event))
        return json.load(answer["Payload"])


@pytest.fixture(scope="session")
def cloud() -> Iterator[Cloud]:
    started = Cloud(os.environ.get("INSTAR_LAUNCHER_PORT") or "4577")
    started.tell("up", "--search", "builtin")
    yield started
    if not os.environ.get("INSTAR_LAUNCHER_KEEP"):
        started.tell("down")


@pytest.fixture(scope="session")
def outputs(cloud: Cloud) -> dict[str, str]:
    found: dict[str, str] = json.loads(cloud.tell("outputs"))
    return found


@pytest.fixture
def wait_for() -> Callable[[Callable[[], Any], float], Any]:
    def wait(read: Callable[[], Any], seconds: float) -> Any:
        """The first true answer, or the last one."""
        deadline = time.monotonic() + seconds
        while not (answer := read()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return answer

    return wait
