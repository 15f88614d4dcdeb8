"""Files of each released schema open, older ones are brought to the newest one (B62)."""

from __future__ import annotations

import lzma
from pathlib import Path

import duckdb
import pytest
from damage import files_in

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.conformance import contents, stored
from nbdurable.stores.duckdb import DuckDBStore, schema
from nbdurable.stores.duckdb.checking import check

DATA = Path(__file__).parent / "data"
RELEASED = sorted(DATA.glob("store_v*.xz"))

STEP = (
    "create table nbd.stars (entry_id uuid not null, n bigint not null)",
    "insert into nbd.stars select id, n from nbd.entries where role = 'user'",
    "create view main.stars as select * from nbd.stars",
)


@pytest.fixture(params=RELEASED, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file as a released version left it."""
    folder = tmp_path / "files"
    folder.mkdir()
    path = folder / "chats.duckdb"
    path.write_bytes(lzma.decompress(request.param.read_bytes()))
    return path


@pytest.fixture
def next_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the schema of this nbdurable were one version on."""
    version = schema.SCHEMA_VERSION
    monkeypatch.setattr(schema, "SCHEMA_VERSION", version + 1)
    monkeypatch.setitem(schema.MIGRATIONS, version, STEP)


def in_file(path: Path, query: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(query).fetchall()


# B62
def test_a_file_is_kept_of_each_schema_that_was_released() -> None:
    assert [path.stem for path in RELEASED] == [
        f"store_v{version}" for version in range(1, schema.SCHEMA_VERSION + 1)
    ]


# B62
def test_a_file_of_a_released_schema_is_sound_and_goes_on(path: Path) -> None:
    assert check(path).findings == ()

    with nb.open("support-42", store=path, model=ScriptedModel("On we go.")) as chat:
        texts = [getattr(entry, "text", "") for entry in chat.entries()]
        blocks = [block for entry in chat.entries() for block in getattr(entry, "blocks", ())]
        (data,) = {block.data for block in blocks if block.type == "file"}
        run = chat.run("Still there?", show=None)

    assert texts[0] == "What is 1 + 2?"
    assert "It is 3." in texts
    assert data == b"0123456789abcdef" * 2_500
    assert run.text == "On we go."
    assert check(path).is_sound


# B62
@pytest.mark.usefixtures("next_version")
def test_an_older_schema_is_migrated_with_all_it_holds(path: Path) -> None:
    (before,) = in_file(path, "select count(*) from nbd.entries where role = 'user'")

    with nb.open("support-42", store=path, model=ScriptedModel("x")) as chat:
        assert chat.run("Still there?", show=None).text == "x"

    assert in_file(path, "select count(*) from stars") == [before]
    versions = in_file(path, "select value from nbd.meta where key = 'schema_version' order by 1")
    assert versions == [("1",), ("2",)]


# B62
def test_a_migration_changes_nothing_that_was_stored(
    path: Path, request: pytest.FixtureRequest
) -> None:
    store = DuckDBStore(path)
    before = contents(store)
    store.close()

    request.getfixturevalue("next_version")
    store = DuckDBStore(path)

    assert contents(store) == before
    store.close()


# B62
@pytest.mark.usefixtures("next_version")
def test_a_migration_is_in_the_file_before_anything_else_is_done(path: Path) -> None:
    """No log with its statements stays: replaying those is where recovery fails."""
    store = DuckDBStore(path)

    assert not Path(f"{path}.wal").exists() or not Path(f"{path}.wal").stat().st_size
    store.close()


# B62
@pytest.mark.usefixtures("next_version")
def test_a_migration_is_done_once(path: Path) -> None:
    for _ in range(2):
        store = DuckDBStore(path)
        store.append("support-42", [stored("support-42")])
        store.close()

    assert len(in_file(path, "select * from nbd.meta where key = 'schema_version'")) == 2


# B62
@pytest.mark.usefixtures("next_version")
def test_a_migration_that_fails_leaves_the_older_schema(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = schema.SCHEMA_VERSION - 1
    monkeypatch.setitem(schema.MIGRATIONS, version, (*STEP, "select * from nbd.not_there"))
    before = files_in(path.parent)

    with pytest.raises(nb.errors.StoreError, match=r"chats\.duckdb' failed \(Catalog Error: .*not"):
        DuckDBStore(path)

    assert files_in(path.parent) == before


# B62
def test_an_older_nbdurable_refuses_a_migrated_file(
    path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request.getfixturevalue("next_version")
    DuckDBStore(path).close()
    monkeypatch.undo()

    with pytest.raises(
        nb.errors.StoreTooNew, match="has schema version 2 and this nbdurable reads up to 1"
    ):
        DuckDBStore(path)
