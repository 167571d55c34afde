import pytest

from instar.adapters.aws.s3_documents import S3Documents
from instar.errors import Conflict, Invalid, Misconfigured, NotFound, Unavailable

KEY = "agents/main/MEMORY.md"


@pytest.fixture
def s3(aws):
    return aws.s3()


@pytest.fixture
def documents(s3):
    return S3Documents(s3, "documents")


def test_only_documents_are_listed(documents, s3):
    others = ["agents/main/notes.txt", "agents/main/.hidden.md", "agents/config.toml"]
    for key in [*others, "sessions/x", "agents//MEMORY.md", KEY, "config.toml"]:
        s3.put_object(Bucket="documents", Key=key, Body=b"x")

    assert [item.key for item in documents.list("")] == [KEY, "config.toml"]


@pytest.mark.parametrize("key", ["", "a.txt", "a//b.md", "../a.md", ".x/a.md", "a\n.md", "/a.md"])
def test_what_is_no_document_is_invalid(documents, key):
    with pytest.raises(Invalid):
        documents.get(key)
    with pytest.raises(Invalid):
        documents.put(key, "text", replaces=None)
    with pytest.raises(Invalid):
        documents.revisions(key)


def test_longer_names_that_begin_alike_are_other_documents(documents):
    first = documents.put("a.md", "one", replaces=None)
    documents.put("a.md.md", "two", replaces=None)

    assert [item.revision for item in documents.revisions("a.md")] == [first.revision]


def test_long_lists_are_read_to_their_end(documents, monkeypatch):
    keys = [f"agents/main/memory/{number:02d}.md" for number in range(12)]
    for key in keys:
        documents.put(key, key, replaces=None)
    revision = documents.get(keys[0]).revision
    for number in range(11):
        revision = documents.put(keys[0], str(number), replaces=revision).revision
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "5")

    assert [item.key for item in documents.list("agents/")] == keys
    assert len(documents.revisions(keys[0])) == 12


def test_every_write_is_conditional_and_says_what_it_is(documents, wire):
    first = documents.put(KEY, "one", replaces=None)
    second = documents.put(KEY, "two", replaces=first.revision)
    documents.delete(KEY, replaces=second.revision)

    writes = [request for request in wire.requests if request.method in ("PUT", "DELETE")]
    conditions = [
        {name.lower() for name in request.headers} & {"if-match", "if-none-match"}
        for request in writes
    ]
    assert conditions == [{"if-none-match"}, {"if-match"}, {"if-match"}]
    assert bytes(writes[0].headers["Content-Type"]) == b"text/markdown; charset=utf-8"


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (409, "ConditionalRequestConflict", Conflict),
        (412, "PreconditionFailed", Conflict),
        (404, "NoSuchKey", Conflict),
        (403, "AccessDenied", Misconfigured),
    ],
)
def test_a_refused_put_says_what_to_do(documents, wire, status, code, kind):
    first = documents.put(KEY, "one", replaces=None)
    wire.next(None, wire.s3_error(status, code))

    with pytest.raises(kind):
        documents.put(KEY, "two", replaces=first.revision)

    assert documents.get(KEY) == first


def test_a_put_whose_answer_got_lost_is_one_revision(documents, wire):
    first = documents.put(KEY, "one", replaces=None)
    wire.next(None, wire.lost)

    second = documents.put(KEY, "two", replaces=first.revision)

    assert documents.get(KEY) == second
    assert len(documents.revisions(KEY)) == 2


def test_a_put_that_never_gets_an_answer_is_found_out(documents, wire):
    first = documents.put(KEY, "one", replaces=None)
    wire.next(None, wire.lost, *[wire.plain(500)] * 3)

    assert documents.put(KEY, "two", replaces=first.revision).text == "two"


def test_a_put_that_did_not_arrive_may_be_tried_later(documents, wire):
    first = documents.put(KEY, "one", replaces=None)
    wire.next(None, *[wire.plain(500)] * 4)

    with pytest.raises(Unavailable):
        documents.put(KEY, "two", replaces=first.revision)

    assert documents.get(KEY) == first


def test_a_delete_whose_answer_got_lost_is_one_removal(documents, wire):
    first = documents.put(KEY, "one", replaces=None)
    wire.next(None, wire.lost)

    removal = documents.delete(KEY, replaces=first.revision)

    assert [item.revision for item in documents.revisions(KEY)] == [removal, first.revision]


def test_the_version_of_a_removal_is_not_found_however_s3_says_it(documents, wire):
    documents.put(KEY, "one", replaces=None)
    for refusal in (wire.s3_error(405, "MethodNotAllowed"), wire.s3_error(400, "InvalidArgument")):
        wire.next(refusal)
        with pytest.raises(NotFound):
            documents.get(KEY, revision="x")


def test_equal_content_does_not_make_an_old_revision_current(documents):
    first = documents.put(KEY, "one", replaces=None)
    second = documents.put(KEY, "two", replaces=first.revision)
    documents.put(KEY, "one", replaces=second.revision)

    with pytest.raises(Conflict):
        documents.put(KEY, "three", replaces=first.revision)


def test_versions_and_removals_of_one_second_stand_in_the_order_of_the_listing(documents, wire):
    def item(kind: str, id: str, latest: str = "false") -> str:
        return (
            f"<{kind}><Key>{KEY}</Key><VersionId>{id}</VersionId><IsLatest>{latest}</IsLatest>"
            f"<LastModified>2031-05-04T12:00:00.000Z</LastModified></{kind}>"
        )

    items = (
        item("DeleteMarker", "v4", "true")
        + item("Version", "v3")
        + item("DeleteMarker", "v2")
        + item("Version", "v1")
    )
    listing = f"<ListVersionsResult><IsTruncated>false</IsTruncated>{items}</ListVersionsResult>"
    wire.next(wire.plain(200, listing))

    assert [found.revision for found in documents.revisions(KEY)] == ["v4", "v3", "v2", "v1"]


def test_a_long_document_is_read(documents, s3):
    s3.put_object(Bucket="documents", Key=KEY, Body=b"x" * 1_000_000)

    assert len(documents.get(KEY).text) == 1_000_000


def test_a_delete_that_did_not_arrive_may_be_tried_later(documents, wire):
    first = documents.put(KEY, "one", replaces=None)
    wire.next(None, *[wire.plain(500)] * 4)

    with pytest.raises(Unavailable):
        documents.delete(KEY, replaces=first.revision)

    assert documents.get(KEY) == first


def test_a_delete_that_another_writer_beat_is_a_conflict(documents, wire):
    first = documents.put(KEY, "one", replaces=None)
    wire.next(None, wire.s3_error(412, "PreconditionFailed"))

    with pytest.raises(Conflict):
        documents.delete(KEY, replaces=first.revision)
