"""Every Manifest adapter keeps these promises."""

from dataclasses import replace

import pytest

from instar.adapters.aws.dynamo_ledger import DynamoManifest
from instar.adapters.local.sqlite_ledger import SqliteManifest
from instar.memory.ports import Manifest, ManifestRow

ROW = ManifestRow(
    key="agents/main/MEMORY.md",
    token="t1",
    revision="r1",
    state="pending",
    generation="local:384",
    passages=4,
    vectors=2,
)


def sqlite(request: pytest.FixtureRequest) -> Manifest:
    return SqliteManifest(request.getfixturevalue("database"))


def dynamo(request: pytest.FixtureRequest) -> Manifest:
    request.getfixturevalue("aws")
    return DynamoManifest()


@pytest.fixture(params=[sqlite, dynamo], ids=lambda build: build.__name__)
def manifest(request: pytest.FixtureRequest) -> Manifest:
    return request.param(request)


def test_a_document_that_was_never_looked_at_has_no_row(manifest):
    assert manifest.get(ROW.key) is None
    assert manifest.rows() == []


def test_a_row_is_kept_and_replaced(manifest):
    manifest.put(ROW)
    failed = replace(ROW, state="failed", reason="not UTF-8 text", revision="r2")
    manifest.put(failed)

    assert manifest.get(ROW.key) == failed
    assert manifest.rows() == [failed]


def test_rows_are_sorted_by_key(manifest):
    rows = [replace(ROW, key=key) for key in ("agents/a/é.md", "agents/a/Z.md", "agents/a/a.md")]
    for row in rows:
        manifest.put(row)

    assert manifest.rows() == [rows[1], rows[2], rows[0]]


def test_a_dropped_row_is_gone_and_dropping_again_is_no_error(manifest):
    manifest.put(ROW)
    manifest.drop(ROW.key)
    manifest.drop(ROW.key)

    assert manifest.get(ROW.key) is None
