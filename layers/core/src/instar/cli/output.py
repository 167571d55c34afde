"""Printing answers: one JSON value on stdout, or a few plain lines for people."""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from instar.errors import InstarError

EXIT_DONE, EXIT_REFUSED, EXIT_USAGE, EXIT_UNAVAILABLE = 0, 1, 2, 3
Lines = Callable[[Mapping[str, Any]], str]


def print_answer(answer: Mapping[str, Any], *, as_json: bool, lines: Lines) -> None:
    """Prints the answer whole as JSON, or what `lines` makes of it."""
    text = json.dumps(answer, ensure_ascii=False) if as_json else lines(answer).rstrip("\n")
    sys.stdout.write(text.encode("utf-8", "replace").decode() + "\n")
    sys.stdout.flush()


def print_error(error: InstarError, *, as_json: bool) -> int:
    """Prints the problem and returns the exit code: 3 when it may work later, else 1."""
    problem = error.problem()
    if as_json:
        print_answer(problem, as_json=True, lines=str)
    else:
        fix = f"\n{problem['fix']}" if problem.get("fix") else ""
        sys.stderr.write(f"instar: {problem['detail']}{fix}\n")
    unavailable = problem["type"] in ("unavailable", "throttled", "misconfigured", "uncertain")
    return EXIT_UNAVAILABLE if unavailable else EXIT_REFUSED


def saved_lines(answer: Mapping[str, Any]) -> str:
    """A save for people."""
    if not answer["saved"]:
        place = answer["duplicate_of"]
        return f"Already there: {place['document']}, line {place['lines'][0]}."
    found = "" if answer["indexed"] else " It is being indexed."
    similar = "".join(
        f"\nSimilar: {claim['text']} ({claim['document']})" for claim in answer["similar"]
    )
    return f"Saved in {answer['document']} ({answer['revision']}).{found}{similar}"


def search_lines(answer: Mapping[str, Any]) -> str:
    """Hits for people."""
    hits = [
        f"{hit['document']}:{hit['lines'][0]}-{hit['lines'][1]}  {hit['text']}"
        for hit in answer["hits"]
    ]
    if answer.get("degraded"):
        hits.append(f"(answered by {answer['mode']}: {answer['reason']})")
    return "\n".join(hits) or f"Nothing found. {answer.get('reason') or ''}"


def removed_lines(answer: Mapping[str, Any]) -> str:
    """A removal for people."""
    return "Removed from " + ", ".join(row["document"] for row in answer["report"]) + "."


def history_lines(answer: Mapping[str, Any]) -> str:
    """Revisions for people."""
    return "\n".join(
        f"{row['revision']}  {row['at']}  {row['author']}: {row['reason']}"
        for row in answer["revisions"]
    )


def doctor_lines(answer: Mapping[str, Any]) -> str:
    """A report for people."""
    if "digest" in answer:
        return str(answer["digest"])
    rows = [
        f"{check['status']:4}  {check['name']}: {check['detail']}"
        + (f"\n      {check['fix']}" if check.get("fix") and check["status"] != "ok" else "")
        for check in answer["checks"]
    ]
    rows += [f"fail  {row['document']}: {row['reason']}" for row in answer["failed"]]
    return "\n".join(rows)


def pairs(answer: Mapping[str, Any]) -> str:
    """Any flat answer for people."""
    return "\n".join(f"{key}: {value}" for key, value in answer.items())
