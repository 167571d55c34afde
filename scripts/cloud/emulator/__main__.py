"""Start the emulator with all repairs: `python -m emulator`, in the emulator's own environment.

Read from the environment, besides the emulator's own variables: LAMBDA_PYTHON_3_13 (and so on) is
the interpreter that plays that Lambda runtime; LAYER_CACHE is where layers are unpacked;
CHECKPOINT_SECONDS is how much a crash may lose.
"""

import sys
from importlib.metadata import version

PINNED = "1.5.33"


def main() -> None:
    if version("ministack") != PINNED:
        sys.exit(f"the repairs are for ministack {PINNED}, found {version('ministack')}")

    # Not earlier: importing the emulator reads its settings and starts parts of it.
    import ministack.app  # noqa: PLC0415

    from emulator import (  # noqa: PLC0415
        checkpoints,
        fifo,
        http_api,
        latency,
        policies,
        runtime,
        scheduler,
        time_to_live,
    )

    repairs = (latency, runtime, http_api, fifo, policies, scheduler, time_to_live, checkpoints)
    for module in repairs:
        module.repair()
    sys.exit(ministack.app.main())


if __name__ == "__main__":
    main()
