"""Who sees what: meta and ephemeral input, in prompts, entries, receipts, forks, reopened."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import nbdurable as nb
from nbdurable.blocks import Message
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.base import Store
from nbdurable.stores.memory import MemoryStore


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [message.text for message in messages]


def words(entries: list[nb.Entry]) -> list[str]:
    return [entry.text for entry in entries if isinstance(entry, nb.MessageEntry)]


# -- meta ------------------------------------------------------------------------------------------


# B34 case 2
def test_meta_is_in_every_later_prompt_and_never_in_the_transcript(store: Store) -> None:
    model = ScriptedModel("a", "b", "c")
    chat = nb.open("s", store=store, model=model)
    chat.run("one", show=None)
    chat.run(nb.meta("Use metres."), "two", show=None)

    chat.run("three", show=None)

    assert texts(model.requests[1].messages) == ["one", "a", "Use metres.", "two"]
    assert texts(model.requests[2].messages) == ["one", "a", "Use metres.", "two", "b", "three"]
    assert words(chat.transcript()) == ["one", "a", "two", "b", "three", "c"]
    assert len(chat.path()) == 7
    assert len(chat.tree().roots()) == 1


# B34
def test_meta_alone_is_input_and_stays_after_reopening_and_forking(store: Store) -> None:
    nb.open("s", store=store, model=ScriptedModel("ok")).run(nb.meta("Be brief."), show=None)
    model = ScriptedModel("ok")
    chat = nb.open("s", store=store, model=model).fork("child")

    chat.run("Hi.", show=None)

    assert texts(model.requests[0].messages) == ["Be brief.", "ok", "Hi."]
    assert words(chat.transcript()) == ["ok", "Hi.", "ok"]
    assert [entry.meta for entry in chat.entries(nb.MessageEntry)] == [True, False, False, False]


# B34
def test_meta_input_is_in_the_receipt_and_is_no_title(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("ok"))

    run = chat.run(nb.meta("Use metres."), "How high?", show=None)

    assert words(list(run.events[0].entries)) == ["Use metres.", "How high?"]
    (listed,) = store.list_sessions()
    assert listed.title == "How high?"


# -- ephemeral -------------------------------------------------------------------------------------


def look() -> str:
    """Look."""
    return "seen"


# B35
def test_ephemeral_input_is_in_every_model_call_of_its_run_and_in_no_other(store: Store) -> None:
    model = ScriptedModel(calls(("look", {})), "a", "b")
    chat = nb.open("s", store=store, model=model, tools=[look])
    chat.run("one", nb.ephemeral("The build is red."), show=None)

    chat.run("two", show=None)

    assert texts(model.requests[0].messages) == ["one", "The build is red."]
    assert texts(model.requests[1].messages) == ["one", "The build is red.", "", "seen"]
    assert texts(model.requests[2].messages) == ["one", "", "seen", "a", "two"]


# B35
def test_ephemeral_input_keeps_its_place_among_what_is_stored(store: Store) -> None:
    model = ScriptedModel("ok", "ok")
    chat = nb.open("s", store=store, model=model)
    chat.run("zero", show=None)

    chat.run(nb.ephemeral("1"), nb.meta("2"), nb.ephemeral("3"), nb.ephemeral("4"), "5", show=None)

    assert texts(model.requests[1].messages) == ["zero", "ok", "1", "2", "3", "4", "5"]
    assert words(chat.entries()) == ["zero", "ok", "1", "2", "3", "4", "5", "ok"]


# B35
def test_an_ephemeral_entry_has_an_id_and_no_place_in_the_order(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("ok"))

    run = chat.run("one", nb.ephemeral("The build is red."), show=None)

    first, spoken, answer = chat.entries(nb.MessageEntry)
    assert spoken.ephemeral
    assert spoken.id not in ("", first.id, answer.id)
    assert (spoken.n, spoken.seq) == (None, None)
    assert (spoken.parent_id, spoken.run_id) == (first.id, run.run_id)
    assert spoken.created_at is not None


# B35
def test_an_ephemeral_entry_is_off_the_parent_chain(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("ok"))

    chat.run(nb.ephemeral("a"), "one", nb.ephemeral("b"), show=None)

    first, answer = chat.path()
    assert first.parent_id is None
    assert answer.parent_id == first.id
    assert [entry.n for entry in chat.path()] == [1, 2]
    assert words(chat.transcript()) == ["one", "ok"]


# B35
def test_ephemeral_input_is_in_no_receipt(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("ok"))

    run = chat.run(nb.ephemeral("a"), "one", nb.ephemeral("b"), show=None)

    receipts = [entry for event in run.events for entry in event.entries]
    assert words(receipts) == ["one", "ok"]
    assert words(list(run.entries)) == ["one", "ok"]
    assert len(run.input_ids) == 1


# B35
def test_a_run_of_nothing_but_ephemeral_input_stores_its_answer_alone(store: Store) -> None:
    model = ScriptedModel("It is red.")
    chat = nb.open("s", store=store, model=model)

    run = chat.run(nb.ephemeral("How is the build?"), show=None)

    assert run.events[0].entries == ()
    assert run.input_ids == ()
    assert words(chat.path()) == ["It is red."]
    assert words(chat.entries()) == ["How is the build?", "It is red."]


# B35
def test_ephemeral_input_is_gone_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "chats.duckdb"
    picture = random.Random(1).randbytes(100_000)
    secret = "The build is red."
    with nb.open("s", store=path, model=ScriptedModel("ok")) as chat:
        said = nb.ephemeral(secret, nb.file(picture, name="plan.bin"))
        chat.run("one", said, show=None)
    model = ScriptedModel("ok")
    with nb.open("s", store=path, model=model) as chat:
        chat.run("two", show=None)

        assert words(chat.entries()) == ["one", "ok", "two", "ok"]
        assert texts(model.requests[0].messages) == ["one", "ok", "two"]
    kept = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert secret.encode() not in kept
    assert b"plan.bin" not in kept
    assert picture[:32] not in kept


# B35
def test_the_bytes_of_an_ephemeral_file_are_never_put_into_the_store() -> None:
    class Watched(MemoryStore):
        put: list[str] = []  # noqa: RUF012

        def put_blob(self, sha256: str, data: bytes) -> None:
            self.put.append(sha256)
            super().put_blob(sha256, data)

    store = Watched()
    chat = nb.open("s", store=store, model=ScriptedModel("ok"))

    chat.run("one", nb.ephemeral(nb.file(b"\x00" * 40_000)), show=None)

    assert store.put == []


# B35
def test_of_ephemeral_input_the_run_record_keeps_digests_only(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("ok"))

    chat.run("one", nb.ephemeral("The build is red."), show=None)

    ((record, _),) = store.load_runs("s")
    assert "red" not in record.ephemeral_json
    assert len(record.ephemeral_json) == len('["') + 64 + len('"]')


# B35
def test_a_fork_has_no_ephemeral_entries(store: Store) -> None:
    model = ScriptedModel("ok")
    chat = nb.open("s", store=store, model=model)
    chat.run("one", nb.ephemeral("The build is red."), show=None)

    child = chat.fork("child")
    child.run("two", show=None)

    assert words(child.entries()) == ["one", "ok", "two", "ok"]
    assert texts(model.requests[-1].messages) == ["one", "ok", "two"]


# B35
@pytest.mark.parametrize(
    "spoken",
    [nb.ephemeral(nb.meta("x")), nb.meta(nb.ephemeral("x"))],
    ids=["ephemeral of meta", "meta of ephemeral"],
)
def test_ephemeral_and_meta_is_ephemeral(store: Store, spoken: nb.MessageEntry) -> None:
    model = ScriptedModel("ok")
    chat = nb.open("s", store=store, model=model)

    chat.run("one", spoken, show=None)

    assert texts(model.requests[0].messages) == ["one", "x"]
    assert len(store.load_entries("s")) == 2


# B35 B39
@pytest.mark.parametrize("verb", ["branch", "fork", "rerun"])
def test_an_ephemeral_entry_is_no_place_to_go(store: Store, verb: str) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("ok"))
    chat.run("one", nb.ephemeral("aside"), show=None)
    spoken, leaf = chat.entries()[1], chat.leaf_id
    go = {
        "branch": lambda: chat.branch(spoken),
        "fork": lambda: chat.fork("child", at=spoken.id),
        "rerun": lambda: chat.rerun(spoken, show=None),
    }[verb]

    with pytest.raises(nb.errors.EntryNotFound, match="is ephemeral, so it has no place in"):
        go()

    assert chat.leaf_id == leaf
    assert len(store.list_sessions()) == 1


# B35
def test_an_ephemeral_entry_cannot_be_appended(store: Store) -> None:
    chat = nb.open("s", store=store, model=ScriptedModel("ok"))

    with pytest.raises(nb.errors.EntryError, match="an ephemeral entry is never stored"):
        chat.append("one", nb.ephemeral("aside"))

    assert chat.entries() == []


# B22 B35
def test_ephemeral_input_of_a_failed_run_is_not_sent_again(store: Store) -> None:
    model = ScriptedModel(nb.errors.ModelError("gone"), "ok")
    chat = nb.open("s", store=store, model=model)
    with pytest.raises(nb.errors.ModelError, match="gone"):
        chat.run("one", nb.ephemeral("aside"), show=None)

    chat.run(show=None)

    assert texts(model.requests[0].messages) == ["one", "aside"]
    assert texts(model.requests[1].messages) == ["one"]


# B35 B42
def test_a_rerun_says_that_ephemeral_input_cannot_be_sent_again(store: Store) -> None:
    model = ScriptedModel("a", "b")
    chat = nb.open("s", store=store, model=model)
    chat.run("one", nb.ephemeral("aside"), show=None)

    with pytest.warns(UserWarning, match="had ephemeral input, which is not stored"):
        chat.rerun(show=None)

    assert texts(model.requests[1].messages) == ["one"]


# B18 B35
def test_two_runs_from_one_leaf_do_not_hear_each_others_ephemeral_input(store: Store) -> None:
    model = ScriptedModel("ok")
    chat = nb.open("s", store=store, model=model)
    chat.append("one")

    chat.run(nb.ephemeral("a"), move=False, show=None)
    chat.run(nb.ephemeral("b"), move=False, show=None)

    assert [texts(request.messages) for request in model.requests] == [["one", "a"], ["one", "b"]]
