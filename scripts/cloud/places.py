"""Where the local cloud keeps its things: one value that all of its commands share.

Everything that is not source lives in the cache folder, so that the work tree stays clean.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent
REPOSITORY = SCRIPTS.parent.parent
REGION = "us-east-1"
HOST_VARIABLES = ("HOME", "LANG", "LC_ALL", "PATH", "SSL_CERT_FILE", "TZ")
NOT_FOR_TOOLS = ("AWS_", "INSTAR_", "PYTHON")


@dataclass(frozen=True)
class Places:
    """The folders and the address of one local cloud."""

    cache: Path
    port: int
    template: Path
    stack: str

    @property
    def venvs(self) -> Path:
        return self.cache / "cloud" / "venvs"

    @property
    def run(self) -> Path:
        """What belongs to the emulator on this port."""
        return self.cache / "cloud" / "run" / str(self.port)

    @property
    def built(self) -> Path:
        return self.cache / "cloud" / "build" / f"{self.stack}-{self.port}"

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def python(self, venv: str) -> Path:
        return self.venvs / venv / "bin" / "python"

    def environment(self) -> dict[str, str]:
        """For what runs in the local cloud: nothing of this machine's that it could lean on."""
        kept = {name: os.environ[name] for name in HOST_VARIABLES if name in os.environ}
        return kept | self.address()

    def tools_environment(self) -> dict[str, str]:
        """For sam, uv and make, which may need this machine's proxies and package indexes."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(NOT_FOR_TOOLS)
        }
        tools = (self.venvs / "sam" / "bin", self.cache / "uv" / "bin")
        path = os.pathsep.join([*map(str, tools), kept.get("PATH", os.defpath)])
        own = {"PATH": path, "SAM_CLI_TELEMETRY": "0", "PYTHONWARNINGS": "ignore"}
        return kept | self.address() | own

    def address(self) -> dict[str, str]:
        """The emulator, whatever account this machine's own profile names."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            # Else boto3 asks for the host "sync-127.0.0.1" (StartSyncExecution, TestState).
            "AWS_DISABLE_HOST_PREFIX_INJECTION": "true",
            "NO_PROXY": "127.0.0.1,localhost",
        }


def read_places(template: Path | None = None, stack: str = "instar") -> Places:
    """Raises SystemExit when INSTAR_CLOUD_PORT is not a port."""
    cache = Path(os.environ.get("INSTAR_CACHE") or Path.home() / ".cache" / "instar")
    port = os.environ.get("INSTAR_CLOUD_PORT") or "4566"
    if not port.isdigit():
        sys.exit(f"INSTAR_CLOUD_PORT is not a port: {port}")
    template = template or REPOSITORY / "template.yaml"
    return Places(cache.expanduser().absolute(), int(port), template.absolute(), stack)
