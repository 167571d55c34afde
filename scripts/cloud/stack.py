"""Build the template with sam, deploy it into the emulator, and read what came of it."""

import os
import platform
import subprocess
import sys
import time
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3
import yaml
from botocore.config import Config
from botocore.exceptions import ClientError

import parameters
from emulator.addresses import reach_local
from install import say
from places import REGION, Places

FAILED_AT_BIRTH = {"ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED", "REVIEW_IN_PROGRESS"}
CAPABILITIES = ("CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND")
LOG_LINES = 40


class Stack:
    """One template in one emulator."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.environment = places.tools_environment() | target_of_layers(places)

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.places.endpoint,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(inject_host_prefix=False),
        )

    @cached_property
    def declared(self) -> dict[str, str | None]:
        """The template's parameters with their defaults."""
        found = read_template(self.places.template).get("Parameters") or {}
        return {name: default_of(given) for name, given in found.items()}

    def build(self, values: dict[str, str]) -> None:
        layers = f"{self.environment['ARCH']}-{self.environment['LAYER_VERSION']}"
        # The cache cannot see these two variables, so each pair of them has its own.
        cache = self.places.cache / "cloud" / "build-cache" / f"{self.places.stack}-{layers}"
        self.sam(
            "build",
            *("--cached", "--parallel", "--template-file", str(self.places.template)),
            *("--build-dir", str(self.places.built), "--cache-dir", str(cache)),
            *overrides(values),
        )

    def deploy(self, values: dict[str, str]) -> None:
        self.delete_failed()
        self.sam(
            "deploy",
            *("--template-file", str(self.places.built / "template.yaml")),
            *("--stack-name", self.places.stack, "--resolve-s3", "--no-progressbar"),
            *("--no-confirm-changeset", "--no-fail-on-empty-changeset"),
            *("--capabilities", *CAPABILITIES),
            *overrides(values),
        )

    def sam(self, verb: str, *arguments: str) -> None:
        began = time.monotonic()
        log = self.places.run / f"{verb}.log"
        # An empty configuration: the repository's own is for AWS, with regions and profiles.
        config = self.places.run / "samconfig.toml"
        config.write_text("version = 0.1\n")
        command = ["sam", verb, *arguments, "--region", REGION, "--config-file", str(config)]
        with log.open("wb") as output:
            done = subprocess.run(
                command,
                cwd=self.places.template.parent,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
            )
        if done.returncode:
            lines = log.read_text(errors="replace").splitlines()
            sys.exit("\n".join([*lines[-LOG_LINES:], f"sam {verb} failed; all of it: {log}"]))
        say(f"sam {verb} took {time.monotonic() - began:.1f} s")

    def delete_failed(self) -> None:
        """A stack whose first deployment failed can only be deleted."""
        if self.status() in FAILED_AT_BIRTH:
            say("deleting what a failed first deployment left")
            formation = self.client("cloudformation")
            formation.delete_stack(StackName=self.places.stack)
            waiter = formation.get_waiter("stack_delete_complete")
            waiter.wait(StackName=self.places.stack, WaiterConfig={"Delay": 1, "MaxAttempts": 60})

    def status(self) -> str | None:
        described = self.describe()
        return described["StackStatus"] if described else None

    def describe(self) -> dict[str, Any] | None:
        try:
            found = self.client("cloudformation").describe_stacks(StackName=self.places.stack)
        except ClientError as error:
            if "does not exist" in str(error):
                return None
            raise
        stacks: list[dict[str, Any]] = found["Stacks"]
        return stacks[0]

    def outputs(self) -> dict[str, str]:
        """With the addresses that work here."""
        described = self.describe()
        if described is None:
            sys.exit(f"the stack {self.places.stack} is not deployed: run `make cloud`")
        return {
            given["OutputKey"]: reach_local(given["OutputValue"], self.places.endpoint)
            for given in described.get("Outputs", [])
        }

    def function(self, logical_id: str) -> dict[str, Any]:
        """The deployed function's configuration."""
        found = self.client("cloudformation").describe_stack_resource(
            StackName=self.places.stack, LogicalResourceId=logical_id
        )
        name = found["StackResourceDetail"]["PhysicalResourceId"]
        config: dict[str, Any] = self.client("lambda").get_function_configuration(FunctionName=name)
        return config

    def store_secrets(self, secrets: dict[str, str]) -> None:
        store = self.client("ssm")
        for name, value in secrets.items():
            store.put_parameter(
                Name=f"/{self.places.stack}/secrets/{name}",
                Value=value,
                Type="SecureString",
                Overwrite=True,
            )
        if secrets:
            say(f"stored as secrets: {', '.join(sorted(secrets))}")

    def read_secret(self, name: str) -> str:
        found = self.client("ssm").get_parameter(Name=name, WithDecryption=True)
        return str(found["Parameter"]["Value"])


class TemplateLoader(yaml.SafeLoader):
    """Reads a template's short functions as their long forms, values as text: {"Ref": "Name"}."""


TemplateLoader.add_multi_constructor("!", lambda _loader, tag, node: {tag: str(node.value)})


def read_template(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(file.read_text(), Loader=TemplateLoader)
    return found


def default_of(parameter: dict[str, Any]) -> str | None:
    given = parameter.get("Default")
    if isinstance(given, bool):
        return str(given).lower()
    return None if given is None else str(given)


def overrides(values: dict[str, str]) -> list[str]:
    pairs = [parameters.quoted(name, value) for name, value in values.items()]
    return ["--parameter-overrides", *pairs] if pairs else []


def architecture() -> str:
    return "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"


def target_of_layers(places: Places) -> dict[str, str]:
    """Layers hold native code: here they are for this machine and the Python that plays 3.13."""
    python = places.python("runtime")
    ask = [str(python), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    version = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()
    arch = "aarch64" if architecture() == "arm64" else "x86_64"
    return {"ARCH": arch, "LAYER_VERSION": version, "LAYER_PYTHON": str(python)}


def wanted_parameters(search: str | None, endpoint: str | None) -> dict[str, str]:
    wanted = {"Architecture": architecture()} | parameters.parameters_in(os.environ)
    if search:
        wanted["SearchEngine"] = search
    if endpoint:
        wanted["SearchEndpoint"] = endpoint
    return wanted


def note_unknown(declared: dict[str, str | None]) -> None:
    given = parameters.parameters_in(os.environ)
    unknown = sorted(set(given) - set(declared))
    if unknown:
        say(f"not parameters of this template, so ignored: {', '.join(unknown)}")
