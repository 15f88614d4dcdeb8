"""Damaged, cut and odd files: a report with what could be read, and never half a session."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from importing import DATA, outcomes, talks, told

import nbdurable as nb
from nbdurable.errors import ImportFormatError, StoreError
from nbdurable.formats.report import ImportReport
from nbdurable.formats.values import CHUNK_BYTES, Damage, Found, read_values
from nbdurable.stores.base import Store
from nbdurable.stores.memory import MemoryStore
from nbdurable.tree import Tree

SAMPLES = {
    "chatgpt_export.json": "chatgpt",
    "claude_export.json": "claude",
    "open_webui_export.json": "open_webui",
    "librechat_export.json": "librechat",
    "pi_session.jsonl": "pi",
    "openai_finetune.jsonl": "openai",
    "sharegpt.json": "sharegpt",
}


def imported(data: bytes, format: str | None) -> tuple[ImportReport, MemoryStore]:
    Path("damaged").write_bytes(data)
    store = MemoryStore()
    return nb.load("damaged", store=store, format=format), store


def check(report: ImportReport, store: MemoryStore) -> None:
    """All that is stored is whole, in the report, and can be sent to a model."""
    counts = {summary.session.id: summary.entries for summary in store.list_sessions()}
    assert counts == {session.id: session.entries for session in report.sessions}
    for talk in talks(store).values():
        tree = Tree(talk.entries)
        assert not tree.orphans() and not tree.cycles()
        for leaf in tree.leaves():
            talk.view(str(leaf.source_id))


# B41
@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_cut_anywhere_gives_a_report(name: str) -> None:
    data = (DATA / name).read_bytes()
    chance = random.Random(name)

    for _ in range(50):
        report, store = imported(data[: chance.randrange(len(data))], SAMPLES[name])

        check(report, store)


# B41
@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_with_one_wrong_byte_gives_a_report(name: str) -> None:
    data = (DATA / name).read_bytes()
    chance = random.Random(name)

    for _ in range(200):
        damaged = bytearray(data)
        damaged[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        report, store = imported(bytes(damaged), SAMPLES[name])

        check(report, store)


# B41
@pytest.mark.parametrize("name", SAMPLES)
def test_a_damaged_file_whose_format_is_not_given_is_read_or_refused_in_a_line(name: str) -> None:
    data = (DATA / name).read_bytes()
    chance = random.Random(name)

    for _ in range(20):
        Path("damaged").write_bytes(data[chance.randrange(100) : -chance.randrange(1, 100)])
        store = MemoryStore()
        try:
            check(nb.load("damaged", store=store), store)
        except ImportFormatError as exc:
            assert "'damaged' is of no format that is known" in str(exc)
            assert not store.list_sessions()


# B41
def test_one_damaged_conversation_does_not_stop_those_after_it(store: Store) -> None:
    values = json.loads((DATA / "chatgpt_export.json").read_text("utf-8"))
    for n in range(30):
        values.append({**values[2], "conversation_id": f"c{n}"})
    text = json.dumps(values)
    place = text.index('"Which of these pots')
    Path("bad.json").write_text(text[:place] + text[place + 1 :], "utf-8")

    report = nb.load("bad.json", store=store)

    assert len(report.sessions) == 32
    assert "record 1 cannot be read: " in told(report)


# B41
def test_a_list_that_is_cut_gives_what_stands_before_the_cut(store: Store) -> None:
    text = (DATA / "sharegpt.json").read_text("utf-8")
    Path("cut.json").write_text(text[: text.index("Raw <b>")], "utf-8")

    report = nb.load("cut.json", store=store)

    assert [s.entries for s in report.sessions] == [5, 4, 4, 2]
    assert "record 5 cannot be read" in told(report)


# B64
@pytest.mark.parametrize("given", [b'"half \\ud83d x"', b'"half \xff x"'])
def test_half_a_character_is_stored_with_a_flag_and_told(given: bytes) -> None:
    line = b'{"messages": [{"role": "user", "content": ' + given + b"}]}\n"

    report, store = imported(line, None)

    (talk,) = talks(store).values()
    assert talk.entry("message 1").text == "half \ufffd x"
    assert talk.entry("message 1").is_repaired
    assert report.repaired == 1 and "half a character" in told(report)


# B64
def test_numbers_that_json_does_not_have_are_null() -> None:
    numbers = b'"weight": NaN, "n": -Infinity, "m": 1e999'
    line = b'{"messages": [{"role": "user", "content": "a", ' + numbers + b"}]}"

    _, store = imported(line, None)

    (talk,) = talks(store).values()
    assert talk.entry("message 1").text == "a"


# B33
def test_numbers_beyond_2_to_the_53_are_kept() -> None:
    line = '{"messages": [{"role": "user", "content": "a", "n": ' + "9" * 40 + "}]}"

    _, store = imported(line.encode(), None)

    (talk,) = talks(store).values()
    assert json.loads(talk.stored("message 1").payload)["source"]["n"] == int("9" * 40)


# B41
@pytest.mark.parametrize(
    "odd",
    [b"[" * 100_000, b'{"a":' * 100_000, b"9" * 10_000, b'{"messages": 7}', b'"', b"\x00" * 99],
)
def test_values_nobody_expects_are_passed_over(odd: bytes) -> None:
    good = b'{"messages": [{"role": "user", "content": "a"}]}'

    report, store = imported(good + b"\n" + odd + b"\n" + good.replace(b'"a"', b'"b"'), "openai")

    assert len(report.sessions) == len(store.list_sessions()) == 2


# B64
def test_text_traps_survive_the_way_in(store: Store) -> None:
    traps = {}
    for line in (DATA / "text_traps.jsonl").read_text("utf-8").split("\n"):
        if line:
            trap = json.loads(line)
            traps[trap["name"]] = trap.get("text", trap.get("unit", "") * trap.get("repeat", 0))
    turns = [{"role": "user", "content": text} for text in traps.values()]
    Path("traps.json").write_text(json.dumps([{"messages": turns}]), "utf-8")

    nb.load("traps.json", store=store)

    (talk,) = talks(store).values()
    assert [talk.entry(key).text for key in talk.keys] == list(traps.values())


# B9
@pytest.mark.parametrize("id", ["a/b 'c' \"d\"", "🌿" * 300, "a\0b", "\ud83d"])
def test_any_id_of_a_source_gives_a_legal_session_id(id: str) -> None:
    value = {"uuid": id, "chat_messages": [{"uuid": id, "sender": "human", "text": "a"}]}

    report, store = imported(json.dumps([value]).encode(), None)

    assert report.entries == 1
    assert nb.open(report.sessions[0].id, store=store, model="local").path()[0].text == "a"


# B41
def test_rings_of_parents_are_cut_and_told() -> None:
    messages = [
        {"uuid": a, "parent_message_uuid": b, "sender": "human", "text": a, "created_at": None}
        for a, b in ("ab", "bc", "ca", "dd", "ea")
    ]
    value = {"uuid": "x", "chat_messages": messages}

    report, store = imported(json.dumps([value]).encode(), None)

    (talk,) = talks(store).values()
    assert talk.parents == {"a": None, "b": "c", "c": "a", "d": None, "e": "a"}
    assert report.repaired == 2 and "its parents form a ring" in told(report)


# B60
def test_an_id_that_comes_twice_is_two_entries() -> None:
    messages = [{"uuid": "a", "sender": "human", "text": text} for text in ("one", "two")]

    report, store = imported(json.dumps([{"uuid": "x", "chat_messages": messages}]).encode(), None)

    (talk,) = talks(store).values()
    assert talk.keys == ["a", "a#2"] and "the id comes again" in told(report)


# B41
@pytest.mark.slow
def test_ten_thousand_messages_in_a_row_are_no_matter() -> None:
    messages = [
        {"messageId": f"m{n}", "parentMessageId": f"m{n - 1}" if n else None, "text": "x"}
        for n in range(10_000)
    ]
    random.Random(1).shuffle(messages)

    report, store = imported(
        json.dumps({"conversationId": "x", "messages": messages}).encode(), None
    )

    assert report.sessions[0].leaves == 1
    assert talks(store)["librechat:x"].entries[-1].depth == 10_000


# B6
def test_a_store_that_fails_gets_no_half_a_session() -> None:
    class Failing(MemoryStore):
        def create_session(self, *args: object, **kwargs: object) -> object:  # type: ignore[override]
            raise StoreError("the disk is full; free some space")

    store = Failing()

    with pytest.raises(StoreError, match="the disk is full"):
        nb.load(DATA / "claude_export.json", store=store)

    assert store.list_sessions() == []


# B6
def test_an_unknown_file_is_refused_with_what_is_known() -> None:
    Path("x.json").write_text('{"a": 1}')

    with pytest.raises(ImportFormatError, match=r"'x\.json' is of no format .*chatgpt, claude"):
        nb.load("x.json", store=":memory:")


# B63
def test_an_archive_that_cannot_be_read_is_named() -> None:
    Path("x.zip").write_bytes(b"PK\x03\x04" + b"\0" * 50)

    with pytest.raises(StoreError, match=r"archive 'x\.zip' cannot be read: .*; get it again"):
        nb.load("x.zip", store=":memory:")


# B63
def test_an_archive_damaged_inside_gives_a_report(store: Store) -> None:
    import zipfile

    with zipfile.ZipFile("x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(DATA / "claude_export.json", "a.json")
        archive.write(DATA / "sharegpt.json", "b.json")
    data = bytearray(Path("x.zip").read_bytes())
    data[200:260] = bytes(60)
    Path("x.zip").write_bytes(data)

    report = nb.load("x.zip", store=store)

    assert ("sg_1", "added", 5) in outcomes(report)
    assert "a.json: the file cannot be read on: " in told(report)


# B63
def test_an_encrypted_file_of_an_archive_is_told_and_the_others_are_read(store: Store) -> None:
    import zipfile

    with zipfile.ZipFile("x.zip", "w") as archive:
        archive.write(DATA / "claude_export.json", "a.json")
        archive.write(DATA / "sharegpt.json", "b.json")
    data = bytearray(Path("x.zip").read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    Path("x.zip").write_bytes(data)

    report = nb.load("x.zip", store=store)

    assert len(report.sessions) == 7
    assert "a.json: the file cannot be opened: " in told(report) and "encrypted" in told(report)


# B63
def test_a_bar_is_shown_where_someone_looks_and_the_file_is_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    seen = Terminal()
    monkeypatch.setattr("sys.stderr", seen)
    nb.load(DATA / "sharegpt.json", store=MemoryStore())
    assert seen.getvalue() == ""
    monkeypatch.setattr("nbdurable.formats.importing._BAR_FROM_BYTES", 100)

    nb.load(DATA / "sharegpt.json", store=MemoryStore())

    assert "import:" in seen.getvalue() and "1.81k" in seen.getvalue()


# -- values --------------------------------------------------------------------------------------


def values(data: bytes) -> Iterator[Found | Damage]:
    return read_values(io.BytesIO(data), lambda value: isinstance(value, dict) and "id" in value)


@pytest.mark.parametrize("bom", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_no_matter(bom: str) -> None:
    found = list(values('[{"id": "ä"}]'.encode(bom)))

    assert found == [Found({"id": "ä"}, 1, in_line=False)]


def test_values_larger_than_a_chunk_and_on_its_edge_are_whole() -> None:
    sizes = [CHUNK_BYTES - 12, 1, 3 * CHUNK_BYTES, CHUNK_BYTES - 11, 5]
    listed = [{"id": "ü" * size} for size in sizes]

    for text in (json.dumps(listed, ensure_ascii=False), "\n".join(map(json.dumps, listed))):
        found = list(values(text.encode()))

        assert [item.value for item in found if isinstance(item, Found)] == listed


def test_values_are_what_a_plain_parser_says_however_they_are_written_and_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance = random.Random(7)
    odd = [10**30, 1.5e-7, None, True, "\ud83d", '"}, {"id": 1', [{"id": 1, "b": {}}], "ü\\", {}]

    for _ in range(300):
        keys = chance.sample(["id", "b", "c"], chance.randint(1, 3))
        listed = [
            {key: chance.choice(odd) for key in ["id", *keys]} for _ in range(chance.randint(0, 9))
        ]
        monkeypatch.setattr("nbdurable.formats.values.CHUNK_BYTES", chance.randint(3, 200))
        separators = chance.choice([(",", ":"), (", ", ": "), (" ,", " : ")])
        text = json.dumps(
            listed, indent=chance.choice([None, 2]), separators=separators, ensure_ascii=True
        )

        found = list(values(text.encode()))

        assert [item.value for item in found if isinstance(item, Found)] == listed
        assert len(found) == len(listed)


def test_numbers_that_json_does_not_have_are_null_in_a_record_read_quickly() -> None:
    odd = {"1": "[1e999]", "2": '{"c": -1e999}', "NaN": "[[Infinity]]", "3": "1e308"}
    rows = ['{"id": ' + id + ', "b": ' + number + "}" for id, number in odd.items()]
    text = "[" + ", ".join(rows) + "]"

    found = list(values(text.encode()))

    assert [item.value for item in found if isinstance(item, Found)] == [
        {"id": 1, "b": [None]},
        {"id": 2, "b": {"c": None}},
        {"id": None, "b": [[None]]},
        {"id": 3, "b": 1e308},
    ]


def test_one_value_on_many_lines_is_one_value() -> None:
    text = json.dumps({"id": 1, "inside": [{}, {"b": 2}]}, indent=0)

    assert [item.value for item in values(text.encode()) if isinstance(item, Found)] == [
        json.loads(text)
    ]


def test_what_is_damaged_is_left_out_up_to_the_next_record() -> None:
    found = list(values(b'[{"id": 1}, {"id": 2, "x": [{"y" 1}]}, {"id": 3}; {"id": 4}'))

    assert [item.value for item in found if isinstance(item, Found)] == [
        {"id": 1},
        {"id": 3},
        {"id": 4},
    ]
    assert [item.text for item in found if isinstance(item, Damage)] == [
        "record 2 cannot be read: expecting ':' delimiter",
        "record 4 cannot be read: expecting value",
        "the file ends after record 5 of a list that goes on",
    ]
