"""Every Documents adapter keeps these promises."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest

from instar.adapters.aws.clients import Clients
from instar.adapters.aws.s3_documents import S3Documents
from instar.adapters.local.folder_documents import FolderDocuments
from instar.errors import Conflict, Invalid, NotFound
from instar.memory.ports import Documents

KEY = "agents/main/MEMORY.md"


@dataclass
class Store:
    """The adapter, and how a person changes what is behind it without asking."""

    documents: Documents
    by_hand: Callable[[str, bytes | None], None]


def folder(request: pytest.FixtureRequest) -> Store:
    root: Path = request.getfixturevalue("tmp_path")

    def by_hand(key: str, data: bytes | None) -> None:
        path = root / key
        if data is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    return Store(FolderDocuments(root, request.getfixturevalue("clock")), by_hand)


def s3(request: pytest.FixtureRequest) -> Store:
    aws: Clients = request.getfixturevalue("aws")
    client = aws.s3()

    def by_hand(key: str, data: bytes | None) -> None:
        if data is None:
            client.delete_object(Bucket="documents", Key=key)
        else:
            client.put_object(Bucket="documents", Key=key, Body=data)

    return Store(S3Documents(client, "documents"), by_hand)


@pytest.fixture(params=[folder, s3], ids=lambda build: build.__name__)
def store(request: pytest.FixtureRequest) -> Store:
    return request.param(request)


@pytest.fixture
def documents(store: Store) -> Documents:
    return store.documents


def test_what_was_put_is_got(documents):
    put = documents.put(KEY, "# Ümläut\r\n\n中文 👩‍💻\n", replaces=None)

    assert documents.get(KEY) == put
    assert put.key == KEY
    assert put.text == "# Ümläut\r\n\n中文 👩‍💻\n"


def test_an_empty_text_is_a_document(documents):
    put = documents.put(KEY, "", replaces=None)

    assert documents.get(KEY) == put
    assert [item.key for item in documents.list("")] == [KEY]


def test_an_absent_document_is_not_found(documents):
    with pytest.raises(NotFound):
        documents.get(KEY)
    assert documents.revisions(KEY) == []


def test_a_second_create_is_a_conflict_and_changes_nothing(documents):
    first = documents.put(KEY, "one", replaces=None)

    with pytest.raises(Conflict):
        documents.put(KEY, "two", replaces=None)

    assert documents.get(KEY) == first
    assert [item.revision for item in documents.revisions(KEY)] == [first.revision]


def test_a_stale_write_is_refused_and_changes_nothing(documents):
    first = documents.put(KEY, "one", replaces=None)
    second = documents.put(KEY, "two", replaces=first.revision)

    with pytest.raises(Conflict):
        documents.put(KEY, "three", replaces=first.revision)

    assert documents.get(KEY) == second


def test_replacing_an_absent_document_is_a_conflict(documents):
    with pytest.raises(Conflict):
        documents.put(KEY, "one", replaces="no-such-revision")
    with pytest.raises(Conflict):
        documents.delete(KEY, replaces="no-such-revision")

    assert documents.list("") == []


def test_every_revision_stays_readable(documents):
    first = documents.put(KEY, "one", replaces=None)
    second = documents.put(KEY, "two", replaces=first.revision)
    documents.delete(KEY, replaces=second.revision)

    assert documents.get(KEY, revision=first.revision) == first
    assert documents.get(KEY, revision=second.revision) == second


def test_the_same_text_again_is_a_revision_of_its_own(documents):
    first = documents.put(KEY, "one", replaces=None)
    second = documents.put(KEY, "one", replaces=first.revision)

    assert second.revision != first.revision
    assert [item.revision for item in documents.revisions(KEY)] == [
        second.revision,
        first.revision,
    ]


def test_deleting_removes_the_document_and_keeps_its_history(documents):
    first = documents.put(KEY, "one", replaces=None)
    removal = documents.delete(KEY, replaces=first.revision)

    with pytest.raises(NotFound):
        documents.get(KEY)
    with pytest.raises(NotFound):
        documents.get(KEY, revision=removal)
    assert documents.list("") == []
    assert [(item.revision, item.deleted) for item in documents.revisions(KEY)] == [
        (removal, True),
        (first.revision, False),
    ]


def test_a_stale_delete_is_refused_and_changes_nothing(documents):
    first = documents.put(KEY, "one", replaces=None)
    second = documents.put(KEY, "two", replaces=first.revision)

    with pytest.raises(Conflict):
        documents.delete(KEY, replaces=first.revision)

    assert documents.get(KEY) == second


def test_a_deleted_document_can_be_written_again(documents):
    first = documents.put(KEY, "one", replaces=None)
    removal = documents.delete(KEY, replaces=first.revision)

    with pytest.raises(Conflict):
        documents.put(KEY, "two", replaces=removal)
    second = documents.put(KEY, "two", replaces=None)

    assert documents.get(KEY) == second
    assert [item.revision for item in documents.revisions(KEY)] == [
        second.revision,
        removal,
        first.revision,
    ]


def test_an_unknown_revision_is_not_found(documents):
    documents.put(KEY, "one", replaces=None)

    for revision in ("", "x", "../../config.toml", "00000009-20310504T123015250Z-0123456789abcdef"):
        with pytest.raises(NotFound):
            documents.get(KEY, revision=revision)


def test_a_revision_of_another_document_is_not_found(documents):
    documents.put(KEY, "one", replaces=None)
    other = documents.put("agents/zoe/MEMORY.md", "secret", replaces=None)
    other = documents.put("agents/zoe/MEMORY.md", "two", replaces=other.revision)

    with pytest.raises(NotFound):
        documents.get(KEY, revision=other.revision)


def test_listing_is_sorted_and_keeps_to_the_prefix(documents):
    keys = ["agents/main/MEMORY.md", "agents/main/memory/a b.md", "agents/main/memory/é.md"]
    others = ["agents/main-archive/MEMORY.md", "config.toml"]
    for key in [*reversed(keys), *others]:
        documents.put(key, key, replaces=None)

    assert [item.key for item in documents.list("agents/main/")] == keys
    assert [item.key for item in documents.list("agents/main/memory/")] == keys[1:]
    assert [item.key for item in documents.list("agents/main/mem")] == keys[1:]
    assert [item.key for item in documents.list("agents/nobody/")] == []
    assert [item.key for item in documents.list("")] == sorted([*keys, *others])


def test_a_token_stays_while_nothing_happens_and_changes_with_the_content(documents):
    first = documents.put(KEY, "one", replaces=None)
    (before,) = documents.list("")
    (again,) = documents.list("")
    documents.put(KEY, "two", replaces=first.revision)
    (after,) = documents.list("")

    assert before == again
    assert after.token != before.token


def test_a_change_by_hand_is_a_revision(store):
    first = store.documents.put(KEY, "one", replaces=None)
    store.by_hand(KEY, b"one\nby hand\n")

    current = store.documents.get(KEY)

    assert current.text == "one\nby hand\n"
    assert [item.revision for item in store.documents.revisions(KEY)] == [
        current.revision,
        first.revision,
    ]


def test_a_write_from_before_a_change_by_hand_is_a_conflict(store):
    first = store.documents.put(KEY, "one", replaces=None)
    store.by_hand(KEY, b"by hand")

    with pytest.raises(Conflict):
        store.documents.put(KEY, "two", replaces=first.revision)
    with pytest.raises(Conflict):
        store.documents.delete(KEY, replaces=first.revision)

    assert store.documents.get(KEY).text == "by hand"


def test_a_document_made_by_hand_has_a_revision(store):
    store.by_hand("agents/main/memory/Q&A + plan (50%).md", b"yes")

    found = store.documents.get("agents/main/memory/Q&A + plan (50%).md")

    assert found.text == "yes"
    assert [item.revision for item in store.documents.revisions(found.key)] == [found.revision]
    with pytest.raises(Conflict):
        store.documents.put(found.key, "no", replaces=None)


def test_a_document_removed_by_hand_has_a_removal_in_its_history(store):
    first = store.documents.put(KEY, "one", replaces=None)
    store.by_hand(KEY, None)

    with pytest.raises(NotFound):
        store.documents.get(KEY)
    assert [item.deleted for item in store.documents.revisions(KEY)] == [True, False]
    assert store.documents.get(KEY, revision=first.revision) == first


def test_text_that_is_not_utf_8_is_invalid_and_never_empty(store):
    first = store.documents.put(KEY, "one", replaces=None)
    store.by_hand(KEY, b"caf\xe9")

    with pytest.raises(Invalid, match=r"MEMORY\.md"):
        store.documents.get(KEY)

    broken = store.documents.revisions(KEY)[0].revision
    assert broken != first.revision
    assert store.documents.put(KEY, "café", replaces=broken).text == "café"


def test_a_byte_order_mark_is_no_part_of_the_text(store):
    store.by_hand(KEY, b"\xef\xbb\xbf# Title\n")
    found = store.documents.get(KEY)

    second = store.documents.put(KEY, found.text + "more\n", replaces=found.revision)

    assert found.text == "# Title\n"
    assert second.text == "# Title\nmore\n"
    assert store.documents.get(KEY) == second


def test_a_text_with_half_a_character_is_invalid(documents):
    with pytest.raises(Invalid):
        documents.put(KEY, "\ud83d", replaces=None)

    assert documents.list("") == []


def test_of_many_writers_at_once_one_wins_each_revision(documents):
    documents.put(KEY, "", replaces=None)

    def append(line: str) -> None:
        while True:
            current = documents.get(KEY)
            try:
                documents.put(KEY, f"{current.text}{line}\n", replaces=current.revision)
            except Conflict:
                continue
            return

    threads = [Thread(target=append, args=(f"line {number}",)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    lines = documents.get(KEY).text.splitlines()
    assert sorted(lines) == sorted(f"line {number}" for number in range(20))
    assert len(documents.revisions(KEY)) == 21
