"""Vectors from any server that speaks OpenAI's POST /embeddings.

Nothing of an answer is taken on trust: the order comes from `index`, count, dimensions and
finiteness are checked, vectors are brought to unit length.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx

from instar.adapters.http import read_capped, translated
from instar.errors import InstarError, Invalid, Misconfigured, Throttled, Unavailable

BATCH_TEXTS = 64
BATCH_CHARACTERS = 60_000
ANSWER_BYTES = 50_000_000
ERROR_BYTES = 4_096
FIX = "Check INSTAR_EMBEDDINGS, its base URL and its key."

_VERSION = re.compile(r".*/v\d+[a-z0-9]*")


class OpenAIEmbeddings:
    """Embeddings by a model behind an OpenAI-compatible address."""

    def __init__(
        self,
        client: httpx.Client,
        *,
        base_url: str,
        model: str,
        api_key: Callable[[], str | None] = lambda: None,
        dimensions: int | None = None,
    ) -> None:
        self._client = client
        self._url = embeddings_url(base_url)
        self._model = model
        self._api_key = api_key
        self._dimensions = dimensions

    @property
    def fingerprint(self) -> str:
        """Address, model, dimensions and normalisation."""
        host = httpx.URL(self._url).host
        return f"openai@{host}/{self._model}/{self._dimensions or 'default'}/l2"

    def embed(self, texts: Sequence[str], *, query: bool) -> Sequence[Sequence[float]]:
        """One unit vector a text, in order.

        Raises Unavailable, Throttled, Misconfigured, Invalid when the model refuses a text.
        """
        found = list[Sequence[float]]()
        for batch in _batches(texts):
            found += self._embed(batch)
        if len({len(vector) for vector in found}) > 1:
            raise Misconfigured(f"{self._who} answers with vectors of different lengths", fix=FIX)
        return found

    @property
    def _who(self) -> str:
        return f"the embedder {self._model!r}"

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        body: dict[str, Any] = {"model": self._model, "input": list(texts)}
        body["encoding_format"] = "float"
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        key = self._api_key()
        headers = {"content-type": "application/json"}
        headers |= {"authorization": f"Bearer {key}"} if key else {}
        content = json.dumps(body, ensure_ascii=True).encode()
        with (
            translated(self._who),
            self._client.stream("POST", self._url, content=content, headers=headers) as response,
        ):
            if response.status_code != 200:
                raise self._refusal(response, key)
            raw = read_capped(response, ANSWER_BYTES)
        return self._vectors(raw, len(texts))

    def _refusal(self, response: httpx.Response, key: str | None) -> InstarError:
        status = response.status_code
        if status in {401, 403}:
            return Misconfigured(f"{self._who} refuses the key (status {status})", fix=FIX)
        said = read_capped(response, ERROR_BYTES, cut=True).decode("utf-8", "replace")[:300]
        detail = f"{self._who} answered with status {status}: {said}"
        detail = detail.replace(key, "[key]") if key else detail
        if status == 429:
            return Throttled(detail, retry_after_seconds=_seconds(response))
        if status in {400, 413, 422}:
            return Invalid(detail)
        if status >= 500 or status in {408, 425}:
            return Unavailable(detail)
        return Misconfigured(detail, fix=FIX)

    def _vectors(self, raw: bytes, count: int) -> list[list[float]]:
        try:
            rows = sorted(json.loads(raw)["data"], key=lambda row: int(row["index"]))
            places = [int(row["index"]) for row in rows]
            vectors = [[float(number) for number in row["embedding"]] for row in rows]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Unavailable(f"{self._who} answered with something else than vectors") from error
        if places != list(range(count)):
            raise Unavailable(f"{self._who} answered with {len(places)} vectors for {count} texts")
        if self._dimensions is not None and any(len(v) != self._dimensions for v in vectors):
            raise Misconfigured(f"{self._who} does not give {self._dimensions} dimensions", fix=FIX)
        return [self._unit(vector) for vector in vectors]

    def _unit(self, vector: Sequence[float]) -> list[float]:
        length = math.sqrt(math.fsum(number * number for number in vector))
        if not math.isfinite(length) or not length:
            raise Unavailable(f"{self._who} answered with a vector that is zero or not finite")
        return [number / length for number in vector]


def embeddings_url(base_url: str) -> str:
    """The address of the embeddings call for a base URL as people write it."""
    base = base_url.rstrip("/")
    if base.endswith("/embeddings"):
        return base
    return f"{base}/embeddings" if _VERSION.fullmatch(base) else f"{base}/v1/embeddings"


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    start, size = 0, 0
    for at, text in enumerate(texts):
        full = at - start >= BATCH_TEXTS or size + len(text) > BATCH_CHARACTERS
        if at > start and full:
            yield texts[start:at]
            start, size = at, 0
        size += len(text)
    if start < len(texts):
        yield texts[start:]


def _seconds(response: httpx.Response) -> float | None:
    try:
        return max(0.0, float(response.headers.get("retry-after", "")))
    except ValueError:
        return None
