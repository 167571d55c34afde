"""`instar serve`: the page, the API and the channels of one home, in one process."""

import logging
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import uvicorn

from instar import __version__
from instar.access.keyring import SETUP
from instar.web.app import create_app
from instar.web.hosts import HostRules
from instar.web.services import Services
from instar.wiring.doctor import home_digest, home_report
from instar.wiring.embedded import Embedded
from instar.wiring.setup import ModelSetup
from instar.wiring.workers import Workers

DEFAULT_PORT = 8420
SOCKET_BYTES = 1_048_576


def services_of(embedded: Embedded) -> Services:
    """The use cases behind the routes of a home."""
    return Services(
        version=__version__,
        agent=embedded.agent,
        keyring=embedded.keyring,
        ingest=embedded.ingest,
        sessions=embedded.stores.sessions,
        turns=embedded.stores.turns,
        stops=embedded.stops,
        editor=embedded.memory.editor,
        remover=embedded.memory.remover,
        reader=embedded.memory.reader,
        recall=embedded.memory.recall,
        outside=embedded.outside,
        webhooks=embedded.webhooks,
        setup=ModelSetup(
            settings=embedded.stores.settings,
            secret=embedded.stores.secret,
            secrets=embedded.stores.secrets,
            writer=embedded.memory.writer,
            egress=embedded.stores.egress,
            environ=embedded.stores.environ,
        ),
        doctor=partial(_doctor, embedded),
        socket_url=lambda: "",
    )


def _doctor(embedded: Embedded, digest: bool) -> Mapping[str, Any]:
    return {"digest": home_digest(embedded)} if digest else home_report(embedded)


def serve(embedded: Embedded, host: str, allowed: tuple[str, ...], port: int | None) -> None:
    """Serves until interrupted. Raises Conflict when another process serves this home."""
    port = port or int(embedded.stores.environ.get("INSTAR_PORT") or DEFAULT_PORT)
    with embedded.stores.home.serve_lock():
        workers = Workers(embedded)
        workers.start()
        app = create_app(services_of(embedded), hosts=HostRules(names=frozenset(allowed)))
        _say_where(embedded, port)
        try:
            uvicorn.run(
                app,
                host=host,
                port=port,
                log_level="warning",
                server_header=False,
                ws_max_size=SOCKET_BYTES,
            )
        finally:
            workers.stop()


def _say_where(embedded: Embedded, port: int) -> None:
    """Prints the one-time link; its code stands in the fragment, which no server sees."""
    logging.captureWarnings(capture=True)
    link = f"http://127.0.0.1:{port}/#setup={embedded.keyring.grant(SETUP)}"
    lines = [
        f"Instar {__version__} serves {embedded.stores.home.path}",
        f"Open {link}",
        "The link works once, for ten minutes. Ctrl-C stops Instar.",
    ]
    if embedded.stores.settings().models[0].provider == "demo":
        lines.append("No model is set up yet: the demo model answers until you choose one there.")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
