"""Memory's operations of the command line, on a home.

Before a question the index is brought level: no server may be there to do it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from instar.clock import Deadline, utc_now
from instar.errors import Invalid
from instar.memory.asking import Asked
from instar.memory.recall import SearchRequest
from instar.principal import Principal, owner
from instar.wiring.embedded import Embedded

VECTOR_SECONDS = 5.0


@dataclass(frozen=True)
class HomeMemoryDoor:
    """One method an operation."""

    embedded: Embedded

    @property
    def _principal(self) -> Principal:
        return owner(self.embedded.agent)

    def save(self, content: str, **options: Any) -> dict[str, Any]:
        """`memory save`."""
        editor = self.embedded.memory.editor
        saved = editor.save(self._principal, content, Asked(reason="saved"), **options)
        self._embed()
        return saved.json_value()

    def search(self, **request: Any) -> dict[str, Any]:
        """`memory search`: brings the index level first."""
        self.embedded.memory.indexer.level()
        self._embed()
        try:
            asked = SearchRequest.model_validate(request)
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False)[0]
            raise Invalid(
                f"{found['loc'][0]}: {found['msg']}", fix="Times are ISO 8601 with a zone."
            ) from error
        return self.embedded.memory.recall.search(self._principal, asked).json_value()

    def get(
        self, document: str, lines: list[int] | None = None, revision: str | None = None
    ) -> dict[str, Any]:
        """`memory get`."""
        span = (lines[0], lines[1]) if lines else None
        found = self.embedded.memory.reader.get(
            self._principal, document, lines=span, revision=revision
        )
        return found.json_value()

    def delete(self, content: str) -> dict[str, Any]:
        """`memory delete`."""
        self.embedded.memory.indexer.level()
        remover = self.embedded.memory.remover
        return remover.delete(self._principal, content, Asked(reason="deleted")).json_value()

    def history(self, document: str) -> dict[str, Any]:
        """`memory history`."""
        return self.embedded.memory.reader.history(self._principal, document).json_value()

    def diff(self, document: str, old: str, new: str) -> dict[str, Any]:
        """`memory diff`."""
        return self.embedded.memory.reader.diff(self._principal, document, old, new).json_value()

    def restore(self, document: str, revision: str) -> dict[str, Any]:
        """`memory restore`."""
        asked = Asked(reason=f"restored {revision}")
        editor = self.embedded.memory.editor
        return editor.restore(self._principal, document, revision, asked).json_value()

    def rebuild(self) -> dict[str, Any]:
        """`index rebuild`."""
        return dict(self.embedded.memory.rebuild())

    def _embed(self) -> None:
        """Vectors of what is new, within a few seconds; the rest stays visibly pending."""
        if not self.embedded.stores.home.server_running():
            deadline = Deadline.after(VECTOR_SECONDS, utc_now)
            self.embedded.memory.indexer.embed_pending(deadline)


def memory_operations(embedded: Embedded) -> dict[str, Callable[..., dict[str, Any]]]:
    """Memory's operations by name."""
    door = HomeMemoryDoor(embedded)
    return {
        "memory.save": door.save,
        "memory.search": door.search,
        "memory.get": door.get,
        "memory.delete": door.delete,
        "memory.history": door.history,
        "memory.diff": door.diff,
        "memory.restore": door.restore,
        "index.rebuild": door.rebuild,
    }
