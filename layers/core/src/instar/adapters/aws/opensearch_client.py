"""The client of an OpenSearch cluster: time limits, retries and, for a domain of AWS, signatures.

An address of AWS is signed with the credentials of the process (SigV4, service `es`); any other
is asked without authentication. Nothing here needs the gRPC half of opensearch-py, which the layer
leaves out.
"""

import logging
import re
from urllib.parse import urlsplit

from opensearchpy import OpenSearch, Urllib3AWSV4SignerAuth

from instar.adapters.aws.opensearch_errors import opensearch_failures
from instar.errors import Misconfigured

WRITE_SECONDS = 60.0
CONNECTIONS = 20
_DOMAIN = re.compile(r"\.([a-z0-9-]+)\.(?:es\.amazonaws\.com(?:\.cn)?|on\.aws)$")
_OF_AWS = re.compile(r"\.(?:amazonaws\.com(?:\.cn)?|on\.aws)$")


def opensearch_client(endpoint: str) -> OpenSearch:
    """A client of the cluster at this URL; thread-safe, made once. Raises Misconfigured.

    One retry: a function that slept finds its kept connection closed. Timeouts are not repeated.
    """
    # At DEBUG it logs whole bodies, which are memories; its warnings repeat what we raise.
    logging.getLogger("opensearch").setLevel(logging.ERROR)
    host = urlsplit(endpoint).hostname or ""
    with opensearch_failures("the search engine's client"):
        return OpenSearch(
            endpoint,
            http_auth=signature(host),
            timeout=WRITE_SECONDS,
            max_retries=1,
            retry_on_timeout=False,
            pool_maxsize=CONNECTIONS,
        )


def signature(host: str) -> Urllib3AWSV4SignerAuth | None:
    """What signs the requests to this host; None where nothing has to. Raises Misconfigured."""
    if not _OF_AWS.search(host):
        return None
    domain = _DOMAIN.search(host)
    if domain is None:
        raise Misconfigured(
            f"{host!r} is not the address of an OpenSearch domain",
            fix="Use the domain's endpoint; OpenSearch Serverless lacks what Instar needs.",
        )
    import botocore.session  # noqa: PLC0415  # a cluster elsewhere does without

    credentials = botocore.session.get_session().get_credentials()
    if credentials is None:
        raise Misconfigured(
            f"there are no AWS credentials to ask {host!r} with",
            fix="Run where a role is, or set AWS_PROFILE.",
        )
    return Urllib3AWSV4SignerAuth(credentials, domain[1], "es")
