"""`doctor` on a home: the shared checks, queues and disk; one digest over all that is kept."""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from instar.errors import Invalid
from instar.wiring.checks import Check, Examined, ok, warn
from instar.wiring.embedded import Embedded

FREE_BYTES = 200_000_000


def home_report(embedded: Embedded) -> dict[str, Any]:
    """The report of a home."""
    examined = Examined(
        agent=embedded.agent,
        settings=embedded.stores.settings,
        secret=embedded.stores.secret,
        model=embedded.model,
        embeddings=lambda: embedded.memory.embeddings,
        indexer=lambda: embedded.memory.indexer,
        documents=embedded.stores.documents,
        manifest=embedded.stores.manifest,
    )
    own = [("queues", lambda: _queues(embedded)), ("disk", lambda: _disk(embedded))]
    return examined.report([*examined.checks(), *own])


def _queues(embedded: Embedded) -> Check:
    dead = len(embedded.stores.turn_queue.dead()) + len(embedded.stores.delivery_queue.dead())
    if dead:
        return warn(f"{dead} messages could not be handled", "The log says why.")
    return ok("no message is stuck")


def _disk(embedded: Embedded) -> Check:
    free = shutil.disk_usage(embedded.stores.home.path).free
    if free < FREE_BYTES:
        return warn(f"{free / 1e6:.0f} MB are free", "Free some space: writes will be refused.")
    return ok(f"{free / 1e9:.1f} GB are free")


# --- digest --------------------------------------------------------------------------------------


def home_digest(embedded: Embedded) -> str:
    """SHA-256 over all that is kept but access: equal homes, equal digests."""
    total = hashlib.sha256()
    for part in _kept(embedded):
        total.update(json.dumps(part, sort_keys=True, ensure_ascii=False).encode("utf-8") + b"\n")
    return total.hexdigest()


def _kept(embedded: Embedded) -> Iterator[Mapping[str, Any]]:
    stores = embedded.stores
    for listed in stores.documents.list(""):
        revisions = stores.documents.revisions(listed.key)
        history = [
            None if row.deleted else _text_at(embedded, listed.key, row.revision)
            for row in revisions
        ]
        yield {"document": listed.key, "history": history}
    for entry in sorted(stores.ledger.entries(limit=10**9), key=lambda row: row.checkpoint):
        if entry.state == "done":
            yield {"checkpoint": entry.checkpoint, "key": entry.key, "digest": entry.digest}
    with stores.database.read() as connection:
        marks = connection.execute("SELECT agent, mark FROM tombstones ORDER BY 1, 2").fetchall()
    yield {"tombstones": [tuple(row) for row in marks]}
    for summary in sorted(stores.sessions.list(), key=lambda row: row.session):
        messages = stores.sessions.load(summary.session).messages
        yield {"session": summary.session, "messages": [m.model_dump_json() for m in messages]}


def _text_at(embedded: Embedded, key: str, revision: str) -> str:
    """The text of a revision, or what is wrong with it."""
    try:
        return embedded.stores.documents.get(key, revision=revision).text
    except Invalid as error:
        return error.detail
