"""Builds the layers for Lambda (arm64, Python 3.13) and checks what is in them.

Every shared object has to be arm64, every module byte-compiled, all layers together under 250 MB
unzipped (Lambda's limit for a function and its layers).
"""

import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

LAYERS = {"dependencies": "DependenciesLayer", "search": "SearchLayer", "core": "CoreLayer"}
LIMIT_BYTES = 250_000_000
AARCH64 = 183  # e_machine of the ELF header
ROOT = Path(__file__).resolve().parent.parent


def python_313() -> str:
    """An interpreter of Lambda's minor version, to compile with; pyenv's when there is one."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = sorted(pyenv.glob("versions/3.13.*/bin/python"))
    return str(found[-1]) if found else "python3.13"


def build(name: str, target: str, into: Path) -> None:
    """Builds one layer as SAM does."""
    environment = {
        **os.environ,
        "ARTIFACTS_DIR": str(into),
        "UV": str(ROOT / ".venv/bin/uv"),
        "LAYER_PYTHON": python_313(),
        "ARCH": "aarch64",
        "LAYER_VERSION": "3.13",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = ["make", "-s", f"build-{target}"]
    subprocess.run(command, cwd=ROOT / "layers" / name, env=environment, check=True)


def problems(folder: Path) -> Iterator[str]:
    """Shared objects of another machine, and packages without byte code."""
    for path in sorted(folder.rglob("*.so*")):
        head = path.read_bytes()[:20]
        if head[:4] == b"\x7fELF" and struct.unpack_from("<H", head, 18)[0] != AARCH64:
            yield f"{path.relative_to(folder)} is not arm64"
    if not any(folder.rglob("*.cpython-313.pyc")):
        yield f"{folder.name} has no byte code of Python 3.13"


def size_of(folder: Path) -> int:
    """Bytes of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> int:
    """Builds, checks, prints sizes; exit code 1 if anything is wrong."""
    found: list[str] = []
    total = 0
    with tempfile.TemporaryDirectory() as work:
        for name, target in LAYERS.items():
            into = Path(work, name)
            into.mkdir()
            build(name, target, into)
            size = size_of(into)
            objects = len(list(into.rglob("*.so*")))
            total += size
            print(f"{name}: {size / 1e6:.0f} MB, {objects} shared objects, all arm64")
            found += [f"{name}: {problem}" for problem in problems(into)]
    if total > LIMIT_BYTES:
        found.append(f"together {total / 1e6:.0f} MB, over {LIMIT_BYTES / 1e6:.0f} MB")
    print("\n".join(found) or f"together {total / 1e6:.0f} MB, under 250 MB")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
