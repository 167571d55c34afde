"""The command line on a URL: a client with the key of INSTAR_KEY."""

from collections.abc import Mapping

from instar.adapters.http import Egress, Trust
from instar.adapters.url_door import CHAT_WAIT_SECONDS, UrlDoor
from instar.errors import Unauthenticated


def open_url(url: str, environ: Mapping[str, str]) -> UrlDoor:
    """A door to the Instar at that address. Raises Unauthenticated without INSTAR_KEY."""
    key = environ.get("INSTAR_KEY", "")
    if not key:
        raise Unauthenticated(
            "INSTAR_KEY is not set", fix="Set it to a key, see `instar key create --scopes owner`."
        )
    client = Egress().client(Trust.OWNER, timeout_seconds=CHAT_WAIT_SECONDS + 10)
    client.base_url = url.rstrip("/") + "/"
    client.headers["authorization"] = f"Bearer {key}"
    return UrlDoor(client)
