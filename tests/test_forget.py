"""A session that is forgotten is in no byte of its store, and all else is as it was."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import duckdb
import pytest
from damage import by_hand, tear
from forgetting import all_but, holding, new_store
from sharing import child

import nbdurable as nb
from nbdurable.errors import SessionNotFound, StoreError
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stored import SpoolDraft
from nbdurable.stores.conformance import contents, stored
from nbdurable.stores.duckdb import DuckDBStore, place
from nbdurable.stores.duckdb.checking import check
from nbdurable.stores.duckdb.repair import RepairNotice
from nbdurable.stores.duckdb.spool import Spool
from nbdurable.stores.forgetting import forget
from nbdurable.stores.memory import MemoryStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return new_store(tmp_path / "files")


@pytest.fixture
def before(path: Path) -> dict[str, object]:
    """Every row of every other session."""
    store = DuckDBStore(path)
    found = all_but(store, "secret")
    store.close()
    return found


def now_in(path: Path) -> dict[str, object]:
    store = DuckDBStore(path)
    found = contents(store)
    store.close()
    return found


def rows_with(path: Path, session_id: str) -> list[str]:
    """Return the columns of all tables that name a session."""
    with duckdb.connect(str(path), read_only=True) as connection:
        columns = connection.execute(
            "select table_name, column_name from duckdb_columns() "
            "where schema_name = 'nbd' and data_type = 'VARCHAR'"
        ).fetchall()
        return [
            f"{table}.{column}"
            for table, column in columns
            if connection.execute(
                f'select 1 from nbd.{table} where "{column}" = ? limit 1', [session_id]
            ).fetchall()
        ]


def surround(path: Path) -> Path:
    """Add all that may stand beside a store: return the folder of the damaged files."""
    tear(path)
    with pytest.warns(RepairNotice):
        DuckDBStore(path).close()
    with nb.open("secret", store=path, model=ScriptedModel("Said.")) as chat:
        chat.fork("fork", at=1).close()
        chat.export(path.parent / "talk.md")
        chat.image.store.backup(path.parent / "backup.duckdb")
        chat.append(nb.user("In the log: a violet submarine."))
        draft = stored("secret", chat.leaf_id, text="Half a violet submarine")
        chat.image.store.spool(SpoolDraft(entry=draft))
        shutil.copytree(path.parent, path.parent.parent / "killed")
        chat.image.store.unspool(draft.id)
    shutil.rmtree(path.parent)
    (path.parent.parent / "killed").rename(path.parent)
    [aside] = path.parent.glob("*.damaged-*")
    return aside


# B24 B63 B66
def test_all_that_surrounds_a_store_is_cleaned_or_named(
    path: Path, before: dict[str, object]
) -> None:
    aside = surround(path)
    spool = Path(f"{path}.spool")
    assert holding(path.parent.iterdir()) == [
        "backup.duckdb", "chats.duckdb", "chats.duckdb.wal", "talk.md",
    ]  # fmt: skip
    assert holding(aside.iterdir()) and holding(spool.iterdir())

    told = forget(path, "secret")

    assert holding(path.parent.iterdir()) == ["backup.duckdb", "talk.md"]
    assert not spool.exists() and not Path(f"{path}.wal").exists()
    assert [Path(file).name for file in told.found_in] == [
        "backup.duckdb", "talk.md", "chats.duckdb",
    ]  # fmt: skip
    assert Path(told.found_in[-1]).parent == aside and told.unread == ()
    assert check(path).is_sound
    left = now_in(path)
    assert left.pop("fork")["entries"]  # type: ignore[index]
    assert left == before


# B48
def test_a_fork_keeps_its_copies_and_not_the_name_of_its_source(
    path: Path, before: dict[str, object]
) -> None:
    with nb.open("secret", store=path, model=ScriptedModel("Said.")) as chat:
        fork = chat.fork("fork", at="violet submarine")
        texts = [entry.text for entry in fork.entries()]
        fork.fork("fork of it").close()
        fork.close()

    told = forget(path, "secret")

    assert told.copies == {"fork": len(texts), "fork of it": len(texts)}
    assert "'fork' (6), 'fork of it' (6)" in str(told)
    assert rows_with(path, "secret") == []
    with nb.open("fork", store=path, model=ScriptedModel("Again.", "More.")) as fork:
        assert [entry.text for entry in fork.entries()] == texts
        assert fork.rerun(show=None).text == "Again."
        assert fork.run("Go on.", show=None).text == "More."


# B61
def test_bytes_that_others_need_stay_and_those_of_the_session_go(path: Path) -> None:
    told = forget(path, "secret")

    assert (told.removed["blobs"], told.shared_blobs) == (1, 1)
    assert check(path).counts["blobs"] == 1
    with nb.open("before", store=path, model=ScriptedModel()) as chat:
        [file] = [b for e in chat.entries() for b in e.blocks if b.type == "file"]
        assert len(file.data) == 40_000


def test_runs_plans_labels_and_system_texts_of_the_session_go_too(path: Path) -> None:
    held = check(path).counts

    told = forget(path, "secret")

    left = check(path).counts
    gone = {table: held[table] - left[table] for table in held}
    assert gone.pop("sessions") == 1
    assert gone == told.removed
    assert all(gone[table] for table in gone), gone


def test_a_dry_run_changes_nothing_and_tells_the_same(path: Path) -> None:
    store = DuckDBStore(path)
    store.backup(path.parent / "backup.duckdb")
    store.close()
    before = path.read_bytes()

    would = forget(path, "secret", dry_run=True)

    assert path.read_bytes() == before
    done = forget(path, "secret")
    assert would.is_dry_run and not done.is_dry_run
    assert (would.removed, would.found_in) == (done.removed, done.found_in)
    assert would.kept_entries == done.kept_entries
    assert "would be forgotten" in str(would) and "is forgotten" in str(done)


def test_numbers_that_were_given_up_are_no_damage_and_others_are(
    path: Path, tmp_path: Path
) -> None:
    forget(path, "secret")
    assert check(path).is_sound
    with nb.open("later", store=path, model=ScriptedModel("One.")) as chat:
        chat.run("After it.", show=None)
    assert check(path).is_sound

    by_hand(path, "delete from nbd.entries where seq = (select min(seq) + 1 from nbd.entries)")

    assert any("numbers of entries and moves" in str(each) for each in check(path).findings)


def test_one_session_after_the_other_is_forgotten_until_none_is_left(path: Path) -> None:
    for session_id in ("before", "secret", "after"):
        forget(path, session_id)
        assert check(path).is_sound

    assert now_in(path) == {}
    with nb.open("new", store=path, model=ScriptedModel("One.")) as chat:
        assert chat.run("Begin.", show=None).text == "One."


def test_a_forgotten_id_is_a_new_session(path: Path) -> None:
    forget(path, "secret")

    with nb.open("secret", store=path, model=ScriptedModel()) as chat:
        assert chat.entries() == []


# B63
def test_a_store_keeps_who_may_read_it(path: Path) -> None:
    path.chmod(0o600)

    forget(path, "secret")

    assert path.stat().st_mode & 0o777 == 0o600


# B8
def test_an_unknown_session_is_refused(path: Path) -> None:
    with pytest.raises(SessionNotFound, match="session 'sekret' is not in store"):
        forget(path, "sekret")


# B63
@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("gone.duckdb", "store 'gone.duckdb' is not there"),
        (":memory:", "store ':memory:' is no path; close it and give that of its file"),
        (
            MemoryStore(),
            r"close it .* \(a memory store keeps nothing once it is closed",
        ),
    ],
)
def test_a_store_that_is_not_there_is_refused(where: str, told: str) -> None:
    with pytest.raises(StoreError, match=told):
        forget(where, "secret")


# B54
def test_a_store_that_is_open_here_is_refused(path: Path) -> None:
    with (
        nb.open("after", store=path, model=ScriptedModel()),
        pytest.raises(StoreError, match="is open in this process; close its sessions and lib"),
    ):
        forget(path, "secret")

    assert "secret" in now_in(path)


_ROT = "update nbd.entries set payload = 'x' where session_id = 'after' and n = 1"


# B66
def test_rot_elsewhere_in_the_store_is_named_and_nothing_is_changed(path: Path) -> None:
    by_hand(path, _ROT)
    before = path.read_bytes()

    with pytest.raises(
        StoreError, match=r"is damaged beside the session \(entry .*nbdurable check"
    ):
        forget(path, "secret")

    assert path.read_bytes() == before
    assert not Path(f"{path}.spool").exists()


# B63
def test_a_full_disk_leaves_the_store_as_it_was(path: Path, small_disk: Path) -> None:
    path = Path(shutil.copy(path, small_disk / "chats.duckdb"))
    (small_disk / "ballast").write_bytes(bytes(11_800_000 - path.stat().st_size))
    before = path.read_bytes()

    with pytest.raises(StoreError, match=r"full|No space left"):
        forget(path, "secret")

    assert path.read_bytes() == before
    assert sorted(file.name for file in small_disk.iterdir()) == ["ballast", "chats.duckdb"]


# -- other processes -------------------------------------------------------------------------------

KERNEL = """
chat = nb.open(sys.argv[2], store=path, model=ScriptedModel("One.", "Two."))
say("ready")
while word := told():
    try:
        say(chat.run(word, show=None).text)
    except nb.errors.NbDurableError as exc:
        say(type(exc).__name__, str(exc).partition("; ")[2])
        chat.close()
        chat = nb.open(sys.argv[2], store=path, model=ScriptedModel("One.", "Two."))
        say(len(chat.entries()))
"""


# B11 B68
def test_other_kernels_write_nothing_until_they_open_the_store_again(path: Path) -> None:
    with child(KERNEL, path, "secret") as of_it, child(KERNEL, path, "after") as beside:
        assert [of_it.ask("Hello."), beside.ask("Hello.")] == ["One.", "One."]

        told = forget(path, "secret")

        said = "StoreError nothing was written; put it back if it was moved; close all its"
        assert told.open_in == tuple(sorted((of_it.process.pid, beside.process.pid)))
        assert f"PID {told.open_in[0]}, {told.open_in[1]}" in str(told)
        assert beside.ask("More.").startswith(said) and of_it.ask("More.").startswith(said)
        assert [of_it.hear(), int(beside.hear()) > 5] == ["0", True]
        assert beside.ask("Again.") == "One."
    assert check(path).is_sound
    assert holding(path.parent.iterdir()) == []


# B24
def test_an_answer_on_its_way_elsewhere_is_waited_for(path: Path) -> None:
    with child(SPOOLER, path) as other:
        with pytest.raises(StoreError, match=rf"on its way in process {other.process.pid}; wait"):
            forget(path, "secret")

        other.ask()
        forget(path, "secret")
    assert holding(Path(f"{path}.spool").glob("*")) == []


SPOOLER = """
store = DuckDBStore(path)
draft = stored("secret", store.load_entries("secret")[0].id, text="Half a violet submarine")
store.spool(SpoolDraft(entry=draft))
say("ready")
told()
store.append("secret", [draft])
say("done")
told()
"""


# B8 B68
def test_a_file_that_is_replaced_while_it_is_attached_takes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attach, fresh = place.attach_file, path.parent / "fresh.duckdb"
    shutil.copy(path, fresh)
    forget(fresh, "secret")
    monkeypatch.setattr(Spool, "others", lambda spool, afresh=False: True)  # let go at once
    store = DuckDBStore(path)
    store.append("secret", [stored("secret")])
    store.read(lambda cursor: cursor.execute("checkpoint nbd_file").fetchall())

    def replace_first(connection: duckdb.DuckDBPyConnection, *given: str) -> None:
        if fresh.exists():
            os.replace(fresh, path)
        attach(connection, *given)

    with monkeypatch.context() as patched:
        patched.setattr(place, "attach_file", replace_first)
        with pytest.raises(StoreError, match="was removed or replaced while it was open"):
            store.append("secret", [stored("secret")])
    store.close()

    assert not fresh.exists() and check(path).is_sound
    assert "secret" not in now_in(path)
