"""What every change of memory shares: who asked for it and why, and when its text can be found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from instar.clock import Clock, Deadline, Sleep
from instar.ids import CallId
from instar.memory.documents import is_indexed
from instar.memory.ports import Manifest, Nudge, Revision
from instar.memory.write import Authorship
from instar.principal import Principal

INDEX_WAIT_SECONDS = 2.0
INDEX_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexMark:
    """How a writer learns that its text can be found: nudge the indexer, then read its mark.

    `revisions` are a document's, newest first: the mark of a later one is good, too.
    """

    revisions: Callable[[str], Sequence[Revision]]
    nudge: Nudge
    manifest: Manifest
    clock: Clock
    sleep: Sleep

    def reached(self, key: str, revision: str) -> bool:
        """Whether the words of that revision are searchable, within two seconds."""
        if not is_indexed(key):
            return False
        self.nudge(key)
        deadline = Deadline.after(INDEX_WAIT_SECONDS, self.clock)
        while True:
            row = self.manifest.get(key)
            if row is not None and self._is_reached(key, revision, row.revision):
                return row.state != "failed"
            if deadline.has_passed():
                return False
            self.sleep(INDEX_POLL_SECONDS)

    def _is_reached(self, key: str, revision: str, marked: str) -> bool:
        if marked == revision:
            return True
        ids = [found.revision for found in self.revisions(key)]
        return marked in ids[: ids.index(revision)] if revision in ids else False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a caller adds to a save: reason, idempotency key, and the tool call it came from."""

    reason: str
    effect: str | None = None
    call: CallId | None = None


def authorship(principal: Principal, asked: Asked) -> Authorship:
    """How the ledger names a write that this caller asked for."""
    return Authorship(
        author=principal.author if principal.turn is None else f"agent:{principal.agent}",
        reason=asked.reason,
        session=principal.session,
        turn=principal.turn,
        call=asked.call,
        effect=asked.effect,
    )
