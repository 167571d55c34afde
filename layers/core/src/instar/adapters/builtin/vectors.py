"""Vectors in immutable segment files under a manifest: exact search by NumPy, cheap small writes.

Each write adds one segment and swaps the manifest atomically; rows that went are marked in the
manifest; segments of like size are merged, so that there are few and none is rewritten often.
A reader that finds a segment gone has read an old manifest and reads again. Files that no
manifest names are what a killed writer left; the next write removes them.
"""

import base64
import json
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from instar.adapters.builtin.errors import reading_index
from instar.adapters.builtin.words import microseconds
from instar.errors import Unavailable
from instar.memory.ports import Embedded, IndexFilter, Kind, Passage

MANIFEST = "manifest.json"
SMALL_ROWS = 64
SEGMENTS_OF_A_SIZE = 4
OLD_MANIFEST_RETRIES = 5

_KINDS: tuple[str, ...] = get_args(Kind)
_ROW = np.dtype([("id", "S32"), ("key", "<u4"), ("kind", "u1"), ("at", "<i8")])
_NO_TIME = np.iinfo(np.int64).min
_HEAD_BYTES = 8


@dataclass(frozen=True, slots=True)
class _Segment:
    """One file: rows with what filters need, their vectors, and which rows still count."""

    name: str
    keys: tuple[tuple[str, str], ...]
    rows: NDArray[Any]
    vectors: NDArray[np.float32]
    alive: NDArray[np.bool_]

    @property
    def count(self) -> int:
        return int(self.alive.sum())

    def of_key(self, key: str) -> NDArray[np.bool_]:
        """The rows of a document."""
        codes = [code for code, (_, name) in enumerate(self.keys) if name == key]
        return self.alive & np.isin(self.rows["key"], codes)

    def in_scope(self, scope: IndexFilter) -> NDArray[np.bool_]:
        """The rows that a query may see."""
        codes = [
            code
            for code, (agent, key) in enumerate(self.keys)
            if agent == scope.agent and scope.key in {None, key}
        ]
        seen = self.alive & np.isin(self.rows["key"], codes)
        if scope.kinds is not None:
            seen &= np.isin(self.rows["kind"], [_KINDS.index(kind) for kind in scope.kinds])
        if scope.since is not None:
            seen &= self.rows["at"] >= microseconds(scope.since)
        if scope.until is not None:
            seen &= self.rows["at"] <= microseconds(scope.until)
        if scope.since is not None or scope.until is not None:
            seen &= self.rows["at"] != _NO_TIME
        return seen


class VectorSegments:
    """The vectors of one generation. Writers must hold the index's lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: tuple[int, int] | None = None
        self._segments: tuple[_Segment, ...] = ()

    def write(
        self, added: Sequence[Embedded], dropped: Iterable[str], moved: Sequence[Passage]
    ) -> None:
        """Adds vectors, removes those of the dropped ids, renews what filters need of the moved."""
        segments = list(self._current())
        carried = _carried(segments, moved)
        gone = np.array(
            [name.encode() for name in dropped] + [each.passage.id.encode() for each in added]
            + [each.passage.id.encode() for each in carried],
            dtype="S32",
        )  # fmt: skip
        marked = [_without(segment, gone) for segment in segments]
        new = [*added, *carried]
        if not new and all(a is b for a, b in zip(segments, marked, strict=True)):
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        if new:
            marked.append(self._write_segment(_rows_of(new)))
        self._swap(self._merged([segment for segment in marked if segment.count]))

    def ids(self, key: str) -> frozenset[str]:
        """The passages of a document that have a vector."""
        return frozenset(
            name.decode()
            for segment in self._current()
            for name in segment.rows["id"][segment.of_key(key)].tolist()
        )

    def keys(self) -> Mapping[str, int]:
        """The number of vectors of each document."""
        counts: dict[str, int] = {}
        for segment in self._current():
            numbers = np.bincount(segment.rows["key"][segment.alive], minlength=len(segment.keys))
            for (_, key), number in zip(segment.keys, numbers.tolist(), strict=True):
                counts[key] = counts.get(key, 0) + number
        return {key: number for key, number in counts.items() if number}

    def count(self, scope: IndexFilter) -> int:
        """The number of vectors in the scope."""
        return sum(int(segment.in_scope(scope).sum()) for segment in self._current())

    def search(
        self, scope: IndexFilter, vector: Sequence[float], limit: int
    ) -> list[tuple[str, float]]:
        """The passages nearest to a unit vector with their cosine, exactly."""
        asked = np.asarray(vector, dtype=np.float32)
        ids, scores = [np.empty(0, "S32")], [np.empty(0, np.float32)]
        for segment in self._current():
            if segment.vectors.shape[1] != len(asked):
                raise Unavailable(
                    f"the question's vector has {len(asked)} dimensions, "
                    f"the index {segment.vectors.shape[1]}"
                )
            with reading_index("vectors"):
                seen = segment.in_scope(scope)
                if seen.mean() > 0.5:
                    cosines = (segment.vectors @ asked)[seen]
                else:
                    cosines = segment.vectors[seen] @ asked
            ids.append(segment.rows["id"][seen])
            scores.append(cosines)
        names, cosines = np.concatenate(ids), np.concatenate(scores)
        if len(names) > limit:
            best = np.argpartition(-cosines, limit - 1)[:limit]
            names, cosines = names[best], cosines[best]
        order = np.lexsort((names, -cosines))
        return [(names[i].decode(), float(cosines[i])) for i in order.tolist()]

    def _current(self) -> tuple[_Segment, ...]:
        with reading_index("vectors"):
            for _ in range(OLD_MANIFEST_RETRIES):
                try:
                    stat = (self._folder / MANIFEST).stat()
                except FileNotFoundError:
                    return ()
                seen = (stat.st_mtime_ns, stat.st_ino)
                if seen == self._seen:
                    break
                try:
                    self._segments = self._read()
                except FileNotFoundError:
                    continue
                self._seen = seen
            return self._segments

    def _read(self) -> tuple[_Segment, ...]:
        known = {segment.name: segment for segment in self._segments}
        listed = json.loads((self._folder / MANIFEST).read_text("utf-8"))["segments"]
        segments = []
        for entry in listed:
            segment = known.get(entry["name"]) or self._open(entry["name"])
            dead = np.frombuffer(base64.b64decode(entry["dead"]), np.uint8)
            alive = ~np.unpackbits(dead, count=len(segment.rows)).astype(bool)
            segments.append(replace(segment, alive=alive))
        return tuple(segments)

    def _open(self, name: str) -> _Segment:
        path = self._folder / name
        size = path.stat().st_size
        with path.open("rb") as file:
            head_bytes = int.from_bytes(file.read(_HEAD_BYTES), "little")
            head = json.loads(file.read(head_bytes)) if head_bytes < size else {}
        rows, dimensions = int(head["rows"]), int(head["dimensions"])
        start = _HEAD_BYTES + head_bytes
        middle = start + rows * _ROW.itemsize
        if middle + rows * dimensions * 4 != size:
            raise ValueError(f"segment {name} has {size} bytes")
        return _Segment(
            name=name,
            keys=tuple((agent, key) for agent, key in head["keys"]),
            rows=np.fromfile(path, _ROW, rows, offset=start),
            vectors=np.memmap(path, np.float32, "r", middle, (rows, dimensions)),
            alive=np.ones(rows, bool),
        )

    def _merged(self, segments: list[_Segment]) -> list[_Segment]:
        """The segments with those of like size, or mostly dead, joined."""
        while True:
            sizes: dict[int, list[_Segment]] = {}
            for segment in segments:
                size = max(0, (segment.count // SMALL_ROWS).bit_length() // 2)
                sizes.setdefault(size, []).append(segment)
            group = next((g for g in sizes.values() if len(g) >= SEGMENTS_OF_A_SIZE), None)
            wasteful = [s for s in segments if s.count * 2 < len(s.rows)]
            group = group or wasteful[:1]
            if not group:
                return segments
            names = {segment.name for segment in group}
            joined = self._write_segment(_joined(group))
            segments = [segment for segment in segments if segment.name not in names] + [joined]

    def _write_segment(self, segment: _Segment) -> _Segment:
        path = self._folder / segment.name
        dimensions = segment.vectors.shape[1]
        head = {"keys": segment.keys, "rows": len(segment.rows), "dimensions": dimensions}
        content = json.dumps(head).encode()
        content += b" " * (-(len(content) + _HEAD_BYTES + segment.rows.nbytes) % 64)
        with path.open("xb") as file:
            file.write(len(content).to_bytes(_HEAD_BYTES, "little") + content)
            file.write(segment.rows.tobytes())
            file.write(np.ascontiguousarray(segment.vectors).tobytes())
            file.flush()
            os.fsync(file.fileno())
        return self._open(segment.name)

    def _swap(self, segments: Sequence[_Segment]) -> None:
        listed = [
            {"name": s.name, "dead": base64.b64encode(np.packbits(~s.alive).tobytes()).decode()}
            for s in segments
        ]
        temporary = self._folder / (MANIFEST + ".new")
        with temporary.open("w", encoding="utf-8") as file:
            json.dump({"segments": listed}, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._folder / MANIFEST)
        kept = {MANIFEST, *(segment.name for segment in segments)}
        for path in self._folder.iterdir():
            if path.name not in kept:
                path.unlink(missing_ok=True)


def _new_name() -> str:
    return f"{secrets.token_hex(8)}.segment"


def _rows_of(new: Sequence[Embedded]) -> _Segment:
    keys = sorted({(each.passage.agent, each.passage.key) for each in new})
    codes = {pair: code for code, pair in enumerate(keys)}
    rows = np.empty(len(new), _ROW)
    for number, each in enumerate(new):
        passage = each.passage
        at = _NO_TIME if passage.at is None else microseconds(passage.at)
        code = codes[passage.agent, passage.key]
        rows[number] = (passage.id.encode(), code, _KINDS.index(passage.kind), at)
    vectors = np.array([each.vector for each in new], dtype=np.float32)
    return _Segment(_new_name(), tuple(keys), rows, vectors, np.ones(len(new), bool))


def _joined(segments: Sequence[_Segment]) -> _Segment:
    keys = sorted({pair for segment in segments for pair in segment.keys})
    codes = {pair: code for code, pair in enumerate(keys)}
    rows = []
    for segment in segments:
        kept = segment.rows[segment.alive].copy()
        renumbered = np.array([codes[pair] for pair in segment.keys], dtype=np.uint32)
        kept["key"] = renumbered[kept["key"]]
        rows.append(kept)
    vectors = np.concatenate([segment.vectors[segment.alive] for segment in segments])
    all_rows = np.concatenate(rows)
    return _Segment(_new_name(), tuple(keys), all_rows, vectors, np.ones(len(all_rows), bool))


def _without(segment: _Segment, gone: NDArray[Any]) -> _Segment:
    hit = segment.alive & np.isin(segment.rows["id"], gone)
    return replace(segment, alive=segment.alive & ~hit) if hit.any() else segment


def _carried(segments: Sequence[_Segment], moved: Sequence[Passage]) -> list[Embedded]:
    """The moved passages whose rows say something else than they do now, with their vectors."""
    wanted = {passage.id.encode(): passage for passage in moved}
    names = np.array(list(wanted), dtype="S32")
    carried = []
    for segment in segments:
        for number in np.flatnonzero(segment.alive & np.isin(segment.rows["id"], names)).tolist():
            row = segment.rows[number]
            passage = wanted[bytes(row["id"])]
            at = _NO_TIME if passage.at is None else microseconds(passage.at)
            if (int(row["at"]), int(row["kind"])) != (at, _KINDS.index(passage.kind)):
                carried.append(Embedded(passage=passage, vector=segment.vectors[number].tolist()))
    return carried
