"""The memory tools: thin shapes around memory's use cases; results are the commands' JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from instar.memory.asking import Asked
from instar.memory.editor import MemoryEditor
from instar.memory.reader import MemoryReader
from instar.memory.recall import Recall, SearchRequest
from instar.memory.removal import MemoryRemover
from instar.principal import Right
from instar.tools.ports import CallContext, Tool


class _Arguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SearchArguments(_Arguments):
    """Arguments of memory_search."""

    query: str = Field(description="a question or words, in any language")
    limit: int = Field(default=5, ge=1, le=50)
    document: str | None = None
    kind: Literal["fact", "note", "daily", "transcript", "summary"] | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    explain: bool = False


class GetArguments(_Arguments):
    """Arguments of memory_get."""

    document: str = Field(description="MEMORY.md or memory/NAME.md")
    lines: tuple[int, int] | None = Field(default=None, description="[first, last], from 1")
    revision: str | None = None


class SaveArguments(_Arguments):
    """Arguments of memory_save."""

    content: str = Field(description="one plain sentence; no secrets")
    document: str | None = Field(default=None, description="MEMORY.md unless named")
    replace: bool = Field(default=False, description="replace the whole document")


class DeleteArguments(_Arguments):
    """Arguments of memory_delete."""

    content: str = Field(description="the exact text to remove")


class HistoryArguments(_Arguments):
    """Arguments of memory_history."""

    document: str


class RestoreArguments(_Arguments):
    """Arguments of memory_restore."""

    document: str
    revision: str


@dataclass(frozen=True, slots=True)
class MemorySearch:
    """Finds passages by question."""

    recall: Recall
    name: str = "memory_search"
    description: str = "Search the owner's memory (facts, notes, past conversations) by question."
    arguments: type[BaseModel] = SearchArguments
    right: Right = Right.READ

    def run(self, arguments: SearchArguments, context: CallContext) -> Mapping[str, Any]:
        """The JSON of `memory search`."""
        request = SearchRequest(**arguments.model_dump())
        return self.recall.search(context.principal, request).json_value()


@dataclass(frozen=True, slots=True)
class MemoryGet:
    """Reads a document."""

    reader: MemoryReader
    name: str = "memory_get"
    description: str = "Read one memory document, or some of its lines, or an old revision."
    arguments: type[BaseModel] = GetArguments
    right: Right = Right.READ

    def run(self, arguments: GetArguments, context: CallContext) -> Mapping[str, Any]:
        """The JSON of `memory get`."""
        found = self.reader.get(
            context.principal,
            arguments.document,
            lines=arguments.lines,
            revision=arguments.revision,
        )
        return found.json_value()


@dataclass(frozen=True, slots=True)
class MemorySave:
    """Remembers a statement."""

    editor: MemoryEditor
    name: str = "memory_save"
    description: str = "Remember a lasting fact or wish that the owner stated, as one sentence."
    arguments: type[BaseModel] = SaveArguments
    right: Right = Right.WRITE

    def run(self, arguments: SaveArguments, context: CallContext) -> Mapping[str, Any]:
        """The JSON of `memory save`."""
        saved = self.editor.save(
            context.principal,
            arguments.content,
            _asked(context, "saved"),
            document=arguments.document,
            replace=arguments.replace,
        )
        return saved.json_value()


@dataclass(frozen=True, slots=True)
class MemoryDelete:
    """Removes a statement."""

    remover: MemoryRemover
    name: str = "memory_delete"
    description: str = "Remove a statement from memory, given its exact text, when the owner asks."
    arguments: type[BaseModel] = DeleteArguments
    right: Right = Right.WRITE

    def run(self, arguments: DeleteArguments, context: CallContext) -> Mapping[str, Any]:
        """The JSON of `memory delete`."""
        removed = self.remover.delete(
            context.principal, arguments.content, _asked(context, "deleted")
        )
        return removed.json_value()


@dataclass(frozen=True, slots=True)
class MemoryHistory:
    """Lists a document's revisions."""

    reader: MemoryReader
    name: str = "memory_history"
    description: str = "List the revisions of a memory document: who changed it, when and why."
    arguments: type[BaseModel] = HistoryArguments
    right: Right = Right.READ

    def run(self, arguments: HistoryArguments, context: CallContext) -> Mapping[str, Any]:
        """The JSON of `memory history`."""
        return self.reader.history(context.principal, arguments.document).json_value()


@dataclass(frozen=True, slots=True)
class MemoryRestore:
    """Brings an old revision back."""

    editor: MemoryEditor
    name: str = "memory_restore"
    description: str = "Bring back the text of an old revision, as a new revision."
    arguments: type[BaseModel] = RestoreArguments
    right: Right = Right.WRITE

    def run(self, arguments: RestoreArguments, context: CallContext) -> Mapping[str, Any]:
        """The JSON of `memory restore`."""
        restored = self.editor.restore(
            context.principal,
            arguments.document,
            arguments.revision,
            _asked(context, f"restored {arguments.revision}"),
        )
        return restored.json_value()


def memory_tools(
    editor: MemoryEditor, remover: MemoryRemover, reader: MemoryReader, recall: Recall
) -> tuple[Tool, ...]:
    """All memory tools."""
    return (
        MemorySearch(recall),
        MemoryGet(reader),
        MemorySave(editor),
        MemoryDelete(remover),
        MemoryHistory(reader),
        MemoryRestore(editor),
    )


def _asked(context: CallContext, reason: str) -> Asked:
    return Asked(reason=reason, effect=context.effect, call=context.call)
