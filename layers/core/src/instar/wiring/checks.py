"""The checks of `doctor` that every way to run shares, and the shape of its report.

A check that cannot be made is a failed check, never the end of the report; each says what to do.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from instar.config import Settings
from instar.errors import InstarError, Misconfigured, NotFound
from instar.ids import AgentId
from instar.llm.ports import Model
from instar.memory.documents import PROMPT_DOCUMENT, document_key, is_indexed, split_key
from instar.memory.index import Indexer
from instar.memory.ports import Documents, Embeddings, Manifest, ManifestRow

Check = dict[str, Any]
Named = tuple[str, Callable[[], Check]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What is examined. The callables build their part, or raise what is wrong with it."""

    agent: AgentId
    settings: Callable[[], Settings]
    secret: Callable[[str], str | None]
    model: Callable[[], Model]
    embeddings: Callable[[], Embeddings | None]
    indexer: Callable[[], Indexer]
    documents: Documents
    manifest: Manifest

    def checks(self) -> list[Named]:
        """The shared checks by name."""
        return [
            ("settings", self._settings),
            ("model", self._model),
            ("embeddings", self._embeddings),
            ("prompt memory", self._prompt_memory),
            ("documents and index", self._index),
            ("telegram", self._telegram),
        ]

    def report(self, checks: Iterable[Named]) -> dict[str, Any]:
        """The whole report, the given checks in it."""
        made = [made_check(name, check) for name, check in checks]
        rows = list(self.manifest.rows())
        drift: int | None = None
        try:
            drift = len(self.indexer().drift())
        except InstarError as error:
            made.append(_failed("drift", error))
        failed = [row for row in rows if row.state == "failed"]
        return {
            "ok": all(check["status"] != "fail" for check in made),
            "checks": made,
            "documents": sum(is_indexed(listed.key) for listed in self.documents.list("agents/")),
            "indexed": sum(row.state == "indexed" for row in rows),
            "pending": self._pending(rows),
            "failed": [{"document": split_key(row.key)[1], "reason": row.reason} for row in failed],
            "drift": drift,
        }

    def _pending(self, rows: list[ManifestRow]) -> int:
        """Passages that are not yet fully indexed, vectors included."""
        try:
            by_words_alone = self.embeddings() is None
        except InstarError:  # settings that cannot be used: a check of its own says so
            by_words_alone = False
        if by_words_alone:
            return 0
        return sum(row.passages - row.vectors for row in rows if row.state != "failed")

    def _settings(self) -> Check:
        self.settings()
        return ok("settings can be used")

    def _model(self) -> Check:
        choices = self.settings().models
        if choices[0].provider == "demo":
            return ok(
                "the built-in demo model answers, without intelligence: set INSTAR_MODEL and a "
                "key or INSTAR_MODEL_BASE_URL, or choose a model on the page"
            )
        self.model()
        missing = [
            choice.key_variable
            for choice in choices
            if not choice.base_url and self.secret(choice.key_name) is None
        ]
        if missing:
            raise Misconfigured(
                f"no key for {choices[0].name!r}: {missing[0]} is not set",
                fix=f"Set it, or run `instar secret set {missing[0].removeprefix('INSTAR_')}`.",
            )
        return ok(", ".join(f"{choice.provider}/{choice.name}" for choice in choices))

    def _embeddings(self) -> Check:
        embeddings = self.embeddings()
        if embeddings is None:
            return ok("none: search is by words alone")
        return ok(embeddings.fingerprint)

    def _prompt_memory(self) -> Check:
        try:
            text = self.documents.get(document_key(self.agent, PROMPT_DOCUMENT)).text
        except NotFound:
            text = ""
        limit = self.settings().memory_characters
        detail = f"MEMORY.md has {len(text):,} of {limit:,} characters"
        if len(text) > limit:
            return warn(
                f"{detail}: the oldest lines are not in the prompt",
                "Move what is not always needed into memory/NAME.md, or raise "
                "prompt.memory_characters.",
            )
        return ok(detail)

    def _index(self) -> Check:
        rows = list(self.manifest.rows())
        failed = [row for row in rows if row.state == "failed"]
        if failed:
            return warn(
                f"{len(failed)} documents are not indexed", "See `failed`: each says its reason."
            )
        return ok(f"{len(rows)} documents, {sum(row.passages for row in rows)} passages")

    def _telegram(self) -> Check:
        settings = self.settings()
        given = {
            "INSTAR_TELEGRAM_TOKEN": self.secret("telegram_token"),
            "INSTAR_TELEGRAM_SECRET": self.secret("telegram_secret"),
            "INSTAR_TELEGRAM_OWNER": settings.telegram_owner,
        }
        missing = [name for name, value in given.items() if not value]
        if len(missing) == len(given):
            return ok("not used")
        if missing:
            return warn(
                f"Telegram is refused until {', '.join(missing)} is set", f"Set {missing[0]}."
            )
        return ok(f"answers {settings.telegram_owner}")


def made_check(name: str, check: Callable[[], Check]) -> Check:
    """The check's answer; an error is a failed check with what to do."""
    try:
        return {"name": name, "fix": "", **check()}
    except InstarError as error:
        return _failed(name, error)


def ok(detail: str) -> Check:
    """All is well."""
    return {"status": "ok", "detail": detail}


def warn(detail: str, fix: str) -> Check:
    """It works, but a person should do something."""
    return {"status": "warn", "detail": detail, "fix": fix}


def _failed(name: str, error: InstarError) -> Check:
    return {"name": name, "status": "fail", "detail": error.detail, "fix": error.fix}
