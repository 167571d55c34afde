"""The README's own commands, run as they stand there."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
BLOCK = re.search(r"```bash\n(.*?)```", README, re.DOTALL)
COMMANDS = [line for line in (BLOCK[1] if BLOCK else "").splitlines() if line.strip()]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What each command of the block printed, in order, on one home."""
    environment = {
        **os.environ,
        "INSTAR_HOME": str(tmp_path_factory.mktemp("home")),
        "INSTAR_EMBEDDINGS": "none",
    }
    printed = {}
    for command in COMMANDS:
        program, *arguments = shlex.split(command)
        assert program == "instar"
        done = subprocess.run(
            [sys.executable, "-m", "instar", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)
        printed[command] = done.stdout
    return printed


def test_the_readme_shows_commands():
    assert len(COMMANDS) >= 6


def test_what_was_saved_is_found(answers):
    assert (
        "Anna cannot eat peanuts" in answers['instar memory search "What must Anna avoid?" --json']
    )


def test_the_doctor_finds_nothing_wrong(answers):
    assert "fail" not in answers["instar doctor"]
    assert "documents and index" in answers["instar doctor"]
