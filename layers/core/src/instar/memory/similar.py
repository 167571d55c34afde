"""Statements much like a new one: shown beside a save, never a reason to refuse it.

By words alone: a save should not wait for a vector, and what is similar in words is what a person
would want to see.
"""

from collections.abc import Callable, Sequence

from instar.errors import InstarError
from instar.memory.recall import Recall, SearchRequest
from instar.memory.results import SimilarClaim
from instar.principal import Principal

LEAST_COVERAGE = 0.5
QUERY_CHARACTERS = 1_000
SHOWN = 5
# What was said in a conversation is not yet something that memory states.
STATED = frozenset({"fact", "note", "daily"})

Similar = Callable[[Principal, str], Sequence[SimilarClaim]]


def similar_claims(recall: Recall) -> Similar:
    """A function that finds what memory says in similar words; nothing when the index is down."""

    def similar(principal: Principal, text: str) -> Sequence[SimilarClaim]:
        request = SearchRequest(query=text[:QUERY_CHARACTERS], limit=4 * SHOWN)
        try:
            found = recall.search(principal, request)
        except InstarError:
            return ()
        claims = [
            SimilarClaim(document=hit.document, lines=hit.lines, text=hit.text, score=hit.score)
            for hit in found.hits
            if hit.score >= LEAST_COVERAGE and hit.kind in STATED
        ]
        return claims[:SHOWN]

    return similar
