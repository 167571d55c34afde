"""A warm call costs what the function costs, not 90 ms more."""

import time

import pytest

pytestmark = pytest.mark.cloud


def test_a_warm_call_takes_milliseconds(cloud, outputs):
    cloud.invoke(outputs["Probe"], {"do": "nothing"})

    seconds = []
    for _ in range(40):
        began = time.perf_counter()
        cloud.invoke(outputs["Probe"], {"do": "nothing"})
        seconds.append(time.perf_counter() - began)

    # The best, because other work on this machine only ever adds. Unrepaired it is over 90 ms.
    assert min(seconds) < 0.045
