"""Repair: Python functions run in the emulator's own interpreter, environment and idea of Lambda.

Unrepaired, a function sees this machine's variables and the emulator's packages, finds its layers
before its own code, and every exception is called `Runtime.HandlerError`. Seen as: no Retry or
Catch by class name ever matches. Repaired, python3.x functions go the way of `provided.*` ones,
under AWS's runtime client (awslambdaric) in an environment of their own.

A variable that names an API by its AWS host reaches the local API, so that the template needs no
parameter for it: the emulator serves `https://ID.execute-api.REGION.amazonaws.com/STAGE` (or
`wss://`) under a path of its one port.
"""

import hashlib
import io
import os
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ministack.core import lambda_runtime
from ministack.services import lambda_svc

from emulator.addresses import reach_local

PYTHONS = {
    "python" + name.removeprefix("LAMBDA_PYTHON_").replace("_", "."): path
    for name, path in os.environ.items()
    if name.startswith("LAMBDA_PYTHON_")
}
LAYER_CACHE = Path(os.environ.get("LAYER_CACHE") or tempfile.mkdtemp(prefix="layers-"))
HOST_VARIABLES = {
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "HOME",
    "AWS_CA_BUNDLE",
    "SSL_CERT_FILE",
}
RUNTIME_PREFIXES = ("AWS_", "LAMBDA_", "_")
BOOTSTRAP = '#!/bin/sh\nexec "$LAMBDA_PYTHON" -m awslambdaric "$_HANDLER"\n'

# Many workers may start at once, on layers that nobody has unpacked yet.
unpacking = threading.Lock()
type_of_worker = lambda_runtime._worker_class_for
execute_warm = lambda_svc._execute_function_warm
unpacked_code = lambda_svc._provided_runtime_code_dir
environment_of_worker = lambda_svc._provided_worker_env

Config = dict[str, Any]


def repair() -> None:
    lambda_runtime._worker_class_for = choose_worker
    lambda_svc._execute_function_warm = execute
    lambda_svc._provided_runtime_code_dir = unpack_code
    lambda_svc._provided_worker_env = build_environment


def is_python(config: Config) -> bool:
    return str(config.get("Runtime", "")) in PYTHONS


def choose_worker(config: Config) -> type:
    worker: type = lambda_runtime.ProvidedWorker if is_python(config) else type_of_worker(config)
    return worker


def execute(function: Config, event: Any, request_id: str) -> Config:
    python = is_python(function.get("config") or function)
    run = lambda_svc._execute_function_provided_warm if python else execute_warm
    answer: Config = run(function, event, request_id)
    return answer


def unpack_code(code_zip: bytes) -> str:
    folder: str = unpacked_code(code_zip)
    bootstrap = Path(folder, "bootstrap")
    if not bootstrap.exists():
        bootstrap.write_text(BOOTSTRAP)
        bootstrap.chmod(0o755)
    return folder


def build_environment(config: Config, code_folder: str, port: int) -> dict[str, str]:
    inherited: dict[str, str] = environment_of_worker(config, code_folder, port)
    if not is_python(config):
        return inherited
    own = (config.get("Environment") or {}).get("Variables") or {}
    environment = {
        name: value
        for name, value in inherited.items()
        if name in own or name in HOST_VARIABLES or name.startswith(RUNTIME_PREFIXES)
    }
    logs_json = (config.get("LoggingConfig") or {}).get("LogFormat") == "JSON"
    environment |= {
        "LAMBDA_PYTHON": PYTHONS[config["Runtime"]],
        "PYTHONPATH": os.pathsep.join([code_folder, *unpack_layers(config)]),
        "AWS_EXECUTION_ENV": "AWS_Lambda_" + config["Runtime"],
        "AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/" + config["FunctionName"],
        "AWS_LAMBDA_LOG_FORMAT": "JSON" if logs_json else "TEXT",
    }
    endpoint = environment.setdefault(
        "AWS_ENDPOINT_URL", f"http://127.0.0.1:{os.environ.get('GATEWAY_PORT', '4566')}"
    )
    return {name: reach_local(value, endpoint) for name, value in environment.items()}


def unpack_layers(config: Config) -> Iterator[str]:
    """Each once and for all workers: unrepaired, each worker unpacks every layer again."""
    for reference in config.get("Layers", []):
        content = lambda_svc._resolve_layer_zip(reference)
        if not content:
            continue
        folder = LAYER_CACHE / hashlib.sha256(content).hexdigest()[:20]
        with unpacking:
            if not folder.is_dir():
                LAYER_CACHE.mkdir(parents=True, exist_ok=True)
                unpacked = Path(tempfile.mkdtemp(dir=LAYER_CACHE))
                with zipfile.ZipFile(io.BytesIO(content)) as archive:
                    archive.extractall(unpacked)
                unpacked.rename(folder)
        yield str(folder / "python")
