"""Deploying into an AWS account: everything that can be known before is checked before.

    deploy.py check           template, policies, credentials, quotas, the model, the monthly price
    deploy.py deploy [--yes]  the same, then asks, builds, deploys, stores secrets, makes the key

Settings come from INSTAR_ variables, as in `make cloud`: they become the template's parameters;
secrets (`*_KEY`, `*_TOKEN`, `*_SECRET`) become SecureString parameters, never template parameters.
"""

import argparse
import os
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
sys.path.insert(0, str(ROOT / "scripts" / "cloud"))

from parameters import camel_case, parameters_in, quoted, secrets_in  # noqa: E402

STACK = os.environ.get("INSTAR_STACK", "instar")
CONCURRENCY_QUOTA = "L-B99A9384"  # Lambda: concurrent executions
# List prices of us-east-1, USD a month; docs/operations.md says how they add up.
PLATFORM = "0.35 to 0.75"
DOMAIN = "27.50"


@dataclass(frozen=True, slots=True)
class Result:
    """How a check ended: ok, warn or fail, and what to do."""

    status: str
    detail: str


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
    if not options.yes and input("Deploy at this price? [y/N] ").strip().lower() != "y":
        return 1
    deploy(environ)
    return 0


def checks(environ: Mapping[str, str]) -> Iterable[tuple[str, Callable[[], Result]]]:
    """All checks by name."""
    return (
        ("template", template),
        ("policies", policies),
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
            result = Result("fail", str(error))
        passed = passed and result.status != "fail"
        print(f"{result.status:5} {name}: {result.detail}")
    return passed


def template() -> Result:
    """cfn-lint over template.yaml."""
    linter = Path(sys.executable).parent / "cfn-lint"
    done = subprocess.run(
        [linter, ROOT / "template.yaml"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return Result("fail", done.stdout.strip().splitlines()[0])
    return Result("ok", "cfn-lint finds nothing")


def policies() -> Result:
    """No action and no resource of a policy is everything."""
    wide = sorted(too_wide((ROOT / "template.yaml").read_text("utf-8")))
    if wide:
        return Result("fail", f"these statements allow too much: {', '.join(wide)}")
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


def credentials() -> Result:
    """Whose account this would be."""
    identity = boto3.client("sts").get_caller_identity()
    return Result("ok", f"account {identity['Account']} as {identity['Arn']}")


def quotas() -> Result:
    """New accounts may run few functions at once."""
    quota = boto3.client("service-quotas").get_service_quota(
        ServiceCode="lambda", QuotaCode=CONCURRENCY_QUOTA
    )
    at_once = int(quota["Quota"]["Value"])
    if at_once < 50:
        return Result("warn", f"only {at_once} functions run at once; ask AWS for more")
    return Result("ok", f"{at_once} functions may run at once")


def model(environ: Mapping[str, str]) -> Result:
    """Whether the chosen model can be reached with what is set here."""
    choice = config.read(environ).models[0]
    if choice.provider == "demo":
        return Result("warn", "the demo model would answer: set INSTAR_MODEL")
    found = config.secrets_of(environ)
    if not choice.base_url and choice.key_name not in found:
        return Result("fail", f"{choice.key_variable} is not set")
    names = list_models(endpoint_of(choice, found.get), owner_client(Egress(), 20))
    if choice.name not in names:
        return Result("warn", f"{choice.name!r} is not among the {len(names)} models listed")
    return Result("ok", f"{choice.provider}/{choice.name} is there")


def price_lines(environ: Mapping[str, str]) -> list[str]:
    """The monthly price of what would be deployed."""
    own = environ.get("INSTAR_SEARCH_ENDPOINT")
    search = ("your own cluster", "0") if own else ("t3.small.search, 10 GB, always on", DOMAIN)
    return [
        "",
        "USD a month, light use (100 messages a day), us-east-1 list prices:",
        f"  Lambda, API Gateway, SQS, DynamoDB, S3, logs   {PLATFORM}",
        f"  OpenSearch: {search[0]:34} {search[1]}",
        "  the model                                      what its provider asks",
        "",
    ]


def deploy(environ: Mapping[str, str]) -> None:
    """Builds, deploys, stores secrets, makes the owner's key."""
    declared = yaml.load((ROOT / "template.yaml").read_text("utf-8"), _loader())["Parameters"]
    values = {name: value for name, value in parameters_in(environ).items() if name in declared}
    values.setdefault(camel_case("ARCHITECTURE"), "arm64")
    overrides = ["--parameter-overrides", *(quoted(*pair) for pair in sorted(values.items()))]
    _sam("build", "--cached", "--parallel", *overrides)
    _sam("deploy", "--stack-name", STACK, "--resolve-s3", "--capabilities", "CAPABILITY_IAM",
         "CAPABILITY_AUTO_EXPAND", "--no-fail-on-empty-changeset", *overrides)  # fmt: skip
    ssm = boto3.client("ssm")
    for name, value in secrets_in(environ).items():
        ssm.put_parameter(
            Name=f"/{STACK}/secrets/{name}", Value=value, Type="SecureString", Overwrite=True
        )
    subprocess.run([sys.executable, ROOT / "scripts" / "owner_key.py", STACK], check=True)
    outputs = boto3.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"][0]
    url = next(o["OutputValue"] for o in outputs["Outputs"] if o["OutputKey"] == "Url")
    print(f"Instar answers at {url}")
    print(f"Its owner key: aws ssm get-parameter --with-decryption --name /{STACK}/owner-key")


def _sam(*arguments: str) -> None:
    subprocess.run(["sam", *arguments], cwd=ROOT, check=True)


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
