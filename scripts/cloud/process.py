"""Start and stop the emulator in the background.

The emulator holds a lock on a file of its folder for as long as it lives: so a stale pid file, or
a pid that another program has by now, deceives nobody.
"""

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

from install import say
from places import SCRIPTS, Places

START_SECONDS, STOP_SECONDS, POLL_SECONDS = 90, 30, 0.1
LOG_LINES = 25
NOT_RUNNING = 3


def start(places: Places) -> None:
    """Where other repairs run already, it is started again with its state."""
    if is_running(places):
        if (places.run / "version").read_text() == version_of_repairs():
            return
        say("the repairs changed: starting the emulator again")
        stop(places)
    began = time.monotonic()
    # The state holds secrets.
    places.run.mkdir(parents=True, exist_ok=True, mode=0o700)
    for folder in ("state", "s3", "layers", "tmp"):
        (places.run / folder).mkdir(exist_ok=True)
    with (places.run / "alive").open("w") as lock, (places.run / "log").open("wb") as log:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = subprocess.Popen(
            [places.python("emulator"), "-m", "emulator"],
            cwd=SCRIPTS,
            env=environment(places),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[lock.fileno()],
            start_new_session=True,
        )
    (places.run / "pid").write_text(str(process.pid))
    (places.run / "version").write_text(version_of_repairs())
    wait_healthy(places, process)
    say(f"the emulator runs at {places.endpoint} after {time.monotonic() - began:.1f} s")


def environment(places: Places) -> dict[str, str]:
    run = places.run
    return places.environment() | {
        "AUTH": "true",
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(places.port),
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
        "LOG_LEVEL": "WARNING",
        "PERSIST_STATE": "1",
        "STATE_DIR": str(run / "state"),
        "S3_PERSIST": "1",
        "S3_DATA_DIR": str(run / "s3"),
        "LAYER_CACHE": str(run / "layers"),
        # The emulator unpacks functions there: so they go with the state.
        "TMPDIR": str(run / "tmp"),
        "LAMBDA_PYTHON_3_13": str(places.python("runtime")),
    }


def version_of_repairs() -> str:
    lock = SCRIPTS / "requirements-emulator.txt"
    files = [lock, SCRIPTS / "process.py", *sorted((SCRIPTS / "emulator").glob("*.py"))]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def wait_healthy(places: Places, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            sys.exit(f"the emulator ended at once:\n{log_end(places)}")
        if health(places):
            return
        time.sleep(POLL_SECONDS)
    stop(places)
    sys.exit(f"the emulator was not healthy within {START_SECONDS} s:\n{log_end(places)}")


def health(places: Places) -> dict[str, object] | None:
    try:
        with urllib.request.urlopen(f"{places.endpoint}/_ministack/health", timeout=5) as answer:
            found: dict[str, object] = json.load(answer)
            return found
    except (urllib.error.URLError, TimeoutError, ConnectionError, ValueError):
        return None


def log_end(places: Places) -> str:
    lines = (places.run / "log").read_text(errors="replace").splitlines()
    return "\n".join(lines[-LOG_LINES:])


def stop(places: Places) -> None:
    """The state stays. Raises nothing when it does not run."""
    if not is_running(places):
        return
    pid = int((places.run / "pid").read_text())
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while is_running(places):
        if time.monotonic() > deadline:
            say(f"the emulator did not stop within {STOP_SECONDS} s: killing it")
            os.kill(pid, signal.SIGKILL)
            deadline = float("inf")
        time.sleep(POLL_SECONDS)
    (places.run / "pid").unlink(missing_ok=True)
    say("the emulator is stopped")


def drop_state(places: Places) -> None:
    shutil.rmtree(places.run, ignore_errors=True)


def has_state(places: Places) -> bool:
    return any((places.run / "state").glob("*.json"))


def require_running(places: Places) -> None:
    if not is_running(places):
        say(f"nothing runs on port {places.port}: start it with `make cloud`")
        sys.exit(NOT_RUNNING)


def is_running(places: Places) -> bool:
    try:
        with (places.run / "alive").open() as lock:
            # Shared: two that ask at once do not take each other for the emulator.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
