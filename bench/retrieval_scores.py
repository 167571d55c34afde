"""Retrieval metrics: shares of evidence found, by session and by turn."""

import math
from collections.abc import Mapping, Sequence

from bench.retrieval_sets import Line, Question
from instar.memory.passages import tokens
from instar.memory.recall import Hit

BUDGETS = (500, 1_000, 2_000)


def scores(files: Mapping[str, str], question: Question, hits: Sequence[Hit]) -> dict[str, float]:
    """The metrics of one question; those by turn only where the evidence names lines."""
    documents = list(dict.fromkeys(hit.document for hit in hits))
    wanted = {document for document, _ in question.evidence}
    out = {f"f_r@{k}": len(set(documents[:k]) & wanted) / len(wanted) for k in (1, 5, 10)}
    out["f_any@5"] = float(bool(set(documents[:5]) & wanted))
    out["f_ndcg@10"] = _ndcg(documents, wanted)
    out["f_mrr"] = _reciprocal([document in wanted for document in documents])
    if any(line for _, line in question.evidence):
        out |= _by_turn(files, question.evidence, hits)
    return out


def _by_turn(
    files: Mapping[str, str], evidence: frozenset[Line], hits: Sequence[Hit]
) -> dict[str, float]:
    found = [
        {(hit.document, line) for line in range(hit.lines[0], hit.lines[1] + 1)} for hit in hits
    ]
    flags = [bool(lines & evidence) for lines in found]
    ten = set().union(*found[:10]) & evidence
    out = {"t_any@1": float(any(flags[:1])), "t_r@10": len(ten) / len(evidence)}
    out["t_mrr"] = _reciprocal(flags)
    for budget in BUDGETS:
        shown = _within(files, hits, budget)
        out[f"t_r@{budget}tok"] = len(shown & evidence) / len(evidence)
    return out


def _within(files: Mapping[str, str], hits: Sequence[Hit], budget: int) -> set[Line]:
    """The lines that fit when hits are handed out in order; a line shown twice is paid once."""
    left, shown = float(budget), set[Line]()
    for hit in hits:
        lines = files[hit.document].splitlines()
        for number in range(hit.lines[0], hit.lines[1] + 1):
            if (hit.document, number) in shown:
                continue
            cost = tokens(lines[number - 1]) + 1
            if cost > left:
                return shown
            left -= cost
            shown.add((hit.document, number))
    return shown


def _reciprocal(flags: Sequence[bool]) -> float:
    return next((1 / rank for rank, flag in enumerate(flags, 1) if flag), 0.0)


def _ndcg(ranked: Sequence[str], wanted: set[str], k: int = 10) -> float:
    gain = sum(1 / math.log2(rank + 1) for rank, name in enumerate(ranked[:k], 1) if name in wanted)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(wanted)) + 1))
    return gain / ideal
