"""One home, any number of processes, one server."""

import os
import signal
import stat

import pytest

from instar.adapters.local.home import Home
from instar.errors import Conflict, Invalid

SERVER = """
import sys, time
from pathlib import Path
from instar.adapters.local.home import Home

with Home(Path(sys.argv[1])).serve_lock():
    print("serving", flush=True)
    time.sleep(60)
"""


def test_a_new_home_is_private_and_one_that_is_there_keeps_its_mode(tmp_path):
    home = Home(tmp_path / "new" / "home")
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700
    home.path.chmod(0o750)

    Home(home.path)

    assert stat.S_IMODE(home.path.stat().st_mode) == 0o750


def test_a_second_server_is_refused_and_told_who_serves(tmp_path, children):
    server = children.start(SERVER, tmp_path)
    server.stdout.readline()
    home = Home(tmp_path)

    assert home.server_running() is True
    with pytest.raises(Conflict, match=f"process {server.pid} ") as refused, home.serve_lock():
        pass
    assert "--home" in refused.value.fix
    assert home.server_running() is True


def test_a_second_server_in_the_same_process_is_refused(tmp_path):
    home = Home(tmp_path)
    with home.serve_lock(), pytest.raises(Conflict, match=str(os.getpid())), home.serve_lock():
        pass

    assert home.server_running() is False


def test_a_killed_server_leaves_the_home_free(tmp_path, children):
    server = children.start(SERVER, tmp_path)
    server.stdout.readline()
    server.send_signal(signal.SIGKILL)
    server.wait()
    home = Home(tmp_path)

    assert home.server_running() is False
    with home.serve_lock():
        assert home.server_running() is True


def test_asking_does_not_keep_a_server_from_starting(tmp_path):
    home = Home(tmp_path)
    for _ in range(3):
        assert home.server_running() is False
    with home.serve_lock():
        pass


def test_a_home_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")

    with pytest.raises(Invalid):
        Home(tmp_path / "file" / "home")
