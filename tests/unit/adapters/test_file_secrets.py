"""What only secrets in a file promise: nobody else reads them, no error shows them."""

import json
import stat
import traceback
from pathlib import Path

import pytest

from instar.adapters.local.file_secrets import FileSecrets
from instar.errors import Invalid, Misconfigured, Unavailable

SETTER = """
import sys
from pathlib import Path
from instar.adapters.local.file_secrets import FileSecrets

for number in range(5):
    FileSecrets(Path(sys.argv[1])).set(f"name_{sys.argv[2]}_{number}", "value")
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "home" / "secrets"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folder_and_file_are_for_their_owner_alone(folder):
    FileSecrets(folder).set("telegram_token", "t0ken")

    assert mode(folder) == 0o700
    assert {path.name: mode(path) for path in folder.iterdir()} == {
        "secrets.json": 0o600,
        ".lock": 0o600,
    }


def test_a_file_that_others_can_read_is_closed_and_said(folder, caplog):
    FileSecrets(folder).set("telegram_token", "t0ken")
    (folder / "secrets.json").chmod(0o644)
    folder.chmod(0o755)

    assert FileSecrets(folder).get("telegram_token") == "t0ken"
    assert mode(folder) == 0o700
    assert mode(folder / "secrets.json") == 0o600
    assert caplog.text.count("was open to other users") == 2
    assert "t0ken" not in caplog.text


def test_a_secret_set_elsewhere_counts_at_once(folder):
    secrets = FileSecrets(folder)
    assert secrets.get("telegram_token") is None
    FileSecrets(folder).set("telegram_token", "t0ken")

    assert secrets.get("telegram_token") == "t0ken"


def test_processes_that_set_at_once_lose_nothing(folder, children):
    setters = [children.start(SETTER, folder, number) for number in range(4)]

    assert [setter.wait(timeout=30) for setter in setters] == [0] * 4
    assert len(FileSecrets(folder).names()) == 20


@pytest.mark.parametrize(
    "damage", [b'{"telegram_token": "t0ken"', b'["t0ken"]', b'{"a": {"b": "t0ken"}}', b"t0ken\xff"]
)
def test_a_damaged_file_is_a_mistake_and_shows_no_value(folder, damage):
    secrets = FileSecrets(folder)
    (folder / "secrets.json").write_bytes(damage)
    (folder / "secrets.json").chmod(0o600)

    for call in (
        secrets.names,
        lambda: secrets.get("telegram_token"),
        lambda: secrets.set("other", "x"),
    ):
        with pytest.raises(Misconfigured) as damaged:
            call()
        assert damaged.value.__cause__ is None
        assert damaged.value.__context__ is None
        assert "t0ken" not in "".join(traceback.format_exception(damaged.value))
    assert (folder / "secrets.json").read_bytes() == damage


def test_a_value_that_is_no_text_is_not_shown(folder):
    with pytest.raises(Invalid) as invalid:
        FileSecrets(folder).set("telegram_token", "t0ken\ud83d")

    assert invalid.value.__context__ is None
    assert "t0ken" not in str(invalid.value.problem())
    assert FileSecrets(folder).names() == []


def test_a_link_is_not_followed(folder, tmp_path):
    secrets = FileSecrets(folder)
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text(json.dumps({"telegram_token": "t0ken"}))
    (folder / "secrets.json").symlink_to(elsewhere)

    with pytest.raises(Misconfigured):
        secrets.get("telegram_token")


def test_a_full_disk_leaves_the_secrets_as_they_were(folder, limited_files):
    secrets = FileSecrets(folder)
    secrets.set("telegram_token", "t0ken")

    with limited_files(100), pytest.raises(Unavailable):
        secrets.set("other", "x" * 500)

    assert secrets.names() == ["telegram_token"]
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "secrets.json"]
