"""What only documents in a folder promise: any editor, any crash, any number of processes."""

import os
import random
import signal
import stat
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from threading import Thread

import pytest

from instar.adapters.local.folder_documents import FolderDocuments
from instar.adapters.local.folder_history import fingerprint
from instar.errors import Conflict, Invalid, Misconfigured, NotFound, Unavailable

KEY = "agents/main/MEMORY.md"

WRITER = """
import sys
from pathlib import Path
from instar.adapters.local.folder_documents import FolderDocuments
from instar.clock import utc_now
from instar.errors import Conflict, NotFound

documents, key = FolderDocuments(Path(sys.argv[1]), utc_now), sys.argv[2]
for line in sys.argv[4:] or range(10**9):
    while True:
        try:
            current = documents.get(key)
            text, revision = current.text, current.revision
        except NotFound:
            text, revision = "", None
        try:
            if sys.argv[3] == "delete" and revision and int(line) % 5 == 4:
                print("removed", documents.delete(key, replaces=revision), flush=True)
            else:
                put = documents.put(key, f"{text}{line}\\n", replaces=revision)
                print("put", put.revision, put.text.encode().hex(), flush=True)
            break
        except Conflict:
            continue
"""


@pytest.fixture
def documents(tmp_path, clock) -> FolderDocuments:
    return FolderDocuments(tmp_path, clock)


@pytest.fixture
def current(tmp_path) -> Path:
    return tmp_path / KEY


@pytest.fixture
def history(tmp_path) -> Path:
    return tmp_path / ".revisions" / KEY


def texts(documents: FolderDocuments) -> list[str]:
    """Every revision's text, oldest first; a removal is "-"."""
    return [
        "-" if item.deleted else documents.get(KEY, revision=item.revision).text
        for item in reversed(documents.revisions(KEY))
    ]


def next_id(text: str | None) -> str:
    data = None if text is None else text.encode()
    return f"00000002-20310504T123016000Z-{fingerprint(data)}"


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.suffix]


def test_documents_are_plain_files_with_their_revisions_beside(documents, tmp_path, history):
    put = documents.put(KEY, "# Facts\n", replaces=None)

    assert (tmp_path / KEY).read_text() == "# Facts\n"
    assert [path.name for path in history.iterdir()] == [put.revision]
    assert (history / put.revision).read_text() == "# Facts\n"
    assert put.revision == "00000001-20310504T123015250Z-" + fingerprint(b"# Facts\n")


def test_a_new_instance_finds_everything(documents, tmp_path, clock):
    first = documents.put(KEY, "one", replaces=None)
    second = documents.put(KEY, "two", replaces=first.revision)

    again = FolderDocuments(tmp_path, clock)

    assert again.get(KEY) == second
    assert again.get(KEY, revision=first.revision) == first


def test_new_files_are_private_and_replaced_ones_keep_their_mode(documents, current):
    first = documents.put(KEY, "one", replaces=None)
    assert stat.S_IMODE(current.stat().st_mode) == 0o600
    current.chmod(0o644)

    documents.put(KEY, "two", replaces=first.revision)

    assert stat.S_IMODE(current.stat().st_mode) == 0o644


def test_an_editor_that_saves_by_renaming_is_seen(documents, current):
    documents.put(KEY, "one", replaces=None)
    beside = current.with_name("MEMORY.md.swp")
    beside.write_text("by hand")
    beside.replace(current)

    assert texts(documents) == ["one", "by hand"]
    assert documents.get(KEY).text == "by hand"


def test_an_edit_of_the_same_size_and_time_is_seen(documents, current):
    documents.put(KEY, "one", replaces=None)
    seen = current.stat()
    current.write_text("two")
    os.utime(current, ns=(seen.st_atime_ns, seen.st_mtime_ns))

    assert documents.get(KEY).text == "two"


def test_an_edit_by_hand_has_the_time_of_the_file(documents, current, clock):
    first = documents.put(KEY, "one", replaces=None)
    clock.advance(3600)
    current.write_text("by hand")
    edited = first.at.timestamp() + 600
    os.utime(current, (edited, edited))

    assert documents.get(KEY).at.timestamp() == edited


def test_an_edit_by_hand_is_never_older_than_what_it_changed(documents, current):
    first = documents.put(KEY, "one", replaces=None)
    current.write_text("by hand")
    os.utime(current, (0, 0))

    assert documents.get(KEY).at == first.at


def test_half_saved_files_get_a_moment_to_be_whole(documents, current):
    documents.put(KEY, "one\ntwo\n", replaces=None)
    current.write_text("")
    editor = Thread(target=lambda: (time.sleep(0.03), current.write_text("one\ntwo\nthree\n")))
    editor.start()

    found = documents.get(KEY)
    editor.join()

    assert found.text == "one\ntwo\nthree\n"
    assert texts(documents) == ["one\ntwo\n", "one\ntwo\nthree\n"]


def test_the_owner_may_empty_a_file(documents, current):
    documents.put(KEY, "one", replaces=None)
    current.write_text("")

    assert documents.get(KEY).text == ""


def test_a_removed_and_restored_file_goes_on(documents, current):
    documents.put(KEY, "one", replaces=None)
    current.unlink()
    assert documents.revisions(KEY)[0].deleted
    current.write_text("one")

    assert texts(documents) == ["one", "-", "one"]


@pytest.fixture
def meanwhile(clock):
    """What a person does between the check and the write: the clock is asked just there."""
    actions: list[Callable[[], object]] = []

    def ask() -> datetime:
        while actions:
            actions.pop()()
        return clock()

    ask.do = actions.append
    return ask


def test_an_edit_between_check_and_write_wins(tmp_path, meanwhile, current, history):
    documents = FolderDocuments(tmp_path, meanwhile)
    first = documents.put(KEY, "one", replaces=None)

    meanwhile.do(lambda: current.write_text("by hand"))
    with pytest.raises(Conflict):
        documents.put(KEY, "two", replaces=first.revision)

    assert documents.get(KEY).text == "by hand"
    assert texts(documents) == ["one", "by hand"]
    assert leftovers(history) == []


def test_an_edit_between_check_and_removal_wins(tmp_path, meanwhile, current, history):
    documents = FolderDocuments(tmp_path, meanwhile)
    first = documents.put(KEY, "one", replaces=None)

    meanwhile.do(lambda: current.write_text("by hand"))
    with pytest.raises(Conflict):
        documents.delete(KEY, replaces=first.revision)

    assert documents.get(KEY).text == "by hand"
    assert texts(documents) == ["one", "by hand"]
    assert leftovers(history) == []


def test_a_file_made_between_check_and_first_write_wins(tmp_path, meanwhile, current):
    documents = FolderDocuments(tmp_path, meanwhile)

    meanwhile.do(lambda: current.write_text("by hand"))
    with pytest.raises(Conflict):
        documents.put(KEY, "one", replaces=None)

    assert texts(documents) == ["by hand"]


def test_a_file_removed_between_check_and_write_stays_removed(tmp_path, meanwhile, current):
    documents = FolderDocuments(tmp_path, meanwhile)
    first = documents.put(KEY, "one", replaces=None)

    meanwhile.do(current.unlink)
    with pytest.raises(Conflict):
        documents.put(KEY, "two", replaces=first.revision)

    assert texts(documents) == ["one", "-"]


def test_a_file_removed_between_check_and_removal_is_a_conflict(tmp_path, meanwhile, current):
    documents = FolderDocuments(tmp_path, meanwhile)
    first = documents.put(KEY, "one", replaces=None)

    meanwhile.do(current.unlink)
    with pytest.raises(Conflict):
        documents.delete(KEY, replaces=first.revision)

    assert texts(documents) == ["one", "-"]


def test_an_edit_that_races_a_write_is_never_lost(documents, current):
    random.seed(7)
    documents.put(KEY, "start", replaces=None)
    for number in range(150):
        revision = documents.get(KEY).revision
        edit, beside = f"edit {number}", current.with_name("beside.tmp")

        def save(edit=edit, beside=beside) -> None:
            beside.write_text(edit)
            time.sleep(random.random() * 0.002)
            beside.replace(current)

        editor = Thread(target=save)
        editor.start()
        time.sleep(random.random() * 0.001)
        try:
            documents.put(KEY, f"put {number}", replaces=revision)
            put = [f"put {number}"]
        except Conflict:
            put = []
        editor.join()

        last = texts(documents)
        assert edit in last
        assert [text for text in last if text == f"put {number}"] == put


def test_what_editors_and_systems_leave_is_no_document(documents, tmp_path):
    documents.put(KEY, "one", replaces=None)
    folder = tmp_path / "agents/main"
    for name in (".MEMORY.md.swp", "MEMORY.md~", "~$x.md", ".hidden.md", "x.md.tmp", "#x.md#"):
        (folder / name).write_text("x")
    (folder / "config.toml").write_text("x")
    (folder / "folder.md").mkdir()
    (tmp_path / ".obsidian").mkdir()
    (tmp_path / ".obsidian/x.md").write_text("x")
    (folder / os.fsdecode(b"caf\xe9.md")).write_text("x")
    os.mkfifo(folder / "pipe.md")

    assert [item.key for item in documents.list("")] == [KEY]
    with pytest.raises(NotFound):
        documents.get("agents/main/pipe.md")
    with pytest.raises(NotFound):
        documents.get("agents/main/folder.md")
    with pytest.raises(Invalid):
        documents.put("agents/main/folder.md", "x", replaces=None)


def test_the_settings_are_a_document_at_the_root_only(documents):
    documents.put("config.toml", "x = 1\n", replaces=None)

    assert [item.key for item in documents.list("")] == ["config.toml"]
    with pytest.raises(Invalid):
        documents.get("agents/main/config.toml")


@pytest.mark.parametrize(
    "key",
    [
        "",
        ".",
        "..",
        "../x.md",
        "agents/../../x.md",
        "/etc/passwd.md",
        "agents//x.md",
        "agents/./x.md",
        "agents\\x.md",
        "MEMORY.md\x00.txt",
        "a\n.md",
        ".revisions/x.md",
        "instar.db",
        "agents/main/.hidden.md",
        "agents/main/" + "x" * 1100 + ".md",
    ],
)
def test_what_is_no_key_is_invalid_at_every_door(documents, key):
    with pytest.raises(Invalid):
        documents.get(key)
    with pytest.raises(Invalid):
        documents.get(key, revision="x")
    with pytest.raises(Invalid):
        documents.put(key, "x", replaces=None)
    with pytest.raises(Invalid):
        documents.delete(key, replaces="x")
    with pytest.raises(Invalid):
        documents.revisions(key)


def test_a_prefix_cannot_leave_the_folder(documents):
    documents.put(KEY, "one", replaces=None)

    for prefix in ("../", "/", "/etc/", "agents/../", ".revisions/", "agents/main/MEMORY.md/"):
        assert documents.list(prefix) == []


def test_links_are_not_read_and_not_written(tmp_path, clock):
    outside, root = tmp_path / "outside", tmp_path / "home"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    documents = FolderDocuments(root, clock)
    documents.put(KEY, "one", replaces=None)
    (root / "agents/main/link.md").symlink_to(outside / "secret.md")
    (root / "agents/main/memory").symlink_to(outside)
    (root / "agents/zoe").symlink_to(root / "agents/main")

    for key in ("agents/main/link.md", "agents/main/memory/secret.md", "agents/zoe/MEMORY.md"):
        with pytest.raises(NotFound):
            documents.get(key)
        with pytest.raises(NotFound):
            documents.revisions(key)
        with pytest.raises(Invalid):
            documents.put(key, "mine", replaces=None)
    assert [item.key for item in documents.list("")] == [KEY]
    assert documents.list("agents/main/memory/") == []
    assert documents.list("agents/zoe/") == []
    assert (outside / "secret.md").read_text() == "secret"
    assert [path.name for path in outside.iterdir()] == ["secret.md"]


def test_names_that_differ_only_in_case_or_composition_are_refused(documents):
    documents.put("agents/main/memory/travel.md", "x", replaces=None)
    documents.put("agents/main/memory/é.md", "x", replaces=None)

    for key in (
        "agents/main/memory/Travel.md",
        "agents/main/Memory/other.md",
        "agents/main/memory/e\u0301.md",
    ):
        with pytest.raises(Invalid):
            documents.put(key, "x", replaces=None)
    documents.put("agents/main/memory/travels.md", "x", replaces=None)


def test_a_crash_while_the_revision_was_written_changes_nothing(documents, history):
    first = documents.put(KEY, "one", replaces=None)
    (history / (next_id("two") + ".pending")).write_text("tw")

    assert documents.revisions(KEY)[0].revision == first.revision
    assert texts(documents) == ["one"]
    documents.put(KEY, "three", replaces=first.revision)
    assert texts(documents) == ["one", "three"]
    assert leftovers(history) == []


def test_a_crash_before_the_exchange_changes_nothing(documents, history):
    first = documents.put(KEY, "one", replaces=None)
    (history / (next_id("two") + ".pending")).write_text("two")
    (history / (next_id("two") + ".swap")).write_text("two")

    assert documents.get(KEY) == first
    documents.put(KEY, "three", replaces=first.revision)
    assert texts(documents) == ["one", "three"]
    assert leftovers(history) == []


def test_a_crash_after_the_exchange_is_finished(documents, history, current):
    documents.put(KEY, "one", replaces=None)
    (history / (next_id("two") + ".pending")).write_text("two")
    (history / (next_id("two") + ".swap")).write_text("one")
    current.write_text("two")

    assert documents.get(KEY).revision == next_id("two")
    assert texts(documents) == ["one", "two"]
    assert leftovers(history) == []


def test_a_crash_after_the_exchange_and_an_edit_by_hand_keeps_all_three(
    documents, history, current
):
    documents.put(KEY, "one", replaces=None)
    (history / (next_id("two") + ".pending")).write_text("two")
    (history / (next_id("two") + ".swap")).write_text("one")
    current.write_text("by hand")

    assert texts(documents) == ["one", "two", "by hand"]
    assert documents.get(KEY).text == "by hand"


def test_a_crash_that_had_taken_out_an_edit_by_hand_gives_it_back(documents, history, current):
    documents.put(KEY, "one", replaces=None)
    (history / (next_id("two") + ".pending")).write_text("two")
    (history / (next_id("two") + ".swap")).write_text("by hand")
    current.write_text("two")

    assert documents.get(KEY).text == "by hand"
    assert texts(documents) == ["one", "by hand"]
    assert leftovers(history) == []


def test_a_crash_between_two_edits_by_hand_keeps_both(documents, history, current):
    documents.put(KEY, "one", replaces=None)
    (history / (next_id("two") + ".pending")).write_text("two")
    (history / (next_id("two") + ".swap")).write_text("by hand")
    current.write_text("by hand again")

    assert texts(documents) == ["one", "two", "by hand", "by hand again"]


def test_a_crash_after_the_first_write_of_a_document_is_finished(documents, tmp_path, history):
    history.mkdir(parents=True)
    revision = next_id("two").replace("00000002", "00000001")
    (history / (revision + ".pending")).write_text("two")
    (tmp_path / "agents/main").mkdir(parents=True)
    (tmp_path / KEY).write_text("two")

    assert documents.get(KEY).revision == revision
    assert texts(documents) == ["two"]


def test_a_crash_before_a_removal_changes_nothing(documents, history):
    first = documents.put(KEY, "one", replaces=None)
    (history / (next_id(None) + ".pending")).write_text("")

    assert documents.get(KEY) == first
    documents.put(KEY, "two", replaces=first.revision)
    assert texts(documents) == ["one", "two"]


def test_a_crash_in_a_removal_is_finished(documents, history, current):
    documents.put(KEY, "one", replaces=None)
    (history / (next_id(None) + ".pending")).write_text("")
    current.rename(history / (next_id(None) + ".swap"))

    with pytest.raises(NotFound):
        documents.get(KEY)
    assert documents.revisions(KEY)[0].revision == next_id(None)
    assert texts(documents) == ["one", "-"]
    assert leftovers(history) == []


def test_a_crash_in_a_removal_gives_an_edit_by_hand_back(documents, history, current):
    documents.put(KEY, "one", replaces=None)
    (history / (next_id(None) + ".pending")).write_text("")
    current.write_text("by hand")
    current.rename(history / (next_id(None) + ".swap"))

    assert documents.get(KEY).text == "by hand"
    assert texts(documents) == ["one", "by hand"]


def test_a_copy_that_a_crash_left_is_swept(documents, history):
    first = documents.put(KEY, "one", replaces=None)
    second = documents.put(KEY, "two", replaces=first.revision)
    (history / (second.revision + ".swap")).write_text("one")
    (history / (next_id("x") + ".partial")).write_text("x")

    documents.put(KEY, "three", replaces=second.revision)

    assert texts(documents) == ["one", "two", "three"]
    assert leftovers(history) == []


def test_lost_revisions_start_a_new_history(documents, history):
    documents.put(KEY, "one", replaces=None)
    for path in history.iterdir():
        path.unlink()

    assert documents.get(KEY).text == "one"
    assert texts(documents) == ["one"]


@pytest.mark.parametrize("mode", ["put", "delete"])
def test_a_killed_writer_loses_nothing_that_it_had_said(
    documents, tmp_path, history, children, mode
):
    random.seed(11)
    said: list[list[str]] = []
    for _ in range(8):
        writer = children.start(WRITER, tmp_path, KEY, mode)
        said.append(writer.stdout.readline().split())
        time.sleep(random.random() * 0.03)
        writer.send_signal(signal.SIGKILL)
        rest = writer.communicate()[0]
        said += [line.split() for line in rest.splitlines() if rest.endswith("\n")]

        last = documents.get(KEY) if not documents.revisions(KEY)[0].deleted else None
        documents.put(KEY, "alive\n", replaces=last and last.revision)
        assert leftovers(history) == []

    kept = {item.revision for item in documents.revisions(KEY)}
    assert {line[1] for line in said} <= kept
    for line in said:
        if line[0] == "put":
            text = documents.get(KEY, revision=line[1]).text
            assert text == bytes.fromhex(line[2] if len(line) > 2 else "").decode()


def test_processes_that_write_at_once_lose_no_line(documents, tmp_path, children):
    writers = [
        children.start(WRITER, tmp_path, KEY, "put", *range(first, first + 10))
        for first in range(0, 50, 10)
    ]
    for writer in writers:
        writer.communicate(timeout=60)

    lines = documents.get(KEY).text.split()
    assert sorted(map(int, lines)) == list(range(50))
    assert [item.revision[:8] for item in reversed(documents.revisions(KEY))] == [
        f"{number:08d}" for number in range(1, 51)
    ]


def test_a_file_that_cannot_be_written_changes_nothing(documents, current, history, limited_files):
    first = documents.put(KEY, "one", replaces=None)

    with limited_files(1000), pytest.raises(Unavailable) as refused:
        documents.put(KEY, "x" * 5000, replaces=first.revision)

    assert "disk space" in refused.value.fix
    assert documents.get(KEY) == first
    assert [path.name for path in history.iterdir()] == [first.revision]
    assert [path.name for path in current.parent.iterdir()] == ["MEMORY.md"]


def test_a_full_disk_leaves_everything_as_it_was(tiny_disk, clock):
    documents = FolderDocuments(tiny_disk, clock)
    first = documents.put(KEY, "one", replaces=None)
    filler = tiny_disk / "filler"
    # Room for the revision, none for the copy beside it.
    filler.write_bytes(b"x" * 800_000)

    with pytest.raises(Unavailable):
        documents.put(KEY, "y" * 150_000, replaces=first.revision)
    with pytest.raises(Unavailable):
        documents.put(KEY, "y" * 500_000, replaces=first.revision)

    assert documents.get(KEY) == first
    assert texts(documents) == ["one"]
    assert leftovers(tiny_disk / ".revisions" / KEY) == []
    filler.unlink()
    documents.put(KEY, "y" * 150_000, replaces=first.revision)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights_is_a_mistake_of_the_set_up(documents, tmp_path):
    documents.put(KEY, "one", replaces=None)
    (tmp_path / "agents/main").chmod(0o000)
    try:
        with pytest.raises(Misconfigured):
            documents.list("")
        with pytest.raises(Misconfigured):
            documents.get(KEY)
    finally:
        (tmp_path / "agents/main").chmod(0o700)


def test_of_a_thousand_documents_all_are_listed(documents, tmp_path):
    folder = tmp_path / "agents/main/memory"
    folder.mkdir(parents=True)
    for number in range(1_000):
        (folder / f"note-{number:05d}.md").touch()

    assert len(documents.list("agents/main/")) == 1_000
