"""The repairs refuse an emulator that they do not know."""

import json
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.cloud

SCRIPTS = Path(__file__).parents[3] / "scripts" / "cloud"
OTHER_VERSION = """
import importlib.metadata, runpy
importlib.metadata.version = lambda name: "1.5.34"
runpy.run_module("emulator", run_name="__main__")
"""


def test_another_version_is_refused(cloud):
    pid = json.loads(cloud.tell("status"))["pid"]
    python = Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0]

    done = subprocess.run(
        [python, "-c", OTHER_VERSION], cwd=SCRIPTS, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert done.stderr.strip() == "the repairs are for ministack 1.5.33, found 1.5.34"
