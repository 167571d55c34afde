"""Measures recall with the product's own indexer and reader: what is found, without a judge.

    python -m bench.retrieval --locomo FILE [--audit FILE] --engine builtin --embeddings none --json

LoCoMo's sessions become notes, one memory a conversation, one temporary home each. `f_` counts
sessions, `t_` single turns; `t_r@1000tok` is the share of the evidence in the first 1,000 tokens.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.retrieval_scores import scores
from bench.retrieval_sets import Collection, Question, beir, cmrc_split, locomo, memorybank
from instar.adapters.builtin.index import BuiltinIndex
from instar.adapters.builtin.packaged_embeddings import COSINE_FLOOR, PackagedEmbeddings
from instar.adapters.local.database import Database
from instar.adapters.local.folder_documents import FolderDocuments
from instar.adapters.local.sqlite_ledger import SqliteManifest
from instar.clock import Deadline, utc_now
from instar.ids import MAIN_AGENT
from instar.memory.analysis import Analyzer
from instar.memory.documents import document_key
from instar.memory.index import Indexer
from instar.memory.ports import Embeddings
from instar.memory.recall import LIMIT, Hit, Recall, SearchRequest
from instar.principal import owner

WHOLE_DAY_SECONDS = 86_400


@dataclass(frozen=True)
class Memory:
    """One collection, indexed in a home of its own."""

    recall: Recall

    @classmethod
    def of(
        cls, home: Path, files: Mapping[str, str], analyzer: Analyzer, embedder: Embeddings | None
    ) -> "Memory":
        """Writes the files as documents and indexes them, vectors included."""
        documents = FolderDocuments(home, utc_now)
        generation = embedder.fingerprint if embedder else ""
        index = BuiltinIndex(home / ".index", generation=generation, analyzer=analyzer)
        manifest = SqliteManifest(Database(home / "bench.sqlite"))
        indexer = Indexer(documents, index, manifest, analyzer=analyzer, embeddings=embedder)
        for name, text in files.items():
            path = home / document_key(MAIN_AGENT, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        report = indexer.level()
        if report.failed:
            raise SystemExit(f"not indexed: {report.failed}")
        indexer.embed_pending(Deadline.after(WHOLE_DAY_SECONDS, utc_now))
        floor = COSINE_FLOOR if embedder else 0.0
        return cls(Recall(index, analyzer=analyzer, embeddings=embedder, vector_floor=floor))

    def search(self, question: str) -> tuple[tuple[Hit, ...], float]:
        """The hits of a question and the milliseconds they took."""
        start = time.perf_counter()
        found = self.recall.search(owner(MAIN_AGENT), SearchRequest(query=question, limit=LIMIT))
        return found.hits, (time.perf_counter() - start) * 1000


def measure(
    collections: Sequence[Collection], analyzer: Analyzer, embedder: Embeddings | None
) -> tuple[list[dict[str, float]], list[float], float | None]:
    """The scores of every question, the latencies, and how well the top score tells its own
    memory's questions from the next one's (AUROC)."""
    rows, latencies, own, foreign = [], [], [], []
    for number, collection in enumerate(collections):
        with tempfile.TemporaryDirectory() as home:
            memory = Memory.of(Path(home), collection.files, analyzer, embedder)
            for question in collection.questions:
                hits, milliseconds = memory.search(question.text)
                rows.append(scores(collection.files, question, hits))
                latencies.append(milliseconds)
                own.append(_top(hits))
            for question in _others(collections, number):
                foreign.append(_top(memory.search(question.text)[0]))
    return rows, latencies, _auroc(own, foreign)


def _others(collections: Sequence[Collection], number: int) -> Iterable[Question]:
    if len(collections) > 1 and collections[number].tells_foreign:
        yield from collections[(number + 1) % len(collections)].questions


def _top(hits: Sequence[Hit]) -> float:
    return hits[0].score if hits else -1.0


def _auroc(own: Sequence[float], foreign: Sequence[float]) -> float | None:
    if not own or not foreign:
        return None
    wins = sum((a > b) + 0.5 * (a == b) for a in own for b in foreign)
    return wins / (len(own) * len(foreign))


def report(
    rows: Sequence[Mapping[str, float]], latencies: Sequence[float], auroc: float | None
) -> tuple[dict[str, float], dict[str, float]]:
    """Means of the scores, and the latency's middle and tail."""
    means = {name: round(statistics.fmean(row[name] for row in rows), 4) for name in rows[0]}
    if auroc is not None:
        means["no_answer_auroc"] = round(auroc, 4)
    ordered = sorted(latencies)
    tail = ordered[int(0.95 * (len(ordered) - 1))]
    return means, {"p50": round(statistics.median(ordered), 2), "p95": round(tail, 2)}


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval", description=__doc__)
    parser.add_argument("--locomo", type=Path, help="LoCoMo's JSON")
    parser.add_argument("--audit", type=Path, help="corrected evidence for it")
    parser.add_argument("--conversations", default="", help="sample ids, comma-separated")
    parser.add_argument("--beir", type=Path, help="a folder in BEIR's layout")
    parser.add_argument("--memorybank", type=Path, help="a folder with MemoryBank and its labels")
    parser.add_argument("--engine", choices=["builtin"], default="builtin")
    parser.add_argument("--embeddings", choices=["none", "local"], default="none")
    parser.add_argument("--json", action="store_true", help="one JSON value on stdout")
    return parser.parse_args(argv)


def _collections(chosen: argparse.Namespace) -> list[Collection]:
    if chosen.locomo:
        names = frozenset(filter(None, chosen.conversations.split(",")))
        return locomo(chosen.locomo, chosen.audit, names)
    if chosen.beir:
        return [beir(chosen.beir, cmrc_split(chosen.beir))]
    if chosen.memorybank:
        return memorybank(chosen.memorybank)
    raise SystemExit("name a set: --locomo, --beir or --memorybank")


def main(argv: Sequence[str]) -> int:
    """Prints the report."""
    chosen = _arguments(argv)
    embedder = PackagedEmbeddings() if chosen.embeddings == "local" else None
    rows, latencies, auroc = measure(_collections(chosen), Analyzer(), embedder)
    means, latency = report(rows, latencies, auroc)
    answer = {
        "n": len(rows),
        "audited": bool(chosen.audit),
        "engine": chosen.engine,
        "embeddings": embedder.fingerprint if embedder else "none",
        "systems": {"instar": means},
        "latency_ms": latency,
    }
    if chosen.json:
        print(json.dumps(answer))
    else:
        for name, value in {"n": len(rows), **means, **latency}.items():
            print(f"{name:16} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
