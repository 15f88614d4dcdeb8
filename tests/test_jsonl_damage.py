"""A recording that was cut or changed is refused in words, before anything is stored."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from recorded import busy, everything, recording

import nbdurable as nb
from nbdurable.errors import ImportFormatError, StoreError
from nbdurable.stores.memory import MemoryStore

END = re.compile(rb'\{"type":"end".*\n')


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    store = MemoryStore()
    busy(store)
    busy(store, "t")
    return recording(store, tmp_path_factory.mktemp("whole") / "a.jsonl")


def outcome(data: bytes) -> str | None:
    """Load a file of these bytes: None when all of it came, else the error's text."""
    Path("s.jsonl").write_bytes(data)
    store = MemoryStore()
    try:
        report = nb.load("s.jsonl", store=store)
    except ImportFormatError as exc:
        assert store.list_sessions() == []
        return str(exc)
    assert [session.outcome for session in report.sessions] == ["added", "added"]
    return None


def signed(lines: list[bytes]) -> bytes:
    """Return a file of these lines with a last line that fits them."""
    body = b"".join(line + b"\n" for line in lines)
    end = {"type": "end", "lines": len(lines), "sha256": hashlib.sha256(body).hexdigest()}
    return body + json.dumps(end).encode() + b"\n"


# B63
def test_a_file_cut_at_any_byte_is_refused_and_nothing_imported(whole: bytes) -> None:
    ends = [match.end() for match in re.finditer(b"\n", whole)][:-1]
    chosen = random.Random(5)
    cuts = {0, 1, len(whole) - 2, *chosen.sample(ends, 15), *chosen.sample(range(len(whole)), 32)}

    told = {cut: outcome(whole[:cut]) for cut in cuts}

    assert len(told) >= 49
    assert [cut for cut, text in told.items() if text is None] == []
    assert all("\n" not in text and "s.jsonl" in text for text in told.values() if text)


# B63
def test_a_file_cut_between_two_lines_is_said_to_be_cut(whole: bytes) -> None:
    cut = b"".join(line + b"\n" for line in whole.split(b"\n")[:6])

    assert outcome(cut) == (
        "line 6 of 's.jsonl' is no last line, so the file was cut; get or export the file again"
    )


# B63
def test_a_file_without_its_last_line_end_is_whole(whole: bytes) -> None:
    assert outcome(whole) is None
    assert outcome(whole[:-1]) is None


# B63
def test_a_flipped_byte_is_refused_and_nothing_imported(whole: bytes) -> None:
    chosen = random.Random(6)
    last = END.search(whole)
    assert last is not None

    for _ in range(200):
        at, bit = chosen.randrange(last.start()), 1 << chosen.randrange(8)
        flipped = whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :]
        text = outcome(flipped)
        is_line_end = {whole[at], whole[at] ^ bit} == {0x0A, 0x0D}
        assert text is not None or is_line_end, (at, bit)


# B63
def test_a_flipped_byte_in_the_last_line_is_refused_or_changes_nothing(whole: bytes) -> None:
    last = END.search(whole)
    assert last is not None

    for at in range(last.start(), len(whole)):
        outcome(whole[:at] + bytes([whole[at] ^ 2]) + whole[at + 1 :])


# B63
def test_the_line_that_is_garbled_is_named(whole: bytes) -> None:
    lines = whole.split(b"\n")
    lines[4] = lines[4][:20] + b"\xff" + lines[4][21:]

    text = outcome(b"\n".join(lines))

    assert text == "line 5 of 's.jsonl' is not UTF-8 at byte 20; get or export the file again"


# B63
def test_a_word_changed_by_hand_is_found_by_the_sum(whole: bytes) -> None:
    text = outcome(whole.replace(b"Be brief.", b"Be  long."))

    assert text is not None
    assert re.match(r"line \d+ of 's.jsonl' gives another sum than the lines before it", text)


# B63
def test_line_ends_and_a_mark_that_other_systems_add_change_nothing(whole: bytes) -> None:
    assert outcome(b"\xef\xbb\xbf" + whole.replace(b"\n", b"\r\n")) is None


# B62
def test_a_newer_version_is_refused_with_both_versions(whole: bytes) -> None:
    text = outcome(whole.replace(b'"version":1', b'"version":2', 1))

    assert text is not None
    assert "has format version 2 and this nbdurable reads up to 1; install a newer" in text


# B63
@pytest.mark.parametrize(
    "data", [b"", b"\n", b"{}\n", b'{"role":"user"}\n', b"\x00" * 99, b"\x1f\x8b\x08"], ids=range(6)
)
def test_a_file_of_something_else_is_refused(data: bytes) -> None:
    text = outcome(data)

    assert text is not None
    assert "is of no format that is known (chatgpt, claude, jsonl" in text


def _with_line(
    change: Callable[[dict[str, object]], object], kind: str
) -> Callable[[bytes], bytes]:
    def changed(whole: bytes) -> bytes:
        lines = whole.split(b"\n")[:-2]
        at = next(n for n, line in enumerate(lines) if json.loads(line)["type"] == kind)
        wire = json.loads(lines[at])
        change(wire)
        lines[at] = json.dumps(wire).encode()
        return signed(lines)

    return changed


ILLEGAL = {
    "a field is missing": ("entry", lambda wire: wire.pop("id"), "field 'id' of type 'entry' is m"),
    "a field is unknown": ("run", lambda wire: wire.update(x=1), "field 'x' of type 'run' is not"),
    "a number for a text": ("entry", lambda wire: wire.update(id=5), "'id' must be str, got 5"),
    "a text for a number": ("move", lambda w: w.update(created_at="x"), "'created_at' must be int"),
    "true for a number": ("session", lambda w: w.update(created_at=True), "'created_at' must be"),
    "a huge number": ("entry", lambda w: w.update(created_at=2**70), "'created_at' must be int"),
    "no outcome": ("run_end", lambda w: w.update(outcome="fine"), "'outcome' must be Outcome"),
    "half a character": ("entry", lambda w: w.update(preview="\ud83d"), "'preview' must be str"),
    "a wrong ordinal": ("entry", lambda wire: wire.update(n=7), "'n' must be 1, got 7"),
    "an unknown type": ("run", lambda wire: wire.update(type="x"), "type 'x' is not known"),
    "bytes of another hash": ("blob", lambda w: w.update(base64="aGVsbG8="), "are not complete"),
    "an early row": ("session", lambda w: w.update(type="move"), "type 'move' before any session"),
}


# B63
@pytest.mark.parametrize("name", ILLEGAL)
def test_a_line_that_is_not_legal_is_named(whole: bytes, name: str) -> None:
    kind, change, told = ILLEGAL[name]

    text = outcome(_with_line(change, kind)(whole))

    assert text is not None
    assert re.search(rf"^line \d+ of 's.jsonl' is not legal: .*({told})", text)


# B63
def test_what_the_store_refuses_is_reported_and_the_rest_imported(whole: bytes) -> None:
    """The second session's first entry has the id of one of the first session."""
    lines = whole.split(b"\n")[:-2]
    ids = [json.loads(line)["id"] for line in lines if b'"type":"entry"' in line[:20]]
    first_of_t = next(
        json.loads(line)["id"]
        for line in lines[[b'"id":"t"' in line[:40] for line in lines].index(True) :]
        if b'"type":"entry"' in line[:20]
    )
    data = signed([line.replace(first_of_t.encode(), ids[0].encode()) for line in lines])
    Path("s.jsonl").write_bytes(data)
    store = MemoryStore()

    report = nb.load("s.jsonl", store=store)

    assert [session.outcome for session in report.sessions] == ["added", "refused"]
    assert [session.id for session in report.skipped] == ["t"]
    (oddity,) = report.oddities
    assert re.match(
        r"line \d+: session 't': the store refused it: entry .* is already", str(oddity)
    )
    assert [*everything(store)] == ["s"]


# B63
def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(StoreError, match=r"file 'gone\.jsonl' is not there; give the path"):
        nb.load("gone.jsonl", store=":memory:")


# B63
def test_a_folder_with_nothing_to_import_is_named() -> None:
    with pytest.raises(StoreError, match=r"'\.' holds no \.json or \.jsonl file; give the path"):
        nb.load(".", store=":memory:")


# B1 B63
def test_a_damaged_recording_is_no_store(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(whole[:-200])

    with pytest.raises(StoreError, match=r"s\.jsonl' is no store: line \d+ of"):
        nb.open("s", store=path)
