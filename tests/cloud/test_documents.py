"""Documents in the bucket: many writers, stale writers, and roles that cannot lose a revision."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError

from tests.cloud.stack import eventually

pytestmark = pytest.mark.cloud

WRITERS = ["api", "tool", "turn"]
SUBJECTS = ["teapot", "violin", "glacier", "lantern", "tractor", "saffron", "harbour", "beetle"]
DEEDS = ["stands in", "was sold in", "comes from", "smells like", "is older than"]
PLACES = ["Lisbon", "the cellar", "a museum", "winter", "Grandma's attic", "Osaka", "a storm"]


def sentences(count: int) -> list[str]:
    """Sentences that have little to do with each other."""
    return [
        f"{SUBJECTS[n % 8]} {n} {DEEDS[n % 5]} {PLACES[n % 7]}".capitalize() for n in range(count)
    ]


@pytest.fixture
def small_account(stack):
    """Ten workers, which is what a new account on AWS has; who is refused one tries again."""
    client, functions = stack.client("lambda"), {"tool": 10, "document-changed": 4}
    for name, workers in functions.items():
        client.put_function_concurrency(
            FunctionName=f"instar-{name}", ReservedConcurrentExecutions=workers
        )
    yield
    for name in functions:
        client.delete_function_concurrency(FunctionName=f"instar-{name}")


@pytest.mark.usefixtures("small_account")
def test_fifty_saves_at_once_leave_fifty_lines_and_fifty_ledger_rows(stack, owner, word):
    document = f"memory/{word}.md"
    said = sentences(50)
    together = threading.Barrier(50)

    def save(number: int) -> str:
        together.wait()
        return saved(owner, document, said[number], f"{word}-{number}")

    with ThreadPoolExecutor(50) as pool:
        outcomes = list(pool.map(save, range(50)))

    assert outcomes == ["saved"] * 50
    text = owner.get(f"/v1/documents/{document}").json()["text"]
    assert sorted(text.splitlines()) == sorted(f"- {sentence}" for sentence in said)
    rows = stack.writes_of(document)
    assert [row["state"] for row in rows] == ["done"] * 50
    assert len({row["after"] for row in rows}) == 50
    history = owner.get(f"/v1/documents/{document}/history").json()["revisions"]
    assert len(history) == 50


def saved(owner, document: str, sentence: str, key: str) -> str:
    """Saves, and repeats under the same key what a busy stack refused, as its answer says."""
    deadline = time.monotonic() + 120
    while True:
        answered = owner.post(
            "/v1/tools/memory_save",
            json={"content": sentence, "document": document},
            headers={"idempotency-key": key},
        )
        if answered.status_code == 200:
            return "saved" if answered.json()["result"].get("saved") else answered.text
        if time.monotonic() > deadline:
            return answered.text
        time.sleep(0.5)


def test_a_change_of_a_stale_revision_is_refused(owner, word):
    path = f"/v1/documents/memory/{word}.md"
    made = owner.put(path, json={"text": "# One\n"}, headers={"if-none-match": "*"})
    assert made.status_code == 200, made.text
    first = made.json()["revision"]

    changed = owner.put(path, json={"text": "# Two\n"}, headers={"if-match": f'"{first}"'})
    stale = owner.put(path, json={"text": "# Three\n"}, headers={"if-match": f'"{first}"'})
    blind = owner.put(path, json={"text": "# Four\n"})

    assert changed.status_code == 200
    assert (stale.status_code, stale.json()["type"]) == (412, "conflict")
    assert blind.status_code == 428
    assert owner.get(path).json()["text"] == "# Two\n"


def test_a_restored_revision_is_a_new_one(owner, word):
    path = f"/v1/documents/memory/{word}.md"
    first = owner.put(path, json={"text": "old\n"}, headers={"if-none-match": "*"}).json()
    owner.put(path, json={"text": "new\n"}, headers={"if-match": f'"{first["revision"]}"'})

    restored = owner.post(f"{path}/restore", json={"revision": first["revision"]})

    assert restored.status_code == 200, restored.text
    assert owner.get(path).json()["text"] == "old\n"
    assert len(owner.get(f"{path}/history").json()["revisions"]) == 3
    at = owner.get(path, params={"revision": first["revision"]}).json()
    assert (at["revision"], at["text"]) == (first["revision"], "old\n")


def test_a_deleted_line_is_no_longer_found(owner, word):
    owner.post("/v1/tools/memory_save", json={"content": f"The {word} is ripe"})
    assert eventually(lambda: hits(owner, word))

    removed = owner.post("/v1/tools/memory_delete", json={"content": f"The {word} is ripe"})

    assert removed.status_code == 200
    assert eventually(lambda: not hits(owner, word))


@pytest.mark.parametrize("function", WRITERS)
@pytest.mark.parametrize("key", ["agents/main/MEMORY.md", "config.toml"])
def test_a_function_cannot_write_unconditionally(stack, function, key):
    s3 = stack.client("s3", stack.role_of(function))
    bucket = stack.outputs["DocumentsBucket"]

    assert denied(s3.put_object, Bucket=bucket, Key=key, Body=b"lost update")


@pytest.mark.parametrize("function", WRITERS)
def test_a_function_writes_conditionally_and_keeps_every_revision(stack, function, word):
    s3 = stack.client("s3", stack.role_of(function))
    bucket, key = stack.outputs["DocumentsBucket"], f"agents/main/memory/{word}.md"

    made = s3.put_object(Bucket=bucket, Key=key, Body=b"one\n", IfNoneMatch="*")
    changed = s3.put_object(Bucket=bucket, Key=key, Body=b"two\n", IfMatch=made["ETag"])

    assert made["VersionId"] != changed["VersionId"]
    assert denied(s3.delete_object, Bucket=bucket, Key=key, VersionId=made["VersionId"])


def test_the_owner_stays_free_to_do_both(stack, word):
    s3, bucket = stack.client("s3"), stack.outputs["DocumentsBucket"]
    key = f"agents/main/memory/{word}.md"

    made = s3.put_object(Bucket=bucket, Key=key, Body=b"mine\n")
    s3.delete_object(Bucket=bucket, Key=key, VersionId=made["VersionId"])

    assert s3.list_object_versions(Bucket=bucket, Prefix=key).get("Versions", []) == []


def hits(owner, query: str):
    found = owner.get("/v1/memory/search", params={"q": query}).json()["hits"]
    return [hit for hit in found if query in hit["text"]]


def denied(call, **arguments) -> bool:
    with pytest.raises(ClientError) as refused:
        call(**arguments)
    return refused.value.response["Error"]["Code"] in ("AccessDenied", "AccessDeniedException")
