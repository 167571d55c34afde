"""The commands around the stack: doctor, deploying again, taking it down. Runs last."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cloud.stack import eventually

pytestmark = pytest.mark.cloud


def test_doctor_finds_nothing_wrong(stack):
    report = eventually(lambda: level(doctor(stack)), 30)

    assert report, doctor(stack)
    assert report["ok"] is True
    assert {check["name"]: check["status"] for check in report["checks"]} == dict.fromkeys(
        [check["name"] for check in report["checks"]], "ok"
    )
    assert (report["failed"], report["drift"], report["pending"]) == ([], 0, 0)
    assert report["documents"] == report["indexed"] > 0


def test_deploying_again_changes_nothing_and_keeps_everything(stack, owner, word):
    saved = owner.post("/v1/tools/memory_save", json={"content": f"Keep the {word}"})
    assert saved.json()["result"]["saved"] is True
    outputs, key = stack.outputs, stack.key
    functions = deployed(stack)

    stack.tell("up")

    assert json.loads(stack.tell("outputs")) == outputs
    assert stack.tell("key") == key
    assert deployed(stack) == functions
    assert f"Keep the {word}" in owner.get("/v1/documents/MEMORY.md").json()["text"]


def test_taken_down_nothing_is_left_and_it_may_be_said_twice(stack):
    if os.environ.get("INSTAR_CLOUD_TEST_KEEP") and os.environ.get("CI") != "true":
        pytest.skip("INSTAR_CLOUD_TEST_KEEP is set: the stack stays, so its end is not tried")
    cache = Path(stack.environment.get("INSTAR_CACHE") or Path.home() / ".cache" / "instar")
    port = int(stack.endpoint.rpartition(":")[2])

    stack.tell("down")
    stack.tell("down")

    assert not (cache / "cloud" / "run" / str(port)).exists()
    assert [number for number in (port, port + 1) if listens(number)] == []
    left = [function for function in ("api", "turn", "tool") if stack.workers(function)]
    assert left == []
    assert stack.command("url").returncode == 3


def doctor(stack) -> dict:
    done = subprocess.run(
        [Path(sys.executable).parent / "instar", "--url", stack.url, "doctor", "--json"],
        env={"INSTAR_KEY": stack.key, "PATH": os.defpath, "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def level(report: dict) -> dict | None:
    return report if report["drift"] == 0 else None


def deployed(stack) -> dict[str, str]:
    listed = stack.client("lambda").list_functions(MaxItems=50)["Functions"]
    return {each["FunctionName"]: each["LastModified"] for each in listed}


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
