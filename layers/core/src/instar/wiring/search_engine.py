"""Settings become the search engine `opensearch`: the cluster at `search.endpoint`.

Import this only where that setting is there: it loads opensearch-py.
"""

from instar.adapters.aws.opensearch_client import opensearch_client
from instar.adapters.aws.opensearch_index import OpenSearchIndex
from instar.config import Settings
from instar.errors import Misconfigured

PREFIX = "instar"


def build_opensearch(
    settings: Settings, *, generation: str, prefix: str = PREFIX
) -> OpenSearchIndex:
    """The index of this stack; `generation` is the embedder's fingerprint, "" without one.

    Two stacks on one cluster need two prefixes. Raises Misconfigured; connects to nothing yet.
    """
    if not settings.search_endpoint:
        raise Misconfigured(
            "no OpenSearch cluster is set",
            fix="Set INSTAR_SEARCH_ENDPOINT, or use the builtin engine.",
        )
    client = opensearch_client(settings.search_endpoint)
    return OpenSearchIndex(client, prefix=prefix, generation=generation)
