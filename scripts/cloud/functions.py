"""The built functions, and how one of them runs alone under the runtime interface emulator."""

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulator.addresses import reach_local
from places import REGION, Places
from stack import Stack, read_template

FUNCTION_TYPE = "AWS::Serverless::Function"
PATH_OF_CALLS = "/2015-03-31/functions/function/invocations"
START_SECONDS, SPARE_SECONDS, POLL_SECONDS = 30, 30, 0.05


@dataclass(frozen=True)
class Function:
    """One function as `sam build` left it."""

    logical_id: str
    code: Path
    layers: tuple[Path, ...]


def find_functions(places: Places) -> dict[str, Function]:
    """By the name of their source folder: functions/document_changed is `document_changed`."""
    source = read_template(places.template)
    built = read_template(places.built / "template.yaml")
    found = {}
    for logical_id, resource in source["Resources"].items():
        if resource["Type"] == FUNCTION_TYPE:
            properties = built["Resources"][logical_id]["Properties"]
            shared = built.get("Globals", {}).get("Function", {})
            layers = [*shared.get("Layers", []), *properties.get("Layers", [])]
            found[Path(code_uri(source, resource)).name] = Function(
                logical_id,
                places.built / properties["CodeUri"],
                tuple(places.built / content_of(layer, built) / "python" for layer in layers),
            )
    return found


def code_uri(template: dict[str, Any], resource: dict[str, Any]) -> str:
    shared = template.get("Globals", {}).get("Function", {})
    return str((shared | resource["Properties"])["CodeUri"])


def content_of(layer: dict[str, str], built: dict[str, Any]) -> str:
    return str(built["Resources"][layer["Ref"]]["Properties"]["ContentUri"])


def function_of(event_name: str, functions: Mapping[str, Function]) -> str | None:
    """The longest name that begins the event's: `schedule_fired_late` is for `schedule_fired`."""
    fitting = [name for name in functions if f"{event_name}_".startswith(f"{name}_")]
    return max(fitting, key=len, default=None)


@contextmanager
def running(
    places: Places, emulator: Path, function: Function, log: Path | None
) -> Iterator[Callable[[bytes], str]]:
    """A function waiting for calls; its log goes to standard error if there is no file for it."""
    config = Stack(places).function(function.logical_id)
    calls, runtime = free_port(), free_port()
    command = [
        emulator,
        *("--log-level", "warn"),
        *("--runtime-interface-emulator-address", f"127.0.0.1:{calls}"),
        *("--runtime-api-address", f"127.0.0.1:{runtime}"),
        *(places.python("runtime"), "-m", "awslambdaric", config["Handler"]),
    ]
    output = None if log is None else log.open("wb")
    process = subprocess.Popen(
        command,
        cwd=function.code,
        env=environment(places, function, config),
        stdin=subprocess.DEVNULL,
        stdout=output or 2,
        stderr=output or 2,
    )
    try:
        wait_until_open(calls)
        yield lambda event: call(calls, event, config["Timeout"] + SPARE_SECONDS)
    finally:
        process.terminate()
        process.wait(timeout=10)
        if output:
            output.close()


def environment(places: Places, function: Function, config: dict[str, Any]) -> dict[str, str]:
    variables = config.get("Environment", {}).get("Variables", {})
    own = {name: reach_local(value, places.endpoint) for name, value in variables.items()}
    return (
        places.environment()
        | own
        | {
            "AWS_REGION": REGION,
            "AWS_LAMBDA_FUNCTION_NAME": config["FunctionName"],
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(config["MemorySize"]),
            "AWS_LAMBDA_FUNCTION_TIMEOUT": str(config["Timeout"]),
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "LAMBDA_TASK_ROOT": str(function.code),
            "_HANDLER": config["Handler"],
            # As on AWS: a function's own modules come before those of its layers.
            "PYTHONPATH": os.pathsep.join(map(str, (function.code, *function.layers))),
        }
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_open(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_SECONDS)
        else:
            return


def call(port: int, event: bytes, seconds: float) -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{PATH_OF_CALLS}", data=event)
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            body: bytes = answer.read()
    except urllib.error.HTTPError as error:
        body = error.read()
    return body.decode()
