"""`doctor` of a stack: the shared checks and the search engine."""

from dataclasses import dataclass
from typing import Any

from instar.errors import Invalid
from instar.ids import MAIN_AGENT
from instar.wiring.aws_memory import AwsMemory
from instar.wiring.aws_stores import AwsStores
from instar.wiring.checks import Check, Examined, ok
from instar.wiring.models import ModelSource


@dataclass(frozen=True, slots=True)
class StackDoctor:
    """Examines a stack from the inside of its API function."""

    stores: AwsStores
    memory: AwsMemory

    def report(self, digest: bool) -> dict[str, Any]:
        """The report of the stack. Raises Invalid for a digest: a home has one."""
        if digest:
            raise Invalid("a stack has no digest yet", fix="Leave out --digest.")
        source = self.stores.settings_source
        examined = Examined(
            agent=MAIN_AGENT,
            settings=source.settings,
            secret=source.secret,
            model=ModelSource(source.settings, source.secret, self.stores.egress).model,
            embeddings=lambda: self.memory.embeddings,
            indexer=lambda: self.memory.indexer,
            documents=self.stores.documents,
            manifest=self.stores.manifest,
        )
        return examined.report([*examined.checks(), ("search engine", self._search)])

    def _search(self) -> Check:
        held = self.memory.index.keys()
        passages = sum(counted.passages for counted in held.values())
        return ok(f"OpenSearch holds {passages} passages of {len(held)} documents")
