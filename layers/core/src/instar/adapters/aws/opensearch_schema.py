"""The index in OpenSearch: its names, its mapping, how it comes to be and what makes it go.

    instar-passages-1.1     the alias, version of schema and analysis: all that is read and written
    instar-passages-1.1-1   the index behind it: passages and, as entries of their own, documents

A passage is one entry with tokens, text and, in a field for each embedding fingerprint
(`vector_<hash>`), its vectors. So it changes atomically, a generation grows beside the old one
while words keep working, and vectors of two generations cannot meet. BM25 counts by field, so the
documents beside the passages do not disturb them; one shard makes it exact.

Writes demand the alias. So an index that someone deleted is made anew with this mapping, never
with a guessed one.
"""

import hashlib
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError, RequestError

from instar.adapters.aws.opensearch_errors import opensearch_failures
from instar.errors import InstarError
from instar.memory.analysis import ANALYSIS_VERSION

SCHEMA_VERSION = 1
KEPT_GENERATIONS = 2
PASSAGE, DOCUMENT = "passage", "document"
TOKEN_FIELDS = ("body", "speaker", "context", "header", "loose", "document")
_VECTOR = "vector_"
_EXISTS = "resource_already_exists_exception"
_REMOVE = "ctx._source.remove(params.field)"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Schema:
    """The index of one prefix and the vector field of one generation."""

    client: OpenSearch
    prefix: str
    generation: str

    @property
    def alias(self) -> str:
        """What is read and written."""
        return f"{self.prefix}-passages-{SCHEMA_VERSION}.{ANALYSIS_VERSION}"

    @property
    def vector(self) -> str:
        """The field of this generation's vectors."""
        return f"{_VECTOR}{hashlib.sha256(self.generation.encode()).hexdigest()[:16]}"

    def ensure(self, dimensions: int | None) -> None:
        """Makes what is missing; with dimensions, the vector field too.

        Any number of processes may do so at once.
        """
        with opensearch_failures(f"making the index {self.alias!r}"):
            is_new = self._create()
            unused = [] if dimensions is None else self._add_vector_field(dimensions)
        try:
            with opensearch_failures(f"cleaning up around {self.alias!r}"):
                if is_new:
                    self._remove_other_versions()
                for field in unused:
                    self._forget_vectors(field)
        except InstarError as error:
            _log.warning("left for the next time: %s", error.detail)

    def delete(self) -> None:
        """Throws the index away, vectors of all generations included."""
        with opensearch_failures(f"deleting the index {self.alias!r}"):
            try:
                names = sorted(self.client.indices.get_alias(name=self.alias))
            except NotFoundError:
                return
            for name in names:
                self.client.indices.delete(index=name, params={"ignore_unavailable": "true"})

    def _create(self) -> bool:
        """Whether the index was made by this call."""
        name = f"{self.alias}-1"
        body = {"settings": SETTINGS, "mappings": MAPPINGS, "aliases": {self.alias: {}}}
        try:
            self.client.indices.create(index=name, body=body)
        except RequestError as error:
            if error.error != _EXISTS:
                raise
            self.client.indices.put_alias(index=name, name=self.alias)
            return False
        return True

    def _remove_other_versions(self) -> None:
        """Indexes of other versions: what reads this one has no use for them."""
        ours = re.compile(re.escape(f"{self.prefix}-passages-") + r"\d+\.\d+-\d+")
        # All of them, as a wildcard in a path is a trap for signatures.
        for name in self.client.indices.get_alias():
            if ours.fullmatch(name) and not name.startswith(f"{self.alias}-"):
                _log.warning("deleting the index %s of another version", name)
                self.client.indices.delete(index=name, params={"ignore_unavailable": "true"})

    def _add_vector_field(self, dimensions: int) -> list[str]:
        """Adds the field of this generation; those of generations that nobody needs any more."""
        mapping = self._mapping()
        present = mapping.get("properties", {})
        if self.vector in present:
            return []
        kept = mapping.get("_meta", {}).get("generations", [])[1 - KEPT_GENERATIONS :]
        body = {
            "_meta": {"generations": [*kept, self.vector]},
            "properties": {self.vector: _vectors(dimensions)},
        }
        self.client.indices.put_mapping(index=self.alias, body=body)
        return [name for name in present if name.startswith(_VECTOR) and name not in kept]

    def _forget_vectors(self, field: str) -> None:
        """Removes the vectors of an old generation, in the background of the cluster.

        An entry that is being written meanwhile keeps its old vector until the next generation.
        """
        self.client.update_by_query(
            index=self.alias,
            body={
                "query": {"exists": {"field": field}},
                "script": {"source": _REMOVE, "params": {"field": field}},
            },
            params={"conflicts": "proceed", "wait_for_completion": "false"},
        )

    def _mapping(self) -> Mapping[str, Any]:
        found: Mapping[str, Mapping[str, Any]] = self.client.indices.get_mapping(index=self.alias)
        mapping: Mapping[str, Any] = next(iter(found.values()))["mappings"]
        return mapping


def _vectors(dimensions: int) -> dict[str, Any]:
    method = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
    return {"type": "knn_vector", "dimension": dimensions, "method": method}


_TOKENS = {"type": "text", "analyzer": "whitespace", "index_options": "freqs"}
_KEYWORD = {"type": "keyword"}
SETTINGS = {
    "index": {
        "number_of_shards": 1,
        "number_of_replicas": 0,
        "knn": True,
        "similarity": {"default": {"type": "BM25", "k1": 1.2, "b": 0.75}},
    }
}
MAPPINGS: Mapping[str, Any] = {
    "dynamic": "strict",
    "properties": {
        "type": _KEYWORD,
        "agent": _KEYWORD,
        "key": _KEYWORD,
        "kind": _KEYWORD,
        "at": {"type": "long"},  # microseconds: a date has milliseconds
        "ordinal": {"type": "integer"},
        "id": {"type": "keyword", "index": False},
        "passage": {"type": "object", "enabled": False},
        **dict.fromkeys(TOKEN_FIELDS, _TOKENS),
    },
}
