"""The kill test, small: a few rounds of SIGKILL lose nothing and do nothing twice."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "kill_test.py"


def test_three_kills_lose_nothing():
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--runs", "3", "--seed", "11"],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )

    last = done.stdout.splitlines()[-1] if done.stdout else done.stderr
    assert last == "lost 0, torn 0, repeated effects 0, index equal", done.stdout + done.stderr
    assert done.returncode == 0
