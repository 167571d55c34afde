"""Install the three virtual environments of the local cloud, each from its own lock.

They are three because sam and the emulator pin different versions of boto3, and neither may meet
the product's. An environment is made anew only when its lock or its Python changed.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from places import SCRIPTS, Places

UV_LOCK = SCRIPTS.parent / "requirements-uv.txt"
VENVS = ("sam", "emulator", "runtime")


def say(text: str) -> None:
    print(f"cloud: {text}", file=sys.stderr, flush=True)


def install(places: Places) -> None:
    """Bring all three up to their locks; a second caller waits for the first."""
    wanted = {venv: stamp(venv) for venv in VENVS}
    if all(is_installed(places, venv, mark) for venv, mark in wanted.items()):
        return
    with locked(places.cache / "cloud" / "install.lock"):
        uv = install_uv(places)
        for venv, mark in wanted.items():
            if not is_installed(places, venv, mark):
                install_venv(places, venv, mark, uv)


def use_emulator_python(places: Places) -> None:
    """Install what is missing, then run this program anew in the environment that has boto3."""
    install(places)
    python = places.python("emulator")
    if Path(sys.prefix) != python.parent.parent:
        os.execv(python, [str(python), *sys.argv])


def is_installed(places: Places, venv: str, mark: str) -> bool:
    file = places.venvs / venv / "installed"
    # The link breaks when the Python that it was made from is removed.
    return places.python(venv).exists() and file.is_file() and file.read_text() == mark


def stamp(venv: str) -> str:
    lock = hashlib.sha256(lock_file(venv).read_bytes()).hexdigest()
    return f"{lock} {real_runtime() if venv == 'runtime' else ''}\n"


def lock_file(venv: str) -> Path:
    return SCRIPTS / f"requirements-{venv}.txt"


def base_python(venv: str) -> str:
    """This Python; for the runtime, which is 3.13 in the template, a real one if there is one."""
    running = str(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}")
    return (real_runtime() if venv == "runtime" else "") or running


def real_runtime() -> str:
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    return max((str(found) for found in versions.glob("3.13.*/bin/python")), default="")


def install_uv(places: Places) -> Path:
    """The cache may have one already, from `make install`."""
    folder = places.cache / "uv"
    uv = folder / "bin" / "uv"
    if not uv.exists():
        say("installing uv")
        subprocess.run([base_python("emulator"), "-m", "venv", folder], check=True)
        pip = [str(folder / "bin" / "pip"), "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "--require-hashes", "-r", str(UV_LOCK)], check=True)
    return uv


def install_venv(places: Places, venv: str, mark: str, uv: Path) -> None:
    say(f"installing the {venv} environment (once)")
    folder = places.venvs / venv
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([uv, "venv", "-q", "-p", base_python(venv), folder], check=True)
    # Compiled now: where PYTHONDONTWRITEBYTECODE is set, each start would compile everything again.
    command = [str(uv), "pip", "install", "-q", "--compile-bytecode", "--require-hashes"]
    subprocess.run(
        [*command, "-p", str(places.python(venv)), "-r", str(lock_file(venv))], check=True
    )
    (folder / "installed").write_text(mark)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
