"""The one write path: every change of a document goes through `Writer.edit`.

    read revision -> pure edit -> ledger row begun -> put(replaces=revision) -> ledger row done
         ^                                                    |
         └──────────── Conflict: jitter, decide again ────────┘      until the deadline

An edit is a pure function from the current text to the new one, so that applying it again to
somebody else's newer text is the merge: what was removed meanwhile does not come back. The ledger
row is begun before the put, with the digest of the new text, so that after a crash between the two
the revisions tell whether the write happened: nothing is lost, nothing is done twice. The
idempotency key of a write is its `effect`.
"""

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import zip_longest

from instar.clock import Clock, Deadline, Sleep
from instar.errors import Conflict, InstarError, NotFound, TooLarge
from instar.ids import CallId, CheckpointId, NewId, SessionId, TurnId
from instar.memory.documents import DOCUMENT_BYTES
from instar.memory.ports import Document, Documents, Ledger, LedgerEntry

Edit = Callable[[str | None], str]
RETRY_SECONDS = 20.0
ABANDONED_AFTER = timedelta(seconds=120)


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorship:
    """Who writes, why, and the idempotency key of the call that does."""

    author: str
    reason: str
    session: SessionId | None = None
    turn: TurnId | None = None
    call: CallId | None = None
    effect: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What an edit led to. `changed` is False when the text was as wanted already."""

    key: str
    revision: str
    checkpoint: CheckpointId | None
    changed: bool


def digest(text: str) -> str:
    """SHA-256 of the text in UTF-8, hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def line_changes(old: str, new: str) -> tuple[int, int]:
    """Lines added and removed, counted as a multiset: cheap, and enough for the ledger."""
    before, after = old.splitlines(), new.splitlines()
    counts: dict[str, int] = {}
    for line in before:
        counts[line] = counts.get(line, 0) + 1
    added = 0
    for line in after:
        if counts.get(line, 0):
            counts[line] -= 1
        else:
            added += 1
    return added, len(before) - (len(after) - added)


class Writer:
    """Writes documents. `jitter` gives numbers in [0, 1) for the pauses between tries."""

    def __init__(
        self,
        documents: Documents,
        ledger: Ledger,
        *,
        clock: Clock,
        new_id: NewId,
        sleep: Sleep,
        jitter: Callable[[], float],
    ) -> None:
        self._documents = documents
        self._ledger = ledger
        self._clock = clock
        self._new_id = new_id
        self._sleep = sleep
        self._jitter = jitter
        # Threads of one process queue here; only other processes have to be raced.
        self._one_at_a_time = threading.Lock()

    def edit(
        self, key: str, edit: Edit, authorship: Authorship, *, replaces: str | None = None
    ) -> Written:
        """Applies the edit to the current text and writes the result.

        With `replaces` the current revision has to be that one. Raises what the edit raises,
        TooLarge for a document over its cap, Conflict when others kept winning until the deadline.
        """
        checkpoint = CheckpointId(self._new_id())
        deadline = Deadline.after(RETRY_SECONDS, self._clock)
        attempt = 0
        while True:
            try:
                with self._one_at_a_time:
                    return self._attempt(key, edit, authorship, checkpoint, replaces)
            except Conflict:
                attempt += 1
                if replaces is not None or deadline.has_passed():
                    self._ledger.finish(checkpoint, after=None)
                    raise
                self._sleep(min(0.5, 0.01 * 2 ** min(attempt, 6)) * self._jitter())
            except InstarError:
                self._ledger.finish(checkpoint, after=None)
                raise

    def _attempt(
        self,
        key: str,
        edit: Edit,
        authorship: Authorship,
        checkpoint: CheckpointId,
        replaces: str | None,
    ) -> Written:
        current = self._current(key)
        if replaces is not None and (current is None or current.revision != replaces):
            raise Conflict(
                f"{key} has changed: it is no longer at revision {replaces!r}",
                fix="Read it again, apply your change to what it is now, and send that.",
            )
        return self._try(key, current, edit, authorship, checkpoint)

    def _current(self, key: str) -> Document | None:
        try:
            return self._documents.get(key)
        except NotFound:
            return None

    def _try(
        self,
        key: str,
        current: Document | None,
        edit: Edit,
        authorship: Authorship,
        checkpoint: CheckpointId,
    ) -> Written:
        earlier = self.earlier(authorship.effect, key, checkpoint)
        if earlier is not None:
            return earlier
        old = "" if current is None else current.text
        new = edit(None if current is None else current.text)
        if current is not None and new == old:
            return Written(key=key, revision=current.revision, checkpoint=None, changed=False)
        size = len(new.encode("utf-8", "surrogatepass"))
        if size > DOCUMENT_BYTES and size > len(old.encode("utf-8", "surrogatepass")):
            raise TooLarge(
                f"{key} would have {size:,} bytes; a document holds at most {DOCUMENT_BYTES:,}",
                fix="Save it in another document, or remove what is no longer needed.",
            )
        added, removed = line_changes(old, new)
        row = LedgerEntry(
            checkpoint=checkpoint,
            key=key,
            at=self._clock(),
            author=authorship.author,
            reason=authorship.reason,
            before=None if current is None else current.revision,
            digest=digest(new),
            session=authorship.session,
            turn=authorship.turn,
            call=authorship.call,
            effect=_effect_on(authorship.effect, key),
            added=added,
            removed=removed,
        )
        begun = self._ledger.begin(row)
        if begun.checkpoint != checkpoint:  # the same effect came in between: let it win
            raise Conflict(f"the write {authorship.effect!r} of {key} is under way elsewhere")
        put = self._documents.put(key, new, replaces=row.before)
        self._ledger.finish(checkpoint, after=put.revision)
        return Written(key=key, revision=put.revision, checkpoint=checkpoint, changed=True)

    def earlier(
        self, effect: str | None, key: str, checkpoint: CheckpointId | None = None
    ) -> Written | None:
        """What an earlier try under this effect led to; None when there is none that wrote."""
        wanted = _effect_on(effect, key)
        if wanted is None:
            return None
        row = next((row for row in self._ledger.entries(key=key) if row.effect == wanted), None)
        if row is None or row.checkpoint == checkpoint:
            return None
        if row.state == "begun":
            row = self._settled(row)
        if row.state != "done" or row.after is None:
            return None
        return Written(key=key, revision=row.after, checkpoint=row.checkpoint, changed=True)

    def settle_unfinished(self) -> int:
        """Decides what became of writes that a crash interrupted; returns how many there were.

        Rows younger than two minutes may belong to a writer that still runs and are left alone.
        """
        before = self._clock() - ABANDONED_AFTER
        rows = [row for row in self._ledger.unfinished() if row.at < before]
        for row in rows:
            self._settled(row)
        return len(rows)

    def _settled(self, row: LedgerEntry) -> LedgerEntry:
        after = self._revision_after(row)
        self._ledger.finish(row.checkpoint, after=after)
        settled = list(self._ledger.entries(key=row.key))
        return next(other for other in settled if other.checkpoint == row.checkpoint)

    def _revision_after(self, row: LedgerEntry) -> str | None:
        """The newest revision that directly follows `row.before` and holds what the row wrote."""
        revisions = list(self._documents.revisions(row.key))
        for revision, previous in zip_longest(revisions, revisions[1:]):
            is_absent = previous is None or previous.deleted
            before = None if is_absent else previous.revision
            if before == row.before and not revision.deleted:
                text = self._documents.get(row.key, revision=revision.revision).text
                if digest(text) == row.digest:
                    return revision.revision
        return None


def _effect_on(effect: str | None, key: str) -> str | None:
    """One call may write several documents: each has its own idempotency key."""
    return None if effect is None else f"{effect}@{key}"
