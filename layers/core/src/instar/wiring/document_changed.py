"""The indexer's function: looks at keys, brings everything level, goes on with vectors."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from instar import config
from instar.clock import Deadline
from instar.errors import InstarError, Unavailable
from instar.memory.documents import is_indexed
from instar.memory.index import Indexer
from instar.wiring.aws_memory import AwsMemory
from instar.wiring.aws_stores import AwsStores

log = logging.getLogger(__name__)
RESOURCES = ("DOCUMENTS_BUCKET", "LEDGER_TABLE", "SECRETS_PREFIX", "INSTAR_SEARCH_ENDPOINT")


@dataclass(frozen=True, slots=True)
class DocumentChanged:
    """What the function does with its three kinds of events."""

    indexer: Indexer

    def look(self, keys: Sequence[str], deadline: Deadline) -> dict[str, Any]:
        """Looks at each key once; raises Unavailable at the end when one failed."""
        failed: list[str] = []
        looked = [key for key in dict.fromkeys(keys) if is_indexed(key)]
        for key in looked:
            try:
                self.indexer.look(key)
            except InstarError as error:
                log.warning("look_failed", extra={"key": key, "type": error.type})
                failed.append(key)
        report = self.indexer.embed_pending(deadline)
        if failed:
            raise Unavailable(f"not indexed: {', '.join(failed)}")
        return {"looked": len(looked), "pending": report.pending}

    def level(self, deadline: Deadline) -> dict[str, Any]:
        """Compares everything and repairs what differs."""
        report = self.indexer.level()
        pending = self.indexer.embed_pending(deadline).pending
        return {
            "looked": len(report.looked_at),
            "dropped": len(report.dropped),
            "failed": len(report.failed),
            "refused": len(report.refused),
            "pending": pending,
        }


def build() -> DocumentChanged:
    """The use case, from the function's environment."""
    stores = AwsStores.bound(config.environment(), *RESOURCES)
    return DocumentChanged(AwsMemory(stores).indexer)
