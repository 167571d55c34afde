"""The embedded database: many processes, a full disk, damage, versions."""

import os
import sqlite3
import stat
from threading import Thread

import pytest

from instar.adapters.local.database import Database, micros, moment
from instar.adapters.local.schema import MIGRATIONS
from instar.errors import Misconfigured, Unavailable

ADDER = """
import sys
from pathlib import Path
from instar.adapters.local.database import Database

database = Database(Path(sys.argv[1]))
for number in range(20):
    with database.write() as connection:
        known = connection.execute("SELECT count(*) FROM tombstones").fetchone()[0]
        connection.execute("INSERT INTO tombstones VALUES ('main', ?)", (str(known),))
"""


def marks(database: Database) -> list[str]:
    with database.read() as connection:
        return [row["mark"] for row in connection.execute("SELECT mark FROM tombstones")]


def add(database: Database, mark: str) -> None:
    with database.write() as connection:
        connection.execute("INSERT INTO tombstones VALUES ('main', ?)", (mark,))


def test_the_files_are_private(database, tmp_path):
    old = os.umask(0)
    try:
        add(database, "a")
    finally:
        os.umask(old)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("instar.db*")}
    assert modes == dict.fromkeys(
        ["instar.db", "instar.db-wal", "instar.db-shm", "instar.db.lock"], 0o600
    )


def test_an_error_undoes_the_whole_transaction(database):
    add(database, "a")

    def interrupted() -> None:
        with database.write() as connection:
            connection.execute("DELETE FROM tombstones")
            raise KeyError

    with pytest.raises(KeyError):
        interrupted()

    assert marks(database) == ["a"]


def test_every_transaction_is_on_the_disk_and_deleted_text_is_overwritten(database):
    with database.read() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2
        assert connection.execute("PRAGMA secure_delete").fetchone()[0] == 1
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


def test_a_closed_database_opens_again_by_itself(database):
    add(database, "a")
    database.close()
    add(database, "b")

    assert marks(database) == ["a", "b"]


def test_threads_have_their_own_connections(database):
    threads = [Thread(target=add, args=(database, f"{number:02d}")) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert marks(database) == [f"{number:02d}" for number in range(20)]


def test_processes_that_open_and_write_a_new_database_at_once_all_succeed(tmp_path, children):
    path = tmp_path / "new" / "instar.db"
    adders = [children.start(ADDER, path) for _ in range(6)]

    assert [adder.wait(timeout=60) for adder in adders] == [0] * 6
    database = Database(path)
    assert sorted(map(int, marks(database))) == list(range(120))
    database.close()


def test_migrations_run_once_and_in_order(tmp_path):
    path = tmp_path / "x.db"
    first = "CREATE TABLE a (n INTEGER)"
    Database(path, migrations=[first]).close()

    database = Database(path, migrations=[first, "INSERT INTO a VALUES (1)"])
    Database(path, migrations=[first, "INSERT INTO a VALUES (1)"]).close()

    with database.read() as connection:
        assert [row["n"] for row in connection.execute("SELECT n FROM a")] == [1]
    database.close()


def test_a_migration_that_fails_changes_nothing(tmp_path):
    path = tmp_path / "x.db"
    with pytest.raises(Unavailable):
        Database(path, migrations=["CREATE TABLE a (n INTEGER); CREATE TABLE a (n INTEGER)"])

    Database(path, migrations=["CREATE TABLE a (n INTEGER)"]).close()


def test_a_database_of_a_newer_instar_is_left_alone(tmp_path):
    path = tmp_path / "x.db"
    Database(path, migrations=[*MIGRATIONS, "CREATE TABLE later (n INTEGER)"]).close()

    with pytest.raises(Misconfigured, match="version"):
        Database(path)


def test_a_damaged_database_says_what_to_do(tmp_path):
    path = tmp_path / "x.db"
    path.write_bytes(b"this is not a database, but some text of sufficient length" * 100)

    with pytest.raises(Misconfigured) as damaged:
        Database(path)

    assert "recover" in damaged.value.fix
    assert path.read_bytes().startswith(b"this is not a database")


def test_damage_inside_says_what_to_do(tmp_path):
    path = tmp_path / "x.db"
    database = Database(path)
    for number in range(200):
        add(database, f"{number:0500d}")
    database.close()
    with path.open("r+b") as file:
        file.seek(4096 * 2)
        file.write(b"\xff" * (path.stat().st_size - 4096 * 3))

    with pytest.raises(Misconfigured):
        marks(Database(path))


def test_a_full_disk_leaves_everything_as_it_was(tiny_disk):
    database = Database(tiny_disk / "x.db")
    add(database, "a")

    with pytest.raises(Unavailable) as full:
        add(database, "x" * 2_000_000)

    assert "disk space" in full.value.fix
    assert marks(database) == ["a"]
    add(database, "b")
    database.close()
    assert marks(Database(tiny_disk / "x.db")) == ["a", "b"]


def test_a_file_that_cannot_grow_leaves_everything_as_it_was(database, limited_files):
    add(database, "a")

    with limited_files(200_000), pytest.raises(Unavailable):
        add(database, "x" * 2_000_000)

    add(database, "b")
    assert marks(database) == ["a", "b"]


def test_a_broken_rule_of_ours_is_not_translated(database):
    add(database, "a")

    with pytest.raises(sqlite3.IntegrityError):
        add(database, "a")


def test_moments_are_exact(clock):
    for shift in (0, 1e-6, 123456.789012):
        clock.advance(shift)
        assert moment(micros(clock())) == clock()
