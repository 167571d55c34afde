"""Writes actions by `_bulk` and looks at every item's answer.

A missing index or vector field is made and its items sent again; so are, alone and at once, items
that were refused for the moment (429, 409, 5xx). A bad item stops no other: it is named at the end.

Each request ends with a refresh, because a change has to be searchable when it returns.
`wait_for` would wait up to a second for the next periodic refresh; one person's writes are few and
small, so a segment for each, merged later, costs tens of milliseconds.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from opensearchpy import OpenSearch

from instar.adapters.aws.opensearch_entries import Action
from instar.adapters.aws.opensearch_errors import (
    MISSING_DOCUMENT,
    MISSING_SCHEMA,
    answered,
    opensearch_failures,
    type_of,
)
from instar.adapters.aws.opensearch_schema import Schema
from instar.errors import InstarError, Unavailable

CHUNK_BYTES = 5_000_000  # the smallest domains take 10 MiB a request
ATTEMPTS = 3
NAMED = 3
_ASKED = {"refresh": "true", "require_alias": "true"}


def write(schema: Schema, actions: Iterable[Action], dimensions: int | None) -> None:
    """Writes all of them. Raises Unavailable when some may succeed later, otherwise Invalid or
    what else was wrong with one.
    """
    problems: dict[str, InstarError] = {}
    for chunk in _chunks(actions):
        _write_chunk(schema, chunk, dimensions, problems)
    if not problems:
        return
    worst = min(problems.values(), key=lambda error: not isinstance(error, Unavailable))
    named = ", ".join(repr(key) for key in list(problems)[:NAMED])
    more = f" and {len(problems) - NAMED} more" if len(problems) > NAMED else ""
    raise type(worst)(f"not all was indexed of {named}{more}: {worst.detail}", fix=worst.fix)


def _write_chunk(
    schema: Schema,
    chunk: Sequence[Action],
    dimensions: int | None,
    problems: dict[str, InstarError],
) -> None:
    left = chunk
    for attempt in range(1, ATTEMPTS + 1):
        again: list[Action] = []
        is_schema_missing = False
        for action, item in zip(left, _send(schema.client, left), strict=True):
            error = item.get("error")
            kind, status = type_of(error), int(item["status"])
            if error is None or kind == MISSING_DOCUMENT:
                continue
            is_schema_missing |= kind in MISSING_SCHEMA
            trouble = answered("a passage or document", status, error)
            may_repeat = kind in MISSING_SCHEMA or isinstance(trouble, Unavailable)
            if may_repeat and attempt < ATTEMPTS:
                again.append(action)
            else:
                problems.setdefault(action.key, trouble)
        if not again:
            return
        if is_schema_missing:
            schema.ensure(dimensions)
        left = again


def _send(client: OpenSearch, chunk: Sequence[Action]) -> list[Mapping[str, Any]]:
    lines = [line for action in chunk for line in _lines(action)]
    with opensearch_failures(f"indexing {chunk[0].key!r}"):
        answer = client.bulk(body="\n".join(lines) + "\n", params=dict(_ASKED))
    return [next(iter(item.values())) for item in answer["items"]]


def _chunks(actions: Iterable[Action]) -> Iterator[list[Action]]:
    chunk, size = list[Action](), 0
    for action in actions:
        bytes_of_it = sum(len(line.encode()) + 1 for line in _lines(action))
        if chunk and size + bytes_of_it > CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(action)
        size += bytes_of_it
    if chunk:
        yield chunk


def _lines(action: Action) -> list[str]:
    parts = [action.command] if action.body is None else [action.command, action.body]
    return [json.dumps(part, ensure_ascii=True, separators=(",", ":")) for part in parts]
