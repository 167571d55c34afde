"""From ranked legs to one order: fusion, priors, the absolute score. Pure; both engines share it.

The order comes from a fused score: .65 words and .35 vectors, each min-max scaled over its own leg,
and a small prior (a long statement up, a bare question down, in chats with an assistant the side
that the question asks for). The score handed out is another, absolute one: the share of the
question's word weight that the passage holds, and the cosine; only that one can say "nothing".
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from instar.memory.ports import Candidate, Legs, Passage

VECTOR_SHARE = 0.35
LENGTH_PRIOR = 0.15 / 4
QUESTION_PRIOR = -0.07
ROLE_PRIOR = 0.2
ASSISTANTS = frozenset({"ai", "assistant", "agent", "bot", "instar"})

_ASKS_ASSISTANT = re.compile(
    r"你.{0,4}(?:给我|告诉|推荐|分享|教)"
    r"|\byou\b.{0,20}\b(?:recommend|suggest|tell|told|say|said|give|gave|advise|share|explain)"
    r"|\b(?:hast|haben) (?:du|sie)\b.{0,40}\b(?:empfohlen|gesagt|vorgeschlagen|erklärt|geraten)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A passage with its fused rank value, its absolute score and where both came from.

    Ranks count from 1 and are None when the leg did not return the passage.
    """

    passage: Passage
    fused: float
    score: float
    prior: float
    coverage: float
    words_rank: int | None
    words_score: float
    file_score: float
    vectors_rank: int | None
    cosine: float


def rank(question: str, legs: Legs, *, floor: float) -> list[Ranked]:
    """All candidates, best first. Those that only the vectors found, below `floor`, are left out.

    `floor` is the cosine that the embedder gives to texts that have nothing to do with each other.
    Ties go to the newer passage, then to the smaller id.
    """
    words, vectors = legs.words or (), legs.vectors or ()
    lexical = {each.passage.id: each.score + legs.files.get(each.passage.key, 0) for each in words}
    cosines = {each.passage.id: each.score for each in vectors}
    share = _vector_share(words, vectors)
    fused_words, fused_vectors = _scaled(lexical), _scaled(cosines)
    words_ranks = _ranks(words)
    vector_ranks = _ranks(vectors)
    asks_assistant = bool(_ASKS_ASSISTANT.search(question))
    unseen = min(cosines.values(), default=0.0)
    ranked = []
    for passage in {each.passage.id: each.passage for each in (*words, *vectors)}.values():
        name = passage.id
        cosine = cosines.get(name, unseen)
        if name not in lexical and cosine < floor:
            continue
        prior = _prior(passage, asks_assistant=asks_assistant)
        coverage = legs.coverage.get(name, 0.0)
        fused = (1 - share) * fused_words.get(name, 0) + share * fused_vectors.get(name, 0)
        ranked.append(
            Ranked(
                passage=passage,
                fused=round(fused + prior, 6),
                score=round(_absolute(coverage, _nearness(cosine, floor), share), 4),
                prior=prior,
                coverage=coverage,
                words_rank=words_ranks.get(name),
                words_score=lexical.get(name, 0.0) - legs.files.get(passage.key, 0.0)
                if name in lexical
                else 0.0,
                file_score=legs.files.get(passage.key, 0.0),
                vectors_rank=vector_ranks.get(name),
                cosine=cosine,
            )
        )
    return sorted(ranked, key=_order)


def _order(each: Ranked) -> tuple[float, float, str]:
    at = each.passage.at
    return -each.fused, -(at.timestamp() if at else -math.inf), each.passage.id


def _vector_share(words: Sequence[Candidate], vectors: Sequence[Candidate]) -> float:
    if words and vectors:
        return VECTOR_SHARE
    return 1.0 if vectors else 0.0


def _scaled(scores: Mapping[str, float]) -> dict[str, float]:
    """Min-max over a leg; where all are equal each is as good as the best."""
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    if high - low < 1e-9:
        return dict.fromkeys(scores, 1.0)
    return {name: (score - low) / (high - low) for name, score in scores.items()}


def _ranks(leg: Sequence[Candidate]) -> dict[str, int]:
    return {each.passage.id: number for number, each in enumerate(leg, 1)}


def _prior(passage: Passage, *, asks_assistant: bool) -> float:
    prior = LENGTH_PRIOR * math.log1p(passage.words) + QUESTION_PRIOR * passage.asks
    if passage.speaker.casefold() in ASSISTANTS:
        prior += ROLE_PRIOR if asks_assistant else -ROLE_PRIOR
    return prior


def _nearness(cosine: float, floor: float) -> float:
    """The cosine on a scale from 0 (no nearer than any text) to 1: models differ in their range."""
    return min(1.0, max(0.0, (cosine - floor) / (1 - floor)))


def _absolute(coverage: float, nearness: float, share: float) -> float:
    if share == 0:
        return coverage
    return (coverage + nearness) / 2 if share < 1 else nearness
