"""Call built functions alone, each under AWS's runtime interface emulator, without Docker.

    invoke.py FUNCTION EVENT.json     print what the function answers
    invoke.py --all events/           call every `<function>_<case>.json`, report each

FUNCTION is a folder of functions/ or a logical id. The code is what `sam build` built, with its
layers; the variables are those of the deployed function: the local cloud must be up. What a
function does, it does there. A call fails when the answer has an errorType: exit code 1.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import process
from install import locked, say, use_emulator_python
from places import Places, read_places

RIE_MODULE = "github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie"
RIE_VERSION = "v0.0.0-20261030222936-bef5c4ba774d"


def main() -> None:
    options = read_options()
    places = read_places(options.template, options.stack)
    process.require_running(places)
    use_emulator_python(places)
    emulator = install_rie(places)
    if options.all:
        sys.exit(invoke_all(places, emulator, options.all))
    sys.exit(invoke_one(places, emulator, options.function, options.event))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Call built functions alone.")
    parser.add_argument("--template", type=Path, help="default: the repository's template.yaml")
    parser.add_argument("--stack", default="instar")
    parser.add_argument("--all", type=Path, metavar="FOLDER")
    parser.add_argument("function", nargs="?")
    parser.add_argument("event", nargs="?", type=Path)
    options = parser.parse_args()
    if bool(options.all) == bool(options.event):
        parser.error("either FUNCTION EVENT.json or --all FOLDER")
    return options


def install_rie(places: Places) -> Path:
    """Built from its Go module, once."""
    folder = places.cache / "cloud" / f"rie-{RIE_VERSION.rsplit('-', 1)[-1]}"
    program = folder / "aws-lambda-rie"
    with locked(places.cache / "cloud" / "rie.lock"):
        if not program.exists():
            if not shutil.which("go"):
                sys.exit(
                    "go is needed, once, to build AWS's runtime interface emulator: install it"
                )
            say("building the runtime interface emulator (once)")
            command = ["go", "install", f"{RIE_MODULE}@{RIE_VERSION}"]
            subprocess.run(command, check=True, env=os.environ | {"GOBIN": str(folder)})
    return program


def invoke_one(places: Places, emulator: Path, name: str, event: Path) -> int:
    from functions import find_functions, running  # noqa: PLC0415  (needs boto3)

    built = find_functions(places)
    known = built | {function.logical_id: function for function in built.values()}
    if name not in known:
        sys.exit(f"no function {name}; there are {', '.join(sorted(built))}")
    with running(places, emulator, known[name], log=None) as call:
        answer = call(event.read_bytes())
    print(answer)
    return 1 if error_in(answer) else 0


def invoke_all(places: Places, emulator: Path, folder: Path) -> int:
    """The events of one function share its process, as they may on AWS."""
    from functions import find_functions, function_of, running  # noqa: PLC0415  (needs boto3)

    built = find_functions(places)
    events: dict[str, list[Path]] = {}
    for file in sorted(folder.glob("*.json")):
        events.setdefault(function_of(file.stem, built) or "", []).append(file)
    failed = [f"{file.stem}: no function's name begins it" for file in events.pop("", [])]
    passed = 0
    for name, files in events.items():
        log = places.run / f"invoke-{name}.log"
        with running(places, emulator, built[name], log) as call:
            for file in files:
                began = time.monotonic()
                error = error_in(call(file.read_bytes()))
                print(f"{'FAIL' if error else 'ok  '} {file.stem} {time.monotonic() - began:.2f} s")
                failed += [f"{file.stem}: {error} (log: {log})"] if error else []
                passed += not error
    print("\n".join([*failed, f"{passed} passed, {len(failed)} failed"]), flush=True)
    return 1 if failed or not passed else 0


def error_in(answer: str) -> str | None:
    try:
        found = json.loads(answer)
    except ValueError:
        return f"not JSON: {answer[:200]}"
    if isinstance(found, dict) and "errorType" in found:
        return f"{found['errorType']}: {found.get('errorMessage', '')}"
    return None


if __name__ == "__main__":
    main()
