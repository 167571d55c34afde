"""The engine `opensearch`: a SearchIndex in a cluster, by opensearch-py.

Everything of one person stands in one index behind an alias (see opensearch_schema): a passage is
one entry with its tokens, its text and its vectors. A change is one `_bulk` (opensearch_bulk), a
question one `_msearch` (opensearch_query). The index may vanish at any time: then it holds nothing,
the next write makes it anew, and the indexer's `level` fills it from the documents.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opensearchpy import OpenSearch

from instar.adapters.aws.opensearch_bulk import write
from instar.adapters.aws.opensearch_entries import actions, dimensions, passage_of
from instar.adapters.aws.opensearch_errors import opensearch_failures
from instar.adapters.aws.opensearch_query import legs, searches
from instar.adapters.aws.opensearch_schema import PASSAGE, Schema
from instar.memory.ports import Counted, Held, IndexChanges, IndexQuery, Legs

SEARCH_SECONDS = 1.5
HELD_PAGE = 1_000
KEYS_PAGE = 1_000
_MAY_BE_MISSING = {"ignore_unavailable": "true"}


class OpenSearchIndex:
    """A SearchIndex in OpenSearch. May be shared between threads and used by many processes.

    Two stacks on one cluster need two prefixes. `generation` is the embedding fingerprint.
    """

    def __init__(
        self,
        client: OpenSearch,
        *,
        prefix: str,
        generation: str,
        search_seconds: float = SEARCH_SECONDS,
    ) -> None:
        self._client = client
        self._schema = Schema(client, prefix, generation)
        self._search_seconds = search_seconds

    def apply(self, changes: Sequence[IndexChanges]) -> None:
        """Applies the changes of some documents; searchable and durable when it returns.

        Raises Unavailable; Invalid and Misconfigured when the cluster takes it at no time.
        """
        schema = self._schema
        write(schema, actions(changes, schema.alias, schema.vector), dimensions(changes))

    def search(self, query: IndexQuery) -> Legs:
        """All legs in one round trip, each under the query's filter."""
        asked = searches(query, self._schema.vector)
        header = {"index": self._schema.alias, "ignore_unavailable": True}
        body = [line for search in asked.values() for line in (header, search)]
        with opensearch_failures("searching"):
            answer = self._client.msearch(
                body=body, params={"request_timeout": self._search_seconds}
            )
        return legs(query, dict(zip(asked, answer["responses"], strict=True)))

    def held(self, key: str) -> Sequence[Held]:
        """What is indexed of one document, in the order of its passages."""
        has_vector = {"exists": {"field": self._schema.vector, "_name": "vector"}}
        of_key = [{"term": {"type": PASSAGE}}, {"term": {"key": key}}]
        search = {
            "size": HELD_PAGE,
            "track_total_hits": False,
            "_source": [PASSAGE],
            "query": {"bool": {"filter": of_key, "should": [has_vector]}},
            "sort": [{"ordinal": "asc"}, {"id": "asc"}],
        }
        return [
            Held(
                passage=passage_of(hit["_source"][PASSAGE]),
                has_vector="vector" in hit.get("matched_queries", ()),
            )
            for hit in self._pages(search, f"reading what is indexed of {key!r}")
        ]

    def keys(self) -> Mapping[str, Counted]:
        """Every document that the index holds something of."""
        composite: dict[str, Any] = {
            "size": KEYS_PAGE,
            "sources": [{"key": {"terms": {"field": "key"}}}],
        }
        counts = {
            "passages": {"filter": {"term": {"type": PASSAGE}}},
            "vectors": {"filter": {"exists": {"field": self._schema.vector}}},
        }
        found: dict[str, Counted] = {}
        while True:
            search = {"size": 0, "aggs": {"keys": {"composite": composite, "aggs": counts}}}
            answer = self._ask(search, "listing what is indexed")
            page = answer.get("aggregations", {}).get("keys", {})
            for row in page.get("buckets", ()):
                found[row["key"]["key"]] = Counted(
                    row["passages"]["doc_count"], row["vectors"]["doc_count"]
                )
            if "after_key" not in page:
                return found
            composite["after"] = page["after_key"]

    def clear(self) -> None:
        """Throws everything away; the indexer's `level` makes it again from the documents."""
        self._schema.delete()

    def _pages(self, search: dict[str, Any], what: str) -> Iterator[Mapping[str, Any]]:
        """The hits of a sorted search, all of them."""
        while True:
            hits = self._ask(search, what)["hits"]["hits"]
            yield from hits
            if len(hits) < search["size"]:
                return
            search = {**search, "search_after": hits[-1]["sort"]}

    def _ask(self, search: Mapping[str, Any], what: str) -> Mapping[str, Any]:
        with opensearch_failures(what):
            answer: Mapping[str, Any] = self._client.search(
                index=self._schema.alias, body=search, params=dict(_MAY_BE_MISSING)
            )
        return answer
