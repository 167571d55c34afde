"""The report stands whatever is wrong; the digest tells homes apart."""

import pytest

from instar.ids import AgentId
from instar.memory.asking import Asked
from instar.principal import owner
from instar.testing.builders import embedded_at
from instar.wiring.doctor import home_digest, home_report

MAIN = owner(AgentId("main"))
ASKED = Asked(reason="asked")


def check(report, name: str):
    return next(check for check in report["checks"] if check["name"] == name)


def test_an_empty_home_is_well(embedded):
    report = home_report(embedded)

    assert (report["ok"], report["documents"], report["indexed"]) == (True, 0, 0)
    assert (report["pending"], report["failed"], report["drift"]) == (0, [], 0)
    assert {check["status"] for check in report["checks"]} <= {"ok", "warn"}


def test_a_document_that_is_not_indexed_is_drift_until_it_is(embedded, folder):
    embedded.memory.editor.save(MAIN, "one", ASKED)
    (folder / "agents/main/memory").mkdir()
    (folder / "agents/main/memory/new.md").write_text("two\n")
    assert home_report(embedded)["drift"] == 1

    embedded.memory.indexer.level()

    report = home_report(embedded)
    assert (report["documents"], report["indexed"], report["drift"]) == (2, 2, 0)


@pytest.mark.parametrize(
    ("settings", "name", "word"),
    [
        ({"INSTAR_EMBEDDINGS": "foo"}, "embeddings", "INSTAR_EMBEDDINGS"),
        ({"INSTAR_TIME_ZONE": "Mars"}, "settings", "INSTAR_TIME_ZONE"),
        ({"INSTAR_MODEL": "openai-chat/x"}, "model", "INSTAR_MODEL_API_KEY"),
        ({"INSTAR_MODEL": "bedrock/x"}, "model", "bedrock"),
    ],
)
def test_what_is_wrong_is_a_failed_check_that_says_what_to_do(home, settings, name, word):
    report = home_report(embedded_at(home, settings))

    found = check(report, name)
    assert (report["ok"], found["status"]) == (False, "fail")
    assert word in found["detail"]
    assert found["fix"]
    assert check(report, "queues")["status"] == "ok"


def test_half_a_telegram_is_a_warning(home):
    report = home_report(embedded_at(home, {"INSTAR_TELEGRAM_TOKEN": "1:x"}))

    assert check(report, "telegram")["status"] == "warn"
    assert "INSTAR_TELEGRAM_SECRET" in check(report, "telegram")["detail"]
    assert "1:x" not in str(report)


def test_a_memory_too_long_for_the_prompt_is_a_warning(embedded, folder):
    (folder / "agents/main").mkdir(parents=True)
    (folder / "agents/main/MEMORY.md").write_text("x" * 12_001)

    assert check(home_report(embedded), "prompt memory")["status"] == "warn"


def test_dead_letters_are_a_warning(embedded):
    embedded.stores.turn_queue.put("{}", group="g", deduplication="d")
    with embedded.stores.database.write() as connection:
        connection.execute("UPDATE queue SET dead_at = 1")

    assert check(home_report(embedded), "queues")["status"] == "warn"


def test_the_digest_changes_with_everything_that_is_kept(memory, embedded, folder):
    digests = [home_digest(embedded)]

    memory.editor.save(MAIN, "one", ASKED)
    digests.append(home_digest(embedded))
    (folder / "agents/main/MEMORY.md").write_text("by hand\n")
    digests.append(home_digest(embedded))
    memory.remover.delete(MAIN, "by hand", ASKED)
    digests.append(home_digest(embedded))
    memory.editor.save(MAIN, "by hand", ASKED, unforget=True)
    digests.append(home_digest(embedded))

    assert len(set(digests)) == 5
    assert home_digest(embedded) == digests[-1]


def test_a_lifted_tombstone_alone_changes_the_digest(memory, embedded):
    memory.editor.save(MAIN, "one", ASKED)
    memory.remover.delete(MAIN, "one", ASKED)
    before = home_digest(embedded)

    with embedded.stores.database.write() as connection:
        connection.execute("DELETE FROM tombstones")

    assert home_digest(embedded) != before


def test_a_file_that_is_not_text_has_a_digest(memory, embedded, folder):
    memory.editor.save(MAIN, "one", ASKED)
    (folder / "agents/main/memory").mkdir()
    (folder / "agents/main/memory/bad.md").write_bytes(b"\xff\xfe")

    assert len(home_digest(embedded)) == 64
