"""The page and its assets: plain files of the package, read once, served with an entity tag."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request, Response

from instar.errors import NotFound
from instar.web.auth import GuardedRoute, Open

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)
FOLDER = Path(__file__).parent / "assets"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is served."""

    content: bytes
    type: str
    tag: str


def load_assets() -> Mapping[str, Asset]:
    """The files of the page by name."""
    return {
        path.name: _asset(path)
        for path in sorted(FOLDER.iterdir())
        if path.is_file() and path.suffix in TYPES
    }


@router.get("/")
def index(services: Open, request: Request) -> Response:
    """The page."""
    return _served(request, "index.html")


@router.get("/favicon.ico")
def favicon(services: Open, request: Request) -> Response:
    """The icon, for browsers that ask before they read."""
    return _served(request, "icon.svg")


@router.get("/assets/{name}")
def asset(services: Open, request: Request, name: str) -> Response:
    """A file of the page."""
    return _served(request, name)


def _asset(path: Path) -> Asset:
    content = path.read_bytes()
    return Asset(content, TYPES[path.suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def _served(request: Request, name: str) -> Response:
    assets: Mapping[str, Asset] = request.app.state.assets
    found = assets.get(name)
    if found is None:
        raise NotFound(f"there is no asset {name[:80]!r}")
    headers = {"etag": found.tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    return Response(found.content, media_type=found.type, headers=headers)
