"""What an API's address on AWS is here: a path of the emulator's one port."""

import re

API_HOST = re.compile(
    r"(?P<kind>http|ws)s?://(?P<id>[a-z0-9]+)\.execute-api\."
    r"(?:[a-z0-9-]+\.amazonaws\.com(?:\.cn)?|localhost(?::\d+)?)"
)


def reach_local(text: str, endpoint: str) -> str:
    """The same API at the emulator; http stays http, and a socket's address stays a socket's."""

    def local(found: re.Match[str]) -> str:
        base = re.sub("^http", found["kind"], endpoint)
        return f"{base}/_aws/execute-api/{found['id']}"

    return API_HOST.sub(local, text)
