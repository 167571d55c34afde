"""Where documents live: names and keys, which of them are indexed, of which kind they are.

The one place that turns a name into a key. Layout under `agents/<agent>/`: `MEMORY.md` (always in
the prompt), `memory/NAME.md` (notes; `memory/YYYY-MM-DD.md` is a day), `transcripts/NAME.md`,
`persona/NAME.md` (in the prompt, never indexed). At the root: `config.toml`.
"""

import re
import unicodedata

from instar.errors import Invalid
from instar.ids import AgentId, agent_id
from instar.memory.ports import Kind

CONFIG_KEY = "config.toml"
PROMPT_DOCUMENT = "MEMORY.md"
NAME_CHARACTERS = 100
DOCUMENT_BYTES = 262_144

_FOLDERS = ("memory", "transcripts", "persona")
_INDEXED_FOLDERS = ("memory", "transcripts")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\.md")
_PERCENT_CODE = re.compile(r"%[0-9a-fA-F]{2}")
_FIX = (
    "Use MEMORY.md or memory/NAME.md; NAME has letters, digits, '.', '_' and '-', "
    f"starts with a letter or digit, ends in .md, and has at most {NAME_CHARACTERS} characters."
)


def document_key(agent: AgentId, name: str) -> str:
    """The key of an agent's document. Raises Invalid for anything that is not a document's name.

    Names that a person gave in a file manager (spaces, any letters) are accepted as they are, for
    reading; `new_document_key` is stricter.
    """
    folder, _, base = name.rpartition("/")
    ok = name == PROMPT_DOCUMENT or (folder in _FOLDERS and _is_base_name(base))
    if not ok:
        raise Invalid(f"not a document's name: {name[:120]!r}", fix=_FIX)
    return f"agents/{agent_id(agent)}/{name}"


def new_document_key(agent: AgentId, name: str) -> str:
    """The key for writing a document. Raises Invalid unless the name is one that Instar makes."""
    name = unicodedata.normalize("NFC", name)
    key = document_key(agent, name)
    folder, _, base = name.rpartition("/")
    if folder and not (_is_plain(base[:-3]) and len(base) <= NAME_CHARACTERS + 3):
        raise Invalid(f"not a name for a new document: {name[:120]!r}", fix=_FIX)
    return key


def _is_base_name(base: str) -> bool:
    stem = base[:-3]
    return (
        base.endswith(".md")
        and bool(stem)
        and not stem.startswith((".", " "))
        and ".." not in base
        and base.isprintable()
        and "\\" not in base
        and not _PERCENT_CODE.search(base)
        and len(base.encode()) <= 250
    )


def _is_plain(stem: str) -> bool:
    """Letters and digits of any script (and their marks), '.', '_', '-'; no space, no control."""
    categories = {
        unicodedata.category(character)[0] for character in stem if character not in "._-"
    }
    return stem[0].isalnum() and categories <= {"L", "N", "M"}


def is_memory(name: str) -> bool:
    """Whether this is where statements are kept: MEMORY.md or a note, no persona, no transcript."""
    return name == PROMPT_DOCUMENT or name.startswith("memory/")


def split_key(key: str) -> tuple[AgentId, str]:
    """The agent and the document's name of a key under `agents/`. Raises Invalid for others."""
    parts = key.split("/", 2)
    if len(parts) != 3 or parts[0] != "agents":
        raise Invalid(f"not the key of an agent's document: {key[:120]!r}")
    return agent_id(parts[1]), parts[2]


def agent_of(key: str) -> AgentId:
    """The agent whose document this is. Raises Invalid for a key outside `agents/`."""
    return split_key(key)[0]


def is_indexed(key: str) -> bool:
    """Whether the index holds this document: prompt memory, notes and transcripts, one level."""
    parts = key.split("/")
    if len(parts) == 3:
        return parts[0] == "agents" and parts[2] == PROMPT_DOCUMENT
    return (
        len(parts) == 4
        and parts[0] == "agents"
        and parts[2] in _INDEXED_FOLDERS
        and parts[3].endswith(".md")
        and not parts[3].startswith(".")
    )


def kind_of(key: str) -> Kind:
    """The kind that a document's place gives it."""
    _, name = split_key(key)
    folder, _, base = name.rpartition("/")
    if folder == "transcripts":
        return "transcript"
    if not folder:
        return "fact"
    return "daily" if _DAY.fullmatch(base) else "note"
