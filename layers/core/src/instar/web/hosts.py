"""Pure: which Host names this server answers to, and whether an Origin is its own.

A page of another site can make a browser send requests here, also under a name of its own that
resolves to this machine. The Host check ends the second, the Origin check the first.
"""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRules:
    """The names that are served, beside this machine's own. `any`: the platform in front of us
    routes by name already (an API Gateway domain).
    """

    names: frozenset[str] = frozenset()
    any: bool = False

    def allows(self, host: str) -> bool:
        """Whether a request with this Host header is for us; every port is."""
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = match[1].lower()
        return self.any or name in LOOPBACK or name in {known.lower() for known in self.names}


def is_same_origin(origin: str, host: str) -> bool:
    """Whether a browser's Origin names this very host and port."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()
