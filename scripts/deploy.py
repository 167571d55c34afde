"""Deploying into an AWS account: everything that can be known before is checked before.

    deploy.py check           template, policies, credentials, quotas, the model, the monthly price
    deploy.py deploy [--yes]  the same, then asks, builds, deploys, stores secrets, makes the key

Settings come from INSTAR_ variables, as in `make cloud`: they become the template's parameters;
secrets (`*_KEY`, `*_TOKEN`, `*_SECRET`) become SecureString parameters, never template parameters.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import yaml
from botocore.exceptions import BotoCoreError, ClientError

from instar import config
from instar.adapters.http import Egress
from instar.adapters.llm.openai_chat import list_models
from instar.errors import InstarError
from instar.wiring.models import endpoint_of, owner_client

ROOT = Path(__file__).resolve().parent.parent
TEMPLATE = ROOT / "template.yaml"
sys.path.insert(0, str(ROOT / "scripts" / "cloud"))

from install import install_uv, install_venv, is_installed, locked, real_runtime, stamp  # noqa: E402
from parameters import choose_parameters, parameters_in, quoted, secrets_in  # noqa: E402
from places import Places, read_places  # noqa: E402

STACK = os.environ.get("INSTAR_STACK", "instar")
CONCURRENCY_QUOTA = "L-B99A9384"  # Lambda: concurrent executions
FEW_AT_ONCE = 50
LAMBDA_PYTHON = "3.13"
# USD a month, list prices of us-east-1, 100 messages a day; docs/operations.md adds them up.
PLATFORM = ("0.35", "0.75")
ENGINES = {
    "a domain of this stack (t3.small.search, 10 GB, always on)": "27.50",
    "your own cluster (INSTAR_SEARCH_ENDPOINT)": "0.00",
}
MODELS = {"small": "2.70", "middle-sized, cached": "22", "large, cached": "67"}
HINTS = {
    "credentials": "Run `aws configure`, or set AWS_PROFILE and AWS_REGION.",
    "quotas": "Look under Service Quotas, AWS Lambda, concurrent executions.",
}


@dataclass(frozen=True, slots=True)
class Result:
    """How a check ended (ok, warn, fail), what it found, and what to do about it."""

    status: str
    detail: str
    fix: str = ""


def main() -> int:
    """Runs the verb; exit code 1 when a check failed or the owner said no."""
    parser = argparse.ArgumentParser(description="Deploy Instar into an AWS account.")
    parser.add_argument("verb", choices=("check", "deploy"))
    parser.add_argument("--yes", action="store_true", help="do not ask")
    options = parser.parse_args()
    environ = dict(os.environ)
    passed = report(checks(environ))
    print("\n".join(price_lines(environ)))
    if options.verb == "check" or not passed:
        return 0 if passed else 1
    if not options.yes and not is_yes(ask):
        print("Nothing was deployed.")
        return 1
    deploy(environ)
    return 0


def ask() -> str:
    return input("Deploy at this price? [y/N] ")


def is_yes(asking: Callable[[], str]) -> bool:
    """Whether the owner said so; where nobody can be asked, nobody did."""
    try:
        return asking().strip().lower() in ("y", "yes")
    except EOFError:
        return False


def checks(environ: Mapping[str, str]) -> Iterable[tuple[str, Callable[[], Result]]]:
    """All checks by name."""
    return (
        ("template", template),
        ("sam", sam),
        ("python", python),
        ("policies", policies),
        ("settings", lambda: settings(environ)),
        ("credentials", credentials),
        ("quotas", quotas),
        ("model", lambda: model(environ)),
    )


def report(named: Iterable[tuple[str, Callable[[], Result]]]) -> bool:
    """Makes and prints every check; one that fails never stops the others."""
    passed = True
    for name, check in named:
        try:
            result = check()
        except (BotoCoreError, ClientError, InstarError, OSError) as error:
            result = Result("fail", str(error), getattr(error, "fix", "") or HINTS.get(name, ""))
        passed = passed and result.status != "fail"
        print(f"{result.status:5} {name}: {result.detail}")
        if result.fix:
            print(f"      {result.fix}")
    return passed


def template() -> Result:
    """cfn-lint over template.yaml."""
    return _linted("cfn-lint", Path(sys.executable).parent / "cfn-lint", TEMPLATE)


def sam() -> Result:
    """`sam validate --lint`, where a deployment has installed sam before."""
    places = read_places()
    if not is_installed(places, "sam", stamp("sam")):
        return Result(
            "warn",
            "not installed yet, so it has not looked at the template",
            "`make deploy` installs it.",
        )
    program = places.python("sam").with_name("sam")
    region = ("--region", "us-east-1")  # it wants one even to lint
    command = (program, "validate", "--lint", *region, "--template-file", TEMPLATE)
    return _linted("sam validate", *command)


def python() -> Result:
    """The layers are compiled by the very Python that runs in Lambda."""
    found = real_runtime() or shutil.which(f"python{LAMBDA_PYTHON}")
    if found is None:
        return Result(
            "fail",
            f"there is no Python {LAMBDA_PYTHON} to compile the layers with",
            f"Install it: python{LAMBDA_PYTHON} on the PATH, or `pyenv install {LAMBDA_PYTHON}`.",
        )
    return Result("ok", found)


def _linted(name: str, *command: str | Path) -> Result:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, env=tool_environment()
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines() or [f"exit code {done.returncode}"]
        return Result("fail", f"{name}: {said[0]}", "Correct template.yaml.")
    return Result("ok", f"{name} finds nothing")


def policies() -> Result:
    """No action and no resource of a policy is everything."""
    wide = sorted(set(too_wide(TEMPLATE.read_text("utf-8"))))
    if wide:
        return Result(
            "fail",
            f"allowed more than they need: {', '.join(wide)}",
            "Name the actions and the resources in template.yaml.",
        )
    return Result("ok", "no role has a star")


def too_wide(text: str) -> Iterable[str]:
    """The statements of functions that allow all actions or all resources."""
    for name, resource in yaml.load(text, _loader())["Resources"].items():
        properties = resource.get("Properties") or {}
        for policy in properties.get("Policies") or []:
            for statement in _statements(policy.get("Statement")):
                words = [*_listed(statement.get("Action")), *_listed(statement.get("Resource"))]
                if any(word == "*" or str(word).endswith(":*") for word in words):
                    yield name


def settings(environ: Mapping[str, str]) -> Result:
    """Whether every INSTAR_ variable set here means something to the stack."""
    config.read(environ)
    given = parameters_in(
        {name: value for name, value in environ.items() if name != "INSTAR_STACK"}
    )
    unknown = sorted(set(given) - set(declared()))
    if unknown:
        return Result(
            "warn",
            f"no parameters of the template, so ignored: {', '.join(unknown)}",
            "What is a setting can stand in the bucket's config.toml.",
        )
    return Result("ok", f"{len(given)} settings and {len(secrets_in(environ))} secrets go along")


def credentials() -> Result:
    """Whose account this would be."""
    identity = boto3.client("sts").get_caller_identity()
    return Result("ok", f"account {identity['Account']} as {identity['Arn']}")


def quotas() -> Result:
    """New accounts may run few functions at once."""
    try:
        quota = boto3.client("service-quotas").get_service_quota(
            ServiceCode="lambda", QuotaCode=CONCURRENCY_QUOTA
        )
    except ClientError as error:
        return Result("warn", f"not known: {error}", HINTS["quotas"])
    return of_quota(quota["Quota"]["Value"])


def of_quota(value: float) -> Result:
    """What it means to run so many functions at once."""
    if value < FEW_AT_ONCE:
        return Result(
            "warn",
            f"only {value:g} functions may run at once, so calls may wait",
            f"Ask AWS for more under Service Quotas ({CONCURRENCY_QUOTA}).",
        )
    return Result("ok", f"{value:g} functions may run at once")


def model(environ: Mapping[str, str]) -> Result:
    """Whether the chosen model can be reached with what is set here."""
    choice = config.read(environ).models[0]
    if choice.provider == "demo":
        return Result(
            "warn",
            "the demo model would answer, which has no intelligence",
            "Set INSTAR_MODEL, and INSTAR_MODEL_API_KEY or INSTAR_MODEL_BASE_URL.",
        )
    found = config.secrets_of(environ)
    if not choice.base_url and choice.key_name not in found:
        return Result("fail", f"{choice.key_variable} is not set", "Set it, or a base URL.")
    names = list_models(endpoint_of(choice, found.get), owner_client(Egress(), 20))
    if choice.name not in names:
        return Result(
            "warn",
            f"{choice.name!r} is not among the {len(names)} models listed",
            "Choose one that is, unless the provider lists not all.",
        )
    return Result("ok", f"{choice.provider}/{choice.name} is there")


def price_lines(environ: Mapping[str, str]) -> list[str]:
    """The monthly price by search engine; the one that would be deployed is marked."""
    made, own = ENGINES
    chosen = own if environ.get("INSTAR_SEARCH_ENDPOINT") else made
    low, high = (f"{float(each) + float(ENGINES[chosen]):.2f}" for each in PLATFORM)
    rows = [
        ("functions, gateway, queues, tables, bucket, logs", " to ".join(PLATFORM)),
        *(
            (f"{'->' if name == chosen else '  '} search: {name}", price)
            for name, price in ENGINES.items()
        ),
        ("together, without the model", f"{low} to {high}"),
        *((f"beside it, a {name} model", f"about {price}") for name, price in MODELS.items()),
    ]
    return [
        "",
        "USD a month for 100 messages a day, list prices of us-east-1 (the domain also idle):",
        *(f"  {name:72} {price:>14}" for name, price in rows),
        "",
    ]


def deploy(environ: Mapping[str, str]) -> None:
    """Builds, deploys, stores secrets, makes the owner's key."""
    places = read_places(stack=STACK)
    values = choose_parameters(declared(), parameters_in(environ))
    overrides = ["--parameter-overrides", *(quoted(*pair) for pair in sorted(values.items()))]
    architecture = values["Architecture"]
    built = places.cache / "cloud" / "build" / f"{STACK}-aws-{architecture}"
    program, variables = sam_with_layers(places, architecture)

    # The cache cannot see for which machine the layers are, so each has its own.
    cache = built.with_name(f"{built.name}-cache")
    folders = ("--build-dir", built, "--cache-dir", cache, "--template-file", TEMPLATE)
    target = ("--template-file", built / "template.yaml", "--stack-name", STACK, "--resolve-s3")
    allowed = ("--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND")
    quiet = ("--no-confirm-changeset", "--no-fail-on-empty-changeset")
    commands: tuple[tuple[str | Path, ...], ...] = (
        ("build", "--cached", "--parallel", *folders, *overrides),
        ("deploy", *target, *allowed, *quiet, *overrides),
    )
    for command in commands:
        subprocess.run([program, *command], cwd=ROOT, check=True, env=variables)
    store_secrets(boto3.client("ssm"), secrets_in(environ))
    subprocess.run([sys.executable, ROOT / "scripts" / "owner_key.py", STACK], check=True)
    stack = boto3.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"][0]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]}
    print(f"Instar answers at {outputs['Url']}")
    print("Its owner key: aws ssm get-parameter --with-decryption --query Parameter.Value "
          f"--output text --name {outputs['OwnerKeyParameter']}")  # fmt: skip


def store_secrets(ssm: Any, secrets: Mapping[str, str]) -> None:
    """Keeps them where the functions read them; nothing is printed of them but their names."""
    for name, value in sorted(secrets.items()):
        ssm.put_parameter(
            Name=f"/{STACK}/secrets/{name}", Value=value, Type="SecureString", Overwrite=True
        )
        print(f"stored the secret {name}")


def sam_with_layers(places: Places, architecture: str) -> tuple[Path, dict[str, str]]:
    """The pinned sam, installed when it is missing, and the variables that its build needs."""
    with locked(places.cache / "cloud" / "install.lock"):
        uv = install_uv(places)
        if not is_installed(places, "sam", stamp("sam")):
            install_venv(places, "sam", stamp("sam"), uv)
    layers = {
        "ARCH": "x86_64" if architecture == "x86_64" else "aarch64",
        "LAYER_VERSION": LAMBDA_PYTHON,
        "UV": str(uv),
    }
    compiler = real_runtime()
    if compiler:
        layers["LAYER_PYTHON"] = compiler
    return places.python("sam").with_name("sam"), tool_environment() | layers


def tool_environment() -> dict[str, str]:
    """This machine's, without what is set for other Pythons."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return kept | {"SAM_CLI_TELEMETRY": "0"}


def declared() -> dict[str, str | None]:
    """The template's parameters with their defaults."""
    found = yaml.load(TEMPLATE.read_text("utf-8"), _loader())["Parameters"]
    return {name: str(given["Default"]) for name, given in found.items()}


def _statements(value: Any) -> list[dict[str, Any]]:
    """The statements, those inside an !If included."""
    if isinstance(value, dict):
        return [value]
    return [each for item in value for each in _statements(item)] if isinstance(value, list) else []


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _loader() -> type[yaml.SafeLoader]:
    """YAML whose CloudFormation tags become their plain content."""

    class Loader(yaml.SafeLoader):
        pass

    def content(loader: Any, _tag: str, node: yaml.Node) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return loader.construct_scalar(node)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return loader.construct_mapping(node, deep=True)

    Loader.add_multi_constructor("!", content)
    return Loader


if __name__ == "__main__":
    sys.exit(main())
