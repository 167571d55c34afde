"""Settings become an embedder: the packaged one, an OpenAI-compatible one, or none."""

from collections.abc import Callable

from instar.adapters.builtin.packaged_embeddings import PackagedEmbeddings
from instar.adapters.http import Egress, Trust
from instar.config import Settings
from instar.errors import Misconfigured
from instar.memory.ports import Embeddings
from instar.wiring.models import OPENAI_BASE_URL

EMBEDDING_TIMEOUT_SECONDS = 30.0


def build_embeddings(
    settings: Settings, secret: Callable[[str], str | None], egress: Egress
) -> Embeddings | None:
    """The embedder that the owner chose; None for keyword-only. Raises Misconfigured."""
    provider, _, name = settings.embeddings.partition("/")
    if provider == "none":
        return None
    if provider == "local":
        return PackagedEmbeddings()
    if provider == "openai" and name:
        from instar.adapters.llm.openai_embeddings import (  # noqa: PLC0415  seldom chosen
            OpenAIEmbeddings,
        )

        return OpenAIEmbeddings(
            egress.client(Trust.OWNER, timeout_seconds=EMBEDDING_TIMEOUT_SECONDS),
            base_url=settings.embeddings_base_url or OPENAI_BASE_URL,
            model=name,
            api_key=lambda: secret("embeddings_api_key"),
            dimensions=settings.embeddings_dimensions or None,
        )
    raise Misconfigured(
        f"INSTAR_EMBEDDINGS is {settings.embeddings!r}",
        fix="Use local, none or openai/NAME.",
    )
