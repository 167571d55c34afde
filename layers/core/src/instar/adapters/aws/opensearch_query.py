"""A question as the searches of one `_msearch`, and the answers as legs: pure.

Words are our own tokens, searched in whitespace-analysed fields: data, never syntax. Coverage is
computed here from the tokens that a candidate's entry holds and from how many bodies hold each
token. A search that failed is named and leaves the others alone.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from instar.adapters.aws.opensearch_entries import microseconds, passage_of
from instar.adapters.aws.opensearch_errors import answered
from instar.adapters.aws.opensearch_schema import DOCUMENT, PASSAGE
from instar.errors import Unavailable
from instar.memory.ports import Candidate, IndexFilter, IndexQuery, Legs

BOOSTS = {"body": 1.0, "context": 0.5, "header": 1.0, "speaker": 7.0, "loose": 1.0}
QUERY_TOKENS = 200  # five fields each: the cluster allows 1,024 clauses
FILES_LIMIT = 1_000
NEIGHBOURS = 200  # Lucene walks its graph no wider than this
_FOUND = [PASSAGE, "body"]

Search = dict[str, Any]


def searches(query: IndexQuery, vector: str) -> dict[str, Search]:
    """The searches that a query needs, by the name of what they answer."""
    tokens = searchable(query.tokens)
    scope = scoped(query.scope)
    asked = {"counts": _counts(scope, vector)}
    if tokens:
        asked["words"] = _words(tokens, scope, query.limit)
        asked["files"] = _files(tokens, query.scope.agent)
        asked["coverage"] = _frequencies(tokens)
    if query.vector is not None:
        asked["vectors"] = _neighbours(query, vector, scope)
    return asked


def searchable(tokens: Sequence[str]) -> list[str]:
    """As many tokens as are searched for, each in characters that can be sent."""
    return [token.encode("utf-8", "replace").decode() for token in tokens[:QUERY_TOKENS]]


def scoped(scope: IndexFilter) -> list[Search]:
    """The filter that stands in every search for passages."""
    filters: list[Search] = [{"term": {"type": PASSAGE}}, {"term": {"agent": scope.agent}}]
    if scope.key is not None:
        filters.append({"term": {"key": scope.key}})
    if scope.kinds is not None:
        filters.append({"terms": {"kind": sorted(scope.kinds)}})
    bounds = {"gte": scope.since, "lte": scope.until}
    span = {name: microseconds(at) for name, at in bounds.items() if at is not None}
    return [*filters, {"range": {"at": span}}] if span else filters


def legs(query: IndexQuery, answers: Mapping[str, Mapping[str, Any]]) -> Legs:
    """The answers as legs. Raises Unavailable when neither words nor vectors could answer."""
    failed = {
        name: answered(_told(name, query), int(answer.get("status", 500)), answer["error"]).detail
        for name, answer in answers.items()
        if "error" in answer
    }
    hits = {
        name: [] if name in failed else _hits(answer, is_cosine=name == "vectors")
        for name, answer in answers.items()
        if name in {"words", "vectors"}
    }
    if hits and all(name in failed for name in hits):
        raise Unavailable("the index cannot answer: " + "; ".join(failed.values()))
    right = {name: answer for name, answer in answers.items() if name not in failed}
    counts, files = right.get("counts"), right.get("files")
    return Legs(
        words=None if "words" in failed else _candidates(hits.get("words", [])),
        vectors=None if "vectors" in failed else _candidates(hits.get("vectors", [])),
        files={} if files is None else _scores(files),
        coverage=_coverage(query, right.get("coverage"), [h for leg in hits.values() for h in leg]),
        passage_count=int(counts["hits"]["total"]["value"]) if counts else 0,
        vector_count=_aggregated(counts, "vectors").get("doc_count", 0) if counts else 0,
        failed=failed,
    )


def _counts(scope: list[Search], vector: str) -> Search:
    return {
        "size": 0,
        "track_total_hits": True,
        "query": {"bool": {"filter": scope}},
        "aggs": {"vectors": {"filter": {"exists": {"field": vector}}}},
    }


def _words(tokens: Sequence[str], scope: list[Search], limit: int) -> Search:
    match = {
        "query": " ".join(tokens),
        "type": "most_fields",
        "operator": "or",
        "fields": [f"{name}^{boost}" for name, boost in BOOSTS.items()],
    }
    return {
        "size": limit,
        "track_total_hits": False,
        "_source": _FOUND,
        "query": {"bool": {"filter": scope, "must": [{"multi_match": match}]}},
    }


def _files(tokens: Sequence[str], agent: str) -> Search:
    own = [{"term": {"type": DOCUMENT}}, {"term": {"agent": agent}}]
    match = {"match": {DOCUMENT: {"query": " ".join(tokens), "operator": "or"}}}
    return {
        "size": FILES_LIMIT,
        "track_total_hits": False,
        "_source": False,
        "docvalue_fields": ["key"],
        "query": {"bool": {"filter": own, "must": [match]}},
    }


def _frequencies(tokens: Sequence[str]) -> Search:
    """How many passages there are, and how many of them hold each token."""
    holding = [{"term": {"body": token}} for token in dict.fromkeys(tokens)]
    filters = [{"term": {"type": PASSAGE}}, *holding]
    return {
        "size": 0,
        "track_total_hits": False,
        "aggs": {"holding": {"filters": {"filters": filters}}},
    }


def _neighbours(query: IndexQuery, vector: str, scope: list[Search]) -> Search:
    near = {
        "vector": list(query.vector or ()),
        "k": max(query.limit, NEIGHBOURS),
        "filter": {"bool": {"filter": scope}},
        "ignore_unmapped": True,
    }
    return {
        "size": query.limit,
        "track_total_hits": False,
        "_source": _FOUND,
        "query": {"knn": {vector: near}},
    }


def _told(name: str, query: IndexQuery) -> str:
    if name == "vectors":
        return f"the search by a vector of {len(query.vector or ())} dimensions"
    return f"the search for {name}"


_Hit = tuple[Candidate, frozenset[str]]


def _hits(answer: Mapping[str, Any], *, is_cosine: bool) -> list[_Hit]:
    """Candidates, each with the tokens of its body."""
    found = []
    for hit in answer["hits"]["hits"]:
        # OpenSearch moves the cosine into 0 to 1, as it does not allow negative scores.
        score = 2 * hit["_score"] - 1 if is_cosine else hit["_score"]
        source = hit["_source"]
        candidate = Candidate(passage_of(source[PASSAGE]), float(score))
        found.append((candidate, frozenset(source.get("body", "").split())))
    return found


def _candidates(hits: Sequence[_Hit]) -> list[Candidate]:
    return sorted(
        (candidate for candidate, _ in hits), key=lambda each: (-each.score, each.passage.id)
    )


def _scores(answer: Mapping[str, Any]) -> dict[str, float]:
    return {hit["fields"]["key"][0]: float(hit["_score"]) for hit in answer["hits"]["hits"]}


def _aggregated(answer: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """An aggregation; empty while there is no index."""
    found: Mapping[str, Any] = answer.get("aggregations", {}).get(name, {})
    return found


def _coverage(
    query: IndexQuery, answer: Mapping[str, Any] | None, hits: Sequence[_Hit]
) -> dict[str, float]:
    """The share of the tokens' weight (idf) that the body of each candidate holds."""
    if answer is None:
        return {}
    counted = [int(b["doc_count"]) for b in _aggregated(answer, "holding").get("buckets", [])]
    repeats = Counter(searchable(query.tokens))
    weights = {
        token: count * _idf(counted[0], holding)
        for (token, count), holding in zip(repeats.items(), counted[1:], strict=False)
    }
    total = sum(weights.values())
    if not total:
        return {}
    return {
        each.passage.id: min(1.0, sum(weights[token] for token in weights if token in body) / total)
        for each, body in hits
    }


def _idf(passages: int, holding: int) -> float:
    return math.log(1 + (passages - holding + 0.5) / (holding + 0.5))
