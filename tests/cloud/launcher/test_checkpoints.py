"""What is older than a checkpoint outlives `kill -9`."""

import json
import os
import signal
import time
import uuid

import pytest

pytestmark = pytest.mark.cloud

# A checkpoint every 5 seconds, which itself takes a moment.
CHECKPOINT_SECONDS = 8


def test_a_row_outlives_kill_9(cloud, outputs):
    key = {"pk": {"S": uuid.uuid4().hex}}
    cloud.client("dynamodb").put_item(TableName=outputs["Table"], Item=key)
    time.sleep(CHECKPOINT_SECONDS)

    os.kill(json.loads(cloud.tell("status"))["pid"], signal.SIGKILL)
    assert cloud.run("cloud.py", "status").returncode == 3
    cloud.tell("up", "--search", "builtin")

    assert cloud.client("dynamodb").get_item(TableName=outputs["Table"], Key=key)["Item"] == key
    assert cloud.invoke(outputs["Probe"], {"do": "answer"}) == "answer"
    assert json.loads(cloud.tell("outputs")) == outputs
