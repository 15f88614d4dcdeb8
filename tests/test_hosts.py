"""Who keeps a store on a disk that is thrown away is told so, once."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import nbdurable as nb
from nbdurable import hosts
from nbdurable.hosts import thrown_away
from nbdurable.models.scripted import ScriptedModel


@pytest.fixture(autouse=True)
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "_told", False)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("COLAB_RELEASE_TAG", "on the disk of Colab, .*; mount Google Drive .*nbdurable copy"),
        ("KAGGLE_KERNEL_RUN_TYPE", "on the disk of Kaggle, .*; save a version, or download it"),
        ("BINDER_SERVICE_HOST", "on the disk of Binder, .*; take along what you like, or down"),
    ],
)
def test_a_store_on_such_a_disk_is_told_of_once(
    name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "")
    monkeypatch.setattr("os.path.ismount", lambda path: path == "/")

    with pytest.warns(UserWarning, match=told) as caught:
        nb.open("a", store="a.duckdb", model=ScriptedModel()).close()
        nb.open("b", store="b.duckdb", model=ScriptedModel()).close()

    assert len(caught) == 1
    assert "\n" not in str(caught[0].message) and caught[0].filename == __file__


# B1
def test_a_store_that_is_in_memory_or_elsewhere_is_not_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nb.open("a", store="a.duckdb", model=ScriptedModel()).close()
        monkeypatch.setenv("COLAB_GPU", "")
        nb.open("a", store=":memory:", model=ScriptedModel()).close()


def test_a_drive_that_is_mounted_outlives_colab_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.path.ismount", lambda path: path == "/content/drive")

    assert thrown_away("/content/drive/MyDrive/s.duckdb", {"COLAB_GPU": ""}) is None
    assert thrown_away("/content/s.duckdb", {"COLAB_GPU": ""}) is not None
    assert thrown_away("/content/drive/s.duckdb", {"BINDER_REQUEST": "x"}) is not None
    assert thrown_away(str(Path("/home/me/s.duckdb")), {}) is None
