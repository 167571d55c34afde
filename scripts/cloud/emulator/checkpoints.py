"""Repair: the emulator's state is written only when it is stopped in peace.

Seen as: after `kill -9`, tables, queues, parameters and stacks are as they were at the last start,
while objects in buckets are kept. Repaired, a thread saves every few seconds; what is younger than
that can still be lost, in all stores but the buckets.
"""

import logging
import os
import threading
import time
from typing import Any

from ministack import app
from ministack.core import persistence
from ministack.services import lambda_svc

logger = logging.getLogger(__name__)


def repair() -> None:
    if persistence.PERSIST_STATE:
        seconds = float(os.environ.get("CHECKPOINT_SECONDS", "5"))
        threading.Thread(target=save_forever, args=(seconds,), daemon=True).start()


def save_forever(seconds: float) -> None:
    saved = ""
    while True:
        time.sleep(seconds)
        try:
            services, current = app._build_persistence_save_dict(), functions_fingerprint()
            # Layers are most of the bytes: written only when a function or layer changed.
            if current == saved:
                services.pop("lambda", None)
            persistence.save_all(services)
            saved = current
        except Exception:  # keep serving: a store changed while it was read, the next may work
            logger.exception("checkpoint failed")


def functions_fingerprint() -> str:
    stores = (
        lambda_svc._functions,
        lambda_svc._layers,
        lambda_svc._esms,
        lambda_svc._function_urls,
        lambda_svc._kinesis_positions,
        lambda_svc._dynamodb_stream_positions,
    )
    return repr([without_content(getattr(store, "_data", store)) for store in stores])


def without_content(value: Any) -> Any:
    """The same structure with file contents replaced by their length."""
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, dict):
        return {key: without_content(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_content(item) for item in value]
    return value
