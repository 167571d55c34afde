"""Data sets as documents and questions. Evidence stands beside the documents, never in them."""

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

Line = tuple[str, int]
ADVERSARIAL = 5


@dataclass(frozen=True)
class Question:
    """A question and the lines that answer it; line 0 means the whole document."""

    text: str
    evidence: frozenset[Line]


@dataclass(frozen=True)
class Collection:
    """One memory: its documents by name, the questions it answers.

    `tells_foreign`: the questions of the next collection surely have no answer here.
    """

    files: Mapping[str, str]
    questions: Sequence[Question]
    tells_foreign: bool = False


def locomo(file: Path, audit: Path | None, names: frozenset[str]) -> list[Collection]:
    """LoCoMo's conversations, categories 1 to 4, each a memory of one note a session."""
    fixes: dict[tuple[str, int], list[str]] = {}
    for row in json.loads(audit.read_text("utf-8")) if audit else ():
        fixes[row["sample_id"], row["qa"]] = row["correct_evidence"]
    found = json.loads(file.read_text("utf-8"))
    return [_conversation(each, fixes) for each in found if not names or each["sample_id"] in names]


def _conversation(raw: Mapping[str, Any], fixes: Mapping[tuple[str, int], list[str]]) -> Collection:
    talk, files, where = raw["conversation"], dict[str, str](), dict[str, Line]()
    for name in sorted(talk):
        number = re.fullmatch(r"session_(\d+)", name)
        if not number or not talk[name]:
            continue
        when = datetime.strptime(talk[f"{name}_date_time"], "%I:%M %p on %d %B, %Y")  # noqa: DTZ007
        document = f"memory/{when:%Y-%m-%d}-session-{int(number[1]):02d}.md"
        lines = [f"# {when:%A}, {when.day} {when:%B %Y}, {when:%H:%M}", ""]
        lines += [f"Conversation of {talk['speaker_a']} and {talk['speaker_b']}.", ""]
        for turn in talk[name]:
            lines.append(_turn(turn))
            where[turn["dia_id"]] = (document, len(lines))
        files[document] = "\n".join(lines) + "\n"
    questions = []
    for number, row in enumerate(raw["qa"]):
        cited = fixes.get((raw["sample_id"], number), row.get("evidence"))
        evidence = frozenset(where[name] for name in _cited(cited) if name in where)
        if evidence and row["category"] != ADVERSARIAL:
            questions.append(Question(row["question"], evidence))
    return Collection(files, questions, tells_foreign=True)


def _turn(turn: Mapping[str, Any]) -> str:
    text = " ".join(turn["text"].split())
    if turn.get("blip_caption"):
        text += f" [shared image: {' '.join(turn['blip_caption'].split())}]"
    return f"**{turn['speaker']}:** {text}"


def _cited(evidence: Sequence[str] | None) -> list[str]:
    """The file's evidence ids, cleaned: 'D8:6; D9:17', 'D:11:26', 'D30:05'."""
    parts = (part for item in evidence or () for part in re.split(r"[;,\s]+", str(item).strip()))
    matches = (re.fullmatch(r"D:?(\d+):0*(\d+)", part) for part in parts)
    return [f"D{match[1]}:{match[2]}" for match in matches if match]


def cmrc_split(folder: Path) -> str:
    """The split that a folder in BEIR's layout holds."""
    return next(folder.glob("qrels.*.tsv")).name.split(".")[1]


def beir(folder: Path, split: str) -> Collection:
    """A set in BEIR's layout: corpus.jsonl.gz, queries.SPLIT.jsonl, qrels.SPLIT.tsv."""
    with gzip.open(folder / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    files = {
        f"memory/{_plain(row['_id'])}.md": (f"# {row['title']}\n\n" if row.get("title") else "")
        + f"{row['text']}\n"
        for row in rows
    }
    relevant = defaultdict[str, set[Line]](set)
    for line in (folder / f"qrels.{split}.tsv").read_text("utf-8").splitlines()[1:]:
        question, document, score = line.split("\t")
        if int(score) > 0:
            relevant[question].add((f"memory/{_plain(document)}.md", 0))
    asked = (folder / f"queries.{split}.jsonl").read_text("utf-8").splitlines()
    questions = [
        Question(row["text"], frozenset(relevant[row["_id"]]))
        for row in map(json.loads, asked)
        if relevant[row["_id"]]
    ]
    return Collection(files, questions)


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]", "-", name)


def memorybank(folder: Path) -> list[Collection]:
    """MemoryBank's Chinese chats with an assistant, one memory a user, one note a day."""
    bank = json.loads((folder / "memory_bank_cn.json").read_text("utf-8"))
    labels = json.loads((folder / "labels_cn.json").read_text("utf-8"))
    found = []
    for user, rows in labels.items():
        files, where = dict[str, str](), dict[str, Line]()
        for day, talk in bank[user]["history"].items():
            document = f"memory/{day}.md"
            year, month, number = (int(part) for part in day.split("-"))
            lines = [f"# {year}年{month}月{number}日", ""]
            for exchange, said in enumerate(talk):
                for side, who, key in (("u", user, "query"), ("a", "AI", "response")):
                    lines.append(f"**{who}：** {' '.join(said[key].split())}")
                    where[f"{day[5:]}.{exchange}{side}"] = (document, len(lines))
            files[document] = "\n".join(lines) + "\n"
        questions = [
            Question(row["question"], frozenset(where[name] for name in row["evidence"]))
            for row in rows
        ]
        found.append(Collection(files, questions))
    return found
