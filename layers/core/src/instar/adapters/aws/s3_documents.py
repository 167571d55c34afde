"""Documents in a versioned bucket: a revision is a version id, the current one is what S3 serves.

Every write is conditional (If-Match on the ETag of the revision that it replaces, If-None-Match for
a new document), so S3 itself decides between two writers. ETags are opaque: equal content may have
an equal one, which is why the version id is compared first. Each put carries a mark of its own in
the object's metadata: a refusal that is only the echo of a success (the answer got lost, botocore
asked again) is recognised by it.

A byte order mark belongs to the object, not to the text, and stays when the text is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from instar.adapters.aws.errors import aws_failures, was_repeated
from instar.errors import Conflict, Invalid, NotFound, Unavailable
from instar.ids import new_id
from instar.memory.ports import Document, Listed, Revision

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

SETTINGS = "config.toml"
CONTENT_TYPE = "text/markdown; charset=utf-8"
WRITE = "instar-write"
_MARK = b"\xef\xbb\xbf"
ORDER = "instar-order"
_IN_ORDER = re.compile(rb"<(?:Version|DeleteMarker)>.*?<VersionId>([^<]*)</VersionId>", re.DOTALL)
_KEY_BYTES = 1024
_NAME_BYTES = 255
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Object:
    """One version as S3 gave it."""

    revision: str
    etag: str
    data: bytes
    at: datetime
    write: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """A revision as a listing shows it; `place` is where it stands on its page."""

    is_latest: bool
    at: datetime
    place: int
    revision: Revision


class S3Documents:
    """The AWS Documents. The idempotency key of a write is the revision that it replaces."""

    def __init__(
        self, client: S3Client, bucket: str, *, new_id: Callable[[], str] = new_id
    ) -> None:
        client.meta.events.register(
            "before-parse.s3.ListObjectVersions", _keep_order, unique_id=ORDER
        )
        self._client = client
        self._bucket = bucket
        self._new_id = new_id

    def get(self, key: str, *, revision: str | None = None) -> Document:
        """The current text or that of a revision. Raises NotFound, Invalid when not UTF-8."""
        _check(key)
        if revision is None:
            return _document(key, self._object(key))
        try:
            found = self._object(key, revision) if revision else None
        except Invalid:  # S3 says so for what cannot be a version id
            found = None
        if found is None:
            raise NotFound(f"document {key!r} has no revision {revision!r}")
        return _document(key, found)

    def put(self, key: str, text: str, *, replaces: str | None) -> Document:
        """Writes a revision if `replaces` is current. Raises Conflict, Invalid."""
        _check(key)
        data = _encoded(key, text)
        current = self._agreed(key, replaces)
        condition: dict[str, Any] = {"IfNoneMatch": "*"}
        if current is not None:
            condition = {"IfMatch": current.etag}
            data = _MARK + data if current.data.startswith(_MARK) else data
        write = self._new_id()
        try:
            with aws_failures(f"the document {key!r}"):
                put = self._client.put_object(
                    Bucket=self._bucket,
                    Key=key,
                    Body=data,
                    ContentType=CONTENT_TYPE,
                    Metadata={WRITE: write},
                    **condition,
                )
        except (Conflict, NotFound, Unavailable) as error:
            return self._arrived(key, replaces, write, error)
        return _document(key, self._object(key, put["VersionId"]))

    def delete(self, key: str, *, replaces: str) -> str:
        """Removes the document, keeping its revisions. Raises Conflict."""
        _check(key)
        current = self._agreed(key, replaces)
        etag = "" if current is None else current.etag
        try:
            with aws_failures(f"the document {key!r}"):
                removed = self._client.delete_object(Bucket=self._bucket, Key=key, IfMatch=etag)
        except (Conflict, NotFound, Unavailable) as error:
            return self._removed(key, replaces, error)
        return removed["VersionId"]

    def list(self, prefix: str) -> Sequence[Listed]:
        """The current documents under the prefix, sorted by key."""
        pages = self._client.get_paginator("list_objects_v2")
        with aws_failures(f"the documents under {prefix!r}"):
            found = [
                Listed(key=item["Key"], token=item["ETag"].strip('"'))
                for page in pages.paginate(Bucket=self._bucket, Prefix=prefix)
                for item in page.get("Contents", [])
            ]
        return sorted((item for item in found if _is_key(item.key)), key=lambda item: item.key)

    def revisions(self, key: str) -> Sequence[Revision]:
        """All revisions, newest first, removals included."""
        _check(key)
        pages = self._client.get_paginator("list_object_versions")
        found: list[_Listed] = []
        with aws_failures(f"the document {key!r}"):
            for page in pages.paginate(Bucket=self._bucket, Prefix=key):
                found += _of_page(key, page)
                if page.get("NextKeyMarker", key) > key:
                    break  # on to longer names that only begin alike
        return _newest_first(found)

    def _object(self, key: str, revision: str | None = None) -> _Object:
        """A version with its data. Raises NotFound."""
        which: dict[str, Any] = {} if revision is None else {"VersionId": revision}
        try:
            with aws_failures(f"the document {key!r}"):
                found = self._client.get_object(Bucket=self._bucket, Key=key, **which)
                data = found["Body"].read()
        except NotFound as error:
            suffix = "" if revision is None else f" at revision {revision!r}"
            raise NotFound(f"there is no document {key!r}{suffix}") from error
        return _Object(
            revision=found["VersionId"],
            etag=found["ETag"],
            data=data,
            at=found["LastModified"],
            write=found.get("Metadata", {}).get(WRITE, ""),
        )

    def _current(self, key: str) -> _Object | None:
        try:
            return self._object(key)
        except NotFound:
            return None

    def _agreed(self, key: str, replaces: str | None) -> _Object | None:
        """The current version, None when absent. Raises Conflict unless it is `replaces`."""
        current = self._current(key)
        if (None if current is None else current.revision) != replaces:
            raise _conflict(key, replaces, current)
        return current

    def _arrived(self, key: str, replaces: str | None, write: str, error: Exception) -> Document:
        """The document if the put arrived after all; the error otherwise."""
        current = self._current(key)
        if current is not None and current.write == write:
            return _document(key, current)
        if isinstance(error, Unavailable):
            raise error
        raise _conflict(key, replaces, current) from error

    def _removed(self, key: str, replaces: str, error: Exception) -> str:
        """The removal if the delete arrived after all; the error otherwise."""
        if was_repeated(error):
            newest = self.revisions(key)[:2]
            if [item.deleted for item in newest] == [True, False] and (
                newest[1].revision == replaces
            ):
                return newest[0].revision
        if isinstance(error, Unavailable):
            raise error
        raise _conflict(key, replaces, self._current(key)) from error


def _is_key(key: str) -> bool:
    """Whether the key names a document: *.md or the settings, nothing hidden on its path."""
    return (
        (key == SETTINGS or key.endswith(".md"))
        and len(key.encode()) <= _KEY_BYTES
        and all(
            part
            and not part.startswith((".", "~"))
            and not _NOT_IN_NAMES.search(part)
            and len(part.encode()) <= _NAME_BYTES
            for part in key.split("/")
        )
    )


def _check(key: str) -> None:
    """Raises Invalid for what is no document's key."""
    if _NOT_IN_NAMES.search(key) or not _is_key(key):
        raise Invalid(
            f"not a document: {key[:200]!r}",
            fix=f"Use a path below home that ends in .md, or {SETTINGS}.",
        )


def _encoded(key: str, text: str) -> bytes:
    """The text in UTF-8, without a byte order mark. Raises Invalid for half characters."""
    try:
        return text.lstrip("\ufeff").encode()
    except UnicodeEncodeError as error:
        raise Invalid(
            f"the text for {key!r} has a lone surrogate at character {error.start}",
            fix="Send whole characters.",
        ) from None


def _document(key: str, found: _Object) -> Document:
    """The revision with its text. Raises Invalid when that is not UTF-8."""
    try:
        text = found.data.decode().lstrip("\ufeff")
    except UnicodeDecodeError as error:
        raise Invalid(
            f"the document {key!r} is not UTF-8 text (byte {error.start} of {found.revision})",
            fix="Save the file as UTF-8, or restore an earlier revision.",
        ) from None
    return Document(key=key, revision=found.revision, text=text, at=found.at)


def _of_page(key: str, page: Any) -> list[_Listed]:
    """The versions and removals of exactly this key."""
    order: Sequence[str] = page.get(ORDER, [])
    kinds = ((page.get("Versions", []), False), (page.get("DeleteMarkers", []), True))
    return [
        _Listed(
            is_latest=bool(item["IsLatest"]),
            at=item["LastModified"],
            place=order.index(item["VersionId"]) if item["VersionId"] in order else 0,
            revision=Revision(revision=item["VersionId"], at=item["LastModified"], deleted=deleted),
        )
        for items, deleted in kinds
        for item in items
        if item["Key"] == key
    ]


def _newest_first(found: Sequence[_Listed]) -> list[Revision]:
    """S3 lists a key's versions newest first, but in whole seconds and, parsed, in two lists."""
    placed = sorted(enumerate(found), key=lambda item: (item[1].place, item[0]))
    newest = sorted((item for _, item in placed), key=lambda item: item.at, reverse=True)
    return [item.revision for item in sorted(newest, key=lambda item: not item.is_latest)]


def _keep_order(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any
) -> None:
    """Adds to a parsed listing the order in which versions and removals stand in it, mixed."""
    body: bytes = response_dict.get("body", b"")
    customized_response_dict[ORDER] = [found.decode() for found in _IN_ORDER.findall(body)]


def _conflict(key: str, replaces: str | None, current: _Object | None) -> Conflict:
    is_at = "absent" if current is None else f"at {current.revision}"
    expected = "absent" if replaces is None else f"at {replaces}"
    return Conflict(f"document {key!r} is {is_at}, not {expected}", fix="Read it again.")
