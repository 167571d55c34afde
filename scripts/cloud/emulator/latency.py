"""Repair: every call of a function takes 40 to 100 ms too long.

The Runtime API sends header and body as two small packets, the second of which waits for a delayed
acknowledgement (40 ms); and a function that logs nothing is waited for in case it still does
(50 ms). Seen as: a warm call that does nothing takes 100 ms.
"""

import socketserver

from ministack.core import lambda_runtime

FIRST_LINE_SECONDS, QUIET_SECONDS, LONGEST_SECONDS = 0.004, 0.002, 0.1


def repair() -> None:
    socketserver.StreamRequestHandler.disable_nagle_algorithm = True
    waits = (FIRST_LINE_SECONDS, QUIET_SECONDS, LONGEST_SECONDS)
    lambda_runtime.Worker._drain_stderr_bounded.__defaults__ = waits
