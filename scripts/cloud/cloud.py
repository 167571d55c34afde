"""The local cloud: the template that `make deploy` deploys, in an emulator on this machine.

    cloud.py up [--search opensearch|builtin]   install, start, build, deploy; again is fine
    cloud.py url | socket-url | key | outputs | status
    cloud.py down [--keep]                      stop; the state goes, unless it is kept

Only answers go to standard output. INSTAR_CLOUD_PORT (4566) is the one port, on the loopback
address; INSTAR_CACHE (~/.cache/instar) holds everything that is not source. IAM is enforced.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import parameters
import process
from install import locked, say, use_emulator_python
from places import SCRIPTS, Places, read_places

OUTPUT_OF = {"url": "Url", "socket-url": "SocketUrl"}
OWNER_KEY_OUTPUT = "OwnerKeyParameter"
OPENSEARCH = SCRIPTS.parent / "opensearch" / "start"


def main() -> None:
    options = read_options()
    places = read_places(options.template, options.stack)
    if options.verb == "down":
        down(places, keep=options.keep)
    elif options.verb == "up":
        use_emulator_python(places)
        with locked(places.cache / "cloud" / f"up-{places.port}.lock"):
            up(places, options.search)
    else:
        process.require_running(places)
        use_emulator_python(places)
        print(answer(places, options.verb))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The local cloud.")
    parser.add_argument("--template", type=Path, help="default: the repository's template.yaml")
    parser.add_argument("--stack", default="instar")
    verbs = parser.add_subparsers(dest="verb", required=True)
    up_parser = verbs.add_parser("up", help="install, start, build and deploy")
    up_parser.add_argument("--search", choices=("opensearch", "builtin"))
    for verb in ("url", "socket-url", "key", "outputs", "status"):
        verbs.add_parser(verb)
    verbs.add_parser("down").add_argument("--keep", action="store_true", help="keep the state")
    return parser.parse_args()


def up(places: Places, search: str | None) -> None:
    from stack import Stack, note_unknown, wanted_parameters  # noqa: PLC0415  (needs boto3)

    began = time.monotonic()
    search, endpoint = start_search(places, search)
    process.start(places)
    stack = Stack(places)
    wanted = wanted_parameters(search, endpoint)
    note_unknown(stack.declared)
    values = parameters.choose_parameters(stack.declared, wanted)
    stack.build(values)
    stack.deploy(values)
    stack.store_secrets(parameters.secrets_in(os.environ))
    make_owner_key(places, stack.outputs())
    say(f"ready after {time.monotonic() - began:.0f} s")
    print(stack.outputs().get(OUTPUT_OF["url"], places.endpoint))


def make_owner_key(places: Places, outputs: dict[str, str]) -> None:
    """As `make deploy` does it, with the product's own code; a foreign template has no owner."""
    if OWNER_KEY_OUTPUT not in outputs or "AccessTable" not in outputs:
        return
    python = SCRIPTS.parent.parent / ".venv" / "bin" / "python"
    subprocess.run(
        [python, SCRIPTS.parent / "owner_key.py", places.stack],
        env=places.tools_environment(),
        check=True,
    )


def start_search(places: Places, search: str | None) -> tuple[str, str | None]:
    """The engine and its endpoint. A cluster named in the environment is used as it is."""
    endpoint = os.environ.get("INSTAR_SEARCH_ENDPOINT") or None
    engine = search or os.environ.get("INSTAR_SEARCH_ENGINE") or "opensearch"
    if engine != "opensearch" or endpoint:
        return engine, endpoint
    # The node's data belong to the emulator's: both are kept, or both are new.
    keep = ["--keep"] if process.has_state(places) else []
    done = subprocess.run([OPENSEARCH, *keep], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit("the OpenSearch node did not start, see above; `--search builtin` needs none")
    places.run.mkdir(parents=True, exist_ok=True, mode=0o700)
    (places.run / "opensearch").touch()
    return engine, done.stdout.strip()


def down(places: Places, *, keep: bool) -> None:
    process.stop(places)
    if (places.run / "opensearch").exists():
        subprocess.run([OPENSEARCH, "--stop"], check=True)
        (places.run / "opensearch").unlink()
    if not keep:
        process.drop_state(places)


def answer(places: Places, verb: str) -> str:
    from stack import Stack  # noqa: PLC0415  (needs boto3)

    stack = Stack(places)
    if verb == "status":
        return status(places, stack.status())
    outputs = stack.outputs()
    if verb == "outputs":
        return json.dumps(outputs, indent=2, sort_keys=True)
    wanted = OWNER_KEY_OUTPUT if verb == "key" else OUTPUT_OF[verb]
    if wanted not in outputs:
        sys.exit(f"the stack {places.stack} has no output {wanted}")
    found = outputs[wanted]
    return stack.read_secret(found) if verb == "key" else found.rstrip("/")


def status(places: Places, stack_status: str | None) -> str:
    healthy = process.health(places) is not None
    pid = int((places.run / "pid").read_text())
    facts = {"endpoint": places.endpoint, "pid": pid, "healthy": healthy}
    return json.dumps(facts | {"stack": places.stack, "status": stack_status or "not deployed"})


if __name__ == "__main__":
    main()
