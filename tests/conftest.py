"""What every test can ask for: a frozen clock, the stores, a scripted model, a fake provider."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from postgres_server import Server

    from nbdurable.models.scripted import ScriptedModel
    from nbdurable.stores.base import Store
    from nbdurable.testing import FakeOpenAI

# A shell that starts the tests in the background has them ignore Ctrl-C, which many are about.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent.parent

# No deadline: a loaded machine is no bug. The blob reproduces a failure seen elsewhere.
settings.register_profile("ci", deadline=None, print_blob=True)
settings.register_profile("thorough", deadline=None, print_blob=True, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Child processes of tests import this tree, wherever they run.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
)


class FrozenClock:
    """A clock in microseconds that moves only when told to, in either direction."""

    def __init__(self, now_us: int = 1_750_000_000_000_000) -> None:
        self.now_us = now_us

    def __call__(self) -> int:
        return self.now_us

    def advance(self, seconds: float = 0.0, *, us: int = 0) -> int:
        """Move by seconds and microseconds; return the new time."""
        self.now_us += round(seconds * 1_000_000) + us
        return self.now_us


@pytest.fixture(autouse=True)
def clean_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test in a folder of its own, without the user's settings and keys."""
    for name in [*os.environ]:
        if name.startswith("NBDURABLE_") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


# Where `store` is PostgreSQL too: each file here is about what stores may do differently. All files
# are with NBDURABLE_TEST_POSTGRES=all, which takes minutes.
ON_POSTGRES = frozenset(
    "test_position test_seeing_others test_frames test_library test_injection".split()
)


# Files that trace the core, beside every test that the memory store passes.
TRACED = frozenset(
    f"test_{name}"
    for name in (
        "answers blocks budget cancel cancel_hooks codec compact compact_above compaction_plan "
        "entries errors frozen growing handle_ends hooks ids inputs media models_base "
        "models_sound opening opening_refused origin params paths publisher replay_recording "
        "run_beside run_failures run_limits run_odd_errors run_order run_view schemas score "
        "session_effects session_hooks session_tools stores_memory stores_open tools tree views "
        "views_paths waiting wire "
    ).split()
)


@pytest.hookimpl(tryfirst=True)  # what is marked here may be chosen by its mark
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, and leave untraced, what would tell nothing new."""
    on_all = os.environ.get("NBDURABLE_TEST_POSTGRES") == "all"
    left_out = [
        item
        for item in items
        if not on_all and _store_of(item) == "postgres" and item.path.stem not in ON_POSTGRES
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        dropped = set(map(id, left_out))
        items[:] = [item for item in items if id(item) not in dropped]
    for item in items:
        if _store_of(item) != "memory" and item.path.stem not in TRACED:
            item.add_marker("untraced")  # tracing doubles the time of what it looks into
    items.sort(key=_is_short)


def _is_short(item: pytest.Item) -> bool:
    """Whether a test's file may come late: long ones at the end would leave a worker idle."""
    marks = {mark.name for mark in item.iter_markers()}
    return (
        not marks & {"browser", "kernel", "local_model", "node"} and "crash" not in item.path.parts
    )


def _store_of(item: pytest.Item) -> object:
    """Return which of the stores a test is run with, or None."""
    call = getattr(item, "callspec", None)
    return call.params.get("store") if call is not None else None


@pytest.fixture(params=["memory", "duckdb", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """One test, each store: everything promised holds for all of them (B59)."""
    opened: Store
    if request.param == "memory":
        from nbdurable.stores.memory import MemoryStore

        opened = MemoryStore()
    elif request.param == "postgres":
        from nbdurable.stores.postgres import PostgresStore

        opened = PostgresStore(request.getfixturevalue("postgres").emptied())
    else:
        from nbdurable.stores.duckdb import DuckDBStore

        opened = DuckDBStore(tmp_path / "store.duckdb")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server of these tests alone; see the module of the same name."""
    from postgres_server import Server

    server = Server()
    yield server
    server.remove()


@pytest.fixture
def model() -> ScriptedModel:
    from nbdurable.models.scripted import ScriptedModel

    return ScriptedModel("A scripted answer.")


@pytest.fixture
def fake() -> Iterator[FakeOpenAI]:
    """A provider on loopback, started and stopped with the test."""
    from nbdurable.testing import FakeOpenAI

    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 12 MB, where the tests may make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True)
    except FileNotFoundError:
        pytest.skip("mount is not installed")
    if done.returncode:
        pytest.skip("a small disk needs root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def folder_in_memory() -> Iterator[Path]:
    """A folder in memory: a kill leaves to the system all that was written, on any disk."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as made:
        yield Path(made)


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, whose store is the default one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NBDURABLE_STORE", raising=False)
