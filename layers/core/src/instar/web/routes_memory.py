"""Documents and search over HTTP: read, change against a revision, history, restore."""

import re
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict
from starlette.responses import PlainTextResponse

from instar.errors import Conflict, Invalid, NotFound, TooLarge
from instar.memory.asking import Asked
from instar.memory.documents import DOCUMENT_BYTES
from instar.memory.ports import Kind
from instar.memory.recall import DEFAULT_LIMIT, SearchRequest
from instar.web.auth import Call, GuardedRoute, Here
from instar.web.markdown import rendered
from instar.web.problems import Json, PreconditionRequired

router = APIRouter(route_class=GuardedRoute, tags=["memory"])
_LINES = re.compile(r"(\d{1,9})-(\d{1,9})")
_TAG = re.compile(r'(?:W/)?"([^"]*)"|([^\s",]+)')


class StaleRevision(Conflict):
    """The document has changed since the revision that the caller read."""

    status = 412


class NewText(BaseModel):
    """The whole new text of a document."""

    model_config = ConfigDict(extra="forbid")

    text: str


class RevisionToRestore(BaseModel):
    """Which revision should be the current text again."""

    model_config = ConfigDict(extra="forbid")

    revision: str


class SearchQuery(BaseModel):
    """A question and what narrows it; `since` and `until` are inclusive."""

    model_config = ConfigDict(extra="forbid")

    q: str
    limit: int = DEFAULT_LIMIT
    document: str | None = None
    kind: Kind | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    explain: bool = False
    agent: str | None = None


@router.get("/v1/documents")
def list_documents(here: Here) -> dict[str, Any]:
    """The agent's documents: `{"documents":[{"document","kind"}]}`."""
    return here.services.reader.list(here.principal).json_value()


@router.get("/v1/documents/{document:path}/history")
def history(here: Here, document: str) -> dict[str, Any]:
    """All revisions, newest first, with author and reason."""
    return here.services.reader.history(here.principal, document).json_value()


@router.get("/v1/documents/{document:path}/diff")
def diff(here: Here, document: str, old: str, new: str) -> dict[str, Any]:
    """A unified diff from revision `old` to revision `new`."""
    return here.services.reader.diff(here.principal, document, old, new).json_value()


@router.post("/v1/documents/{document:path}/restore")
def restore(here: Here, document: str, wanted: RevisionToRestore) -> Response:
    """Makes a revision's text the current one again, as a new revision that can be undone too."""
    asked = Asked(reason=f"restored revision {wanted.revision[:80]}")
    made = here.services.editor.restore(here.principal, document, wanted.revision, asked)
    return Json(made.json_value(), headers={"etag": f'"{made.revision}"'})


@router.get("/v1/documents/{document:path}")
def read_document(
    here: Here,
    document: str,
    revision: str | None = None,
    lines: str | None = None,
    view: Literal["json", "html", "raw"] = "json",
) -> Response:
    """`{"document","revision","text"}`; `lines=a-b` cuts; `view=html` adds safe HTML, `view=raw` is
    the text alone, as text/plain.
    """
    found = here.services.reader.get(
        here.principal, document, lines=_span(lines), revision=revision
    )
    headers = {"etag": f'"{found.revision}"'}
    if view == "raw":
        return PlainTextResponse(found.text.encode("utf-8", "replace"), headers=headers)
    shown = found.json_value()
    if view == "html":
        shown["html"] = rendered(found.text)
    return Json(shown, headers=headers)


@router.put("/v1/documents/{document:path}")
def write_document(
    here: Here,
    document: str,
    new: NewText,
    if_match: Annotated[str | None, Header()] = None,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Replaces the text of the revision that you read: `If-Match: "REVISION"`, or
    `If-None-Match: *` for a new document. 412 `conflict` when somebody wrote since, 428 without.
    """
    size = len(new.text.encode("utf-8", "replace"))
    if size > DOCUMENT_BYTES:
        raise TooLarge(
            f"the text has {size:,} bytes; a document holds at most {DOCUMENT_BYTES:,}",
            fix="Split it into several documents under memory/.",
        )
    replaces = _replaced(here, document, if_match, if_none_match)
    try:
        made = here.services.editor.put(
            here.principal, document, new.text, Asked(reason="edited"), replaces=replaces
        )
    except (Conflict, NotFound) as error:
        if isinstance(error, NotFound) and replaces is None:
            raise
        raise _stale(document) from error
    return Json(made.json_value(), headers={"etag": f'"{made.revision}"'})


@router.get("/v1/memory/search")
def search(here: Here, asked: Annotated[SearchQuery, Query()]) -> dict[str, Any]:
    """Finds passages: `{"hits":[…],"mode","degraded","reason"}`. Any text is a query."""
    request = SearchRequest(query=asked.q, **asked.model_dump(exclude={"q", "agent"}))
    return here.services.recall.search(here.principal, request).json_value()


def _replaced(
    here: Call, document: str, if_match: str | None, if_none_match: str | None
) -> str | None:
    """The revision to replace, None to create. Raises PreconditionRequired, StaleRevision."""
    if if_match is None and if_none_match is None:
        raise PreconditionRequired(
            f"a change of {document[:120]!r} has to say which revision it replaces",
            fix='Send If-Match: "REVISION" with the one you read, If-None-Match: * to create.',
        )
    if if_match is not None:
        return _tag(here, document, if_match)
    if if_none_match != "*":
        raise Invalid("If-None-Match takes * alone", fix="Send If-None-Match: * to create.")
    try:
        here.services.reader.get(here.principal, document)
    except NotFound:
        return None
    raise _stale(document)


def _tag(here: Call, document: str, header: str) -> str:
    """The one revision that If-Match names; a star is the current one."""
    if header.strip() == "*":
        return here.services.reader.get(here.principal, document).revision
    match = _TAG.fullmatch(header.strip())
    if match is None:
        raise Invalid("not an If-Match", fix='Send one revision: If-Match: "REVISION".')
    return match[1] if match[1] is not None else match[2]


def _stale(document: str) -> StaleRevision:
    return StaleRevision(
        f"{document} has changed since you read it",
        fix="Read it again and put your change into the new text.",
    )


def _span(lines: str | None) -> tuple[int, int] | None:
    if lines is None:
        return None
    match = _LINES.fullmatch(lines)
    if match is None:
        raise Invalid(f"not a span of lines: {lines[:40]!r}", fix="Use a-b, from 1.")
    return int(match[1]), int(match[2])
