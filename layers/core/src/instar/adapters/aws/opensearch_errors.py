"""The one place where failures of OpenSearch become Instar's errors: by class and status.

OpenSearch's own reasons may quote a document, so they stay in the cause and in the debug log; ours
carry what was asked for, the error's type and the status.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opensearchpy.exceptions import (
    ConnectionTimeout,
    ImproperlyConfigured,
    OpenSearchException,
    SSLError,
    TransportError,
)

from instar.errors import InstarError, Invalid, Misconfigured, Throttled, TooLarge, Unavailable

MISSING_SCHEMA = frozenset({"index_not_found_exception", "strict_dynamic_mapping_exception"})
MISSING_DOCUMENT = "document_missing_exception"
_BLOCKED = "cluster_block_exception"  # a full disk: a 403 that passes
_LATER = frozenset({402, 404, 408, 409, 429})
_log = logging.getLogger(__name__)


@contextmanager
def opensearch_failures(what: str) -> Iterator[None]:
    """Translates what opensearch-py raises out of the block; `what` names the thing, no content."""
    try:
        yield
    except SSLError as error:
        raise Misconfigured(
            f"{what}: the certificate of OpenSearch is not trusted",
            fix="Check `search.endpoint`.",
        ) from error
    except ConnectionTimeout as error:
        raise Unavailable(f"{what}: OpenSearch did not answer in time") from error
    except TransportError as error:
        raise _of_transport(what, error) from error
    except ImproperlyConfigured as error:
        raise Misconfigured(f"{what}: {error}") from error
    except OpenSearchException as error:
        raise Unavailable(f"{what}: what answered is not OpenSearch") from error


def answered(what: str, status: int, cause: Any) -> InstarError:
    """The error of a request, or of one part of it, that was answered with this status."""
    kind = type_of(cause)
    if isinstance(cause, Mapping):
        _log.debug("%s: %s %s: %s", what, status, kind, cause.get("reason"))
    detail = f"{what}: {kind or 'no reason given'} ({status})"
    if status in {401, 403} and kind != _BLOCKED:
        return Misconfigured(
            detail, fix="Allow this function's role, or this address, in the cluster's policy."
        )
    if status == 429:
        return Throttled(detail)
    if status == 413:
        return TooLarge(detail)
    if status >= 500 or status in _LATER or kind == _BLOCKED:
        return Unavailable(detail)
    return Invalid(detail)


def type_of(cause: Any) -> str:
    """The type of an error as OpenSearch names it, of the root when a whole search failed."""
    if not isinstance(cause, Mapping):
        return str(cause or "")
    roots = cause.get("root_cause") or [cause]
    return str(roots[0].get("type", ""))


def _of_transport(what: str, error: TransportError) -> InstarError:
    status = error.status_code
    if not isinstance(status, int):
        reason = type(error.info).__name__ if isinstance(error.info, Exception) else "no answer"
        return Unavailable(f"{what}: OpenSearch cannot be reached: {reason}")
    return answered(what, status, error.error)
