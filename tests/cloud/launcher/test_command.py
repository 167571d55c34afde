"""The commands: addresses, the owner's key, parameters and secrets."""

import json
from pathlib import Path

import httpx
import pytest

pytestmark = pytest.mark.cloud

EVENTS = Path(__file__).parent / "sample" / "events"


def test_addresses_are_local(cloud):
    assert cloud.tell("url").startswith(f"{cloud.endpoint}/_aws/execute-api/")
    assert cloud.tell("socket-url").startswith("ws://127.0.0.1:")


def test_key_prints_the_owner_key_and_nothing_else(cloud):
    done = cloud.run("cloud.py", "key")

    assert (done.stdout, done.stderr) == ("the-owners-key\n", "")


def test_iam_is_enforced(cloud):
    health = httpx.get(f"{cloud.endpoint}/_ministack/health", trust_env=False).json()

    assert health["auth"] == "enabled"


def test_a_setting_becomes_a_template_parameter(cloud, outputs):
    environment = cloud.invoke(outputs["Probe"], {"do": "see"})["environment"]

    assert environment["MODEL_BASE_URL"] == cloud.environment["INSTAR_MODEL_BASE_URL"]


def test_a_secret_is_stored_encrypted_and_is_no_parameter(cloud):
    found = cloud.client("ssm").get_parameter(
        Name="/launcher-sample/secrets/sample_token", WithDecryption=True
    )["Parameter"]
    described = cloud.client("cloudformation").describe_stacks(StackName="launcher-sample")

    assert (found["Type"], found["Value"]) == ("SecureString", "s3cret")
    assert "s3cret" not in json.dumps(described, default=str)


def test_a_deployed_stack_can_be_brought_up_again(cloud, outputs):
    done = cloud.run("cloud.py", "up", "--search", "builtin")

    assert done.returncode == 0, done.stderr
    assert done.stdout == outputs["Url"] + "\n"
    assert "s3cret" not in done.stderr


def test_every_sample_event_is_handled_alone(cloud):
    done = cloud.run("invoke.py", "--all", str(EVENTS))

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "3 passed, 0 failed"


def test_an_error_of_one_function_is_reported(cloud, tmp_path):
    event = tmp_path / "probe_fails.json"
    event.write_text('{"do": "raise"}')

    one = cloud.run("invoke.py", "ProbeFunction", str(event))
    every = cloud.run("invoke.py", "--all", str(tmp_path))

    assert (one.returncode, json.loads(one.stdout)["errorType"]) == (1, "Rejected")
    assert every.returncode == 1
    assert "probe_fails: Rejected: as asked" in every.stdout
