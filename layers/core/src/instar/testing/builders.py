"""The things that many tests begin with: a home under way, and waiting with a limit."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from instar.adapters.local.sqlite_ledger import SqliteTombstones
from instar.ids import MAIN_AGENT, AgentId, new_id
from instar.memory.asking import IndexMark
from instar.memory.documents import PROMPT_DOCUMENT
from instar.memory.editor import MemoryEditor
from instar.memory.ports import Documents
from instar.memory.reader import MemoryReader
from instar.memory.removal import MemoryRemover
from instar.memory.write import Writer
from instar.principal import owner
from instar.testing.clock import MovingClock
from instar.wiring.embedded import Embedded
from instar.wiring.workers import Workers

T = TypeVar("T")
WORDS_ALONE = {"INSTAR_EMBEDDINGS": "none"}


def embedded_at(
    home: Path, environ: Mapping[str, str] | None = None, *, agent: AgentId = MAIN_AGENT
) -> Embedded:
    """The agent on that home, without vectors unless the environment says otherwise."""
    return Embedded.open(str(home), agent, {**WORDS_ALONE, **(environ or {})})


@contextmanager
def at_work(embedded: Embedded) -> Iterator[Workers]:
    """The home's workers, running until the block ends."""
    workers = Workers(embedded)
    workers.start()
    try:
        yield workers
    finally:
        workers.stop()


def eventually(found: Callable[[], T], *, seconds: float = 10.0, every: float = 0.02) -> T:
    """The first answer that is true; raises AssertionError with the last one after the limit."""
    until = time.monotonic() + seconds
    while True:
        answer = found()
        if answer:
            return answer
        if time.monotonic() > until:
            raise AssertionError(f"still {answer!r} after {seconds:g} seconds")
        time.sleep(every)


@dataclass(frozen=True)
class UnindexedMemory:
    """Memory's write path on a home whose nudges all get lost: quick, and nothing is similar."""

    embedded: Embedded
    clock: MovingClock = field(default_factory=MovingClock)

    @cached_property
    def writer(self) -> Writer:
        """The one write path, on a clock that a test moves."""
        return self.writer_over(self.embedded.stores.documents)

    def writer_over(self, documents: Documents) -> Writer:
        """The same over documents that a test has put something before."""
        return Writer(
            documents,
            self.embedded.stores.ledger,
            clock=self.clock,
            new_id=new_id,
            sleep=self.clock.sleep,
            jitter=lambda: 0.5,
        )

    @cached_property
    def editor(self) -> MemoryEditor:
        """Changes."""
        return MemoryEditor(self.embedded.stores.documents, self.writer, **self._rest())

    @cached_property
    def remover(self) -> MemoryRemover:
        """Removals."""
        return self.remover_over(self.embedded.stores.documents)

    def remover_over(self, documents: Documents) -> MemoryRemover:
        """The same over documents that a test has put something before."""
        return MemoryRemover(documents, self.writer_over(documents), **self._rest())

    @cached_property
    def reader(self) -> MemoryReader:
        """Reading by name."""
        return self.embedded.memory.reader

    def text(self, document: str = PROMPT_DOCUMENT, agent: str = MAIN_AGENT) -> str:
        """What a document says to its owner."""
        return self.reader.get(owner(AgentId(agent)), document).text

    def _rest(self) -> dict[str, Any]:
        stores = self.embedded.stores
        return {
            "tombstones": SqliteTombstones(stores.database),
            "mark_key": stores.mark_key,
            "index": IndexMark(
                revisions=stores.documents.revisions,
                nudge=lambda key: None,
                manifest=stores.manifest,
                clock=self.clock,
                sleep=lambda seconds: self.clock.sleep(max(seconds, 1.0)),
            ),
            "similar": lambda principal, text: (),
        }
