"""What a handle sees of what others wrote, and when it says so."""

from __future__ import annotations

import warnings

import pytest

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stored import StoredEntry
from nbdurable.stores import Store
from nbdurable.stores.memory import MemoryStore

SIBLING = r"session 's' was continued elsewhere, to #\d+; this run grows a sibling"


class Seen(nb.CustomEntry):
    kind = "seen in a test of others"
    text: str = ""


def opened(store: Store, model: ScriptedModel) -> nb.Session:
    return nb.open("s", store=store, model=model)


# B11
def test_a_handle_reads_what_another_wrote(store: Store, model: ScriptedModel) -> None:
    one, other = opened(store, model), opened(store, model)

    run = other.run("q", show=None)

    assert [entry.id for entry in one.entries()] == [entry.id for entry in run.entries]
    assert one[2].id == run.leaf_id
    assert one.leaf_id is None
    assert one.resume() == run.leaf_id


# B11
def test_a_handle_reads_what_was_stored_past_it(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    (first,) = chat.append("mine")
    (row,) = store.load_entries("s")
    theirs = "01890000-0000-7000-8000-000000000001"

    store.append("s", [row._replace(id=theirs, parent_id=first.id, moves_leaf=True)])

    assert [entry.id for entry in chat.entries()] == [first.id, theirs]
    assert chat.leaf_id == first.id and chat.image.position == theirs
    (mine,) = chat.append("mine too")
    assert mine.n == 3 and mine.parent_id == first.id


# B11
def test_a_run_from_an_older_leaf_warns_once(store: Store, model: ScriptedModel) -> None:
    stale, other = opened(store, model), opened(store, model)
    theirs = other.run("there", show=None)

    with pytest.warns(UserWarning, match=SIBLING) as said:
        mine = stale.run("here", show=None)
    stale.run("and on", show=None)

    assert len(said) == 1 and said[0].filename == __file__
    assert len(stale.leaves()) == 2
    assert mine.entries[0].parent_id is None and theirs.entries[0].parent_id is None
    assert [entry.text for entry in other.path()] == ["there", "A scripted answer."]


# B11
def test_a_run_from_the_newest_position_does_not_warn(store: Store, model: ScriptedModel) -> None:
    one, other = opened(store, model), opened(store, model)
    other.run("there", show=None)
    one.resume()

    one.run("here", show=None)

    assert len(one.leaves()) == 1


# B11
def test_each_continuation_elsewhere_is_told_once(store: Store, model: ScriptedModel) -> None:
    one, other = opened(store, model), opened(store, model)
    one.run("1", show=None)
    with pytest.warns(UserWarning, match=SIBLING):
        other.run("2", show=None)
    with pytest.warns(UserWarning, match=SIBLING):
        one.run("3", show=None)
    one.run("4", show=None)

    assert len(one.leaves()) == 2


# B11
def test_a_custom_entry_does_not_hide_a_continuation_elsewhere(
    store: Store, model: ScriptedModel
) -> None:
    stale, other = opened(store, model), opened(store, model)
    other.run("there", show=None)
    stale.append(Seen("m"))

    with pytest.warns(UserWarning, match=SIBLING):
        stale.run("here", show=None)


# B11
def test_a_move_back_by_another_to_where_a_run_began_is_told(
    store: Store, model: ScriptedModel
) -> None:
    one, other = opened(store, model), opened(store, model)
    (start,) = one.append(nb.user("start"))
    one.run("on", show=None)
    other.branch(start)

    with pytest.warns(UserWarning, match=r"continued elsewhere, to #1;"):
        one.run("further", show=None)


# B11
def test_a_branch_or_at_is_meant_and_does_not_warn(store: Store, model: ScriptedModel) -> None:
    stale, other = opened(store, model), opened(store, model)
    theirs = other.run("there", show=None)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stale.run("here", at=theirs.entries[0], show=None)
        stale.branch(None)
        stale.run("anew", show=None)

    assert len(stale.leaves()) == 3


class CountingReads(MemoryStore):
    """A store that counts how often entries are asked for."""

    reads = 0

    def load_entries(self, session_id: str, after_n: int = 0) -> list[StoredEntry]:
        self.reads += 1
        return super().load_entries(session_id, after_n)


# B11
def test_nothing_is_read_again_until_another_writes(model: ScriptedModel) -> None:
    store = CountingReads()
    chat = opened(store, model)
    chat.run("q", show=None)
    chat.branch(1)
    (first, _) = store.load_entries("s")
    before = store.reads

    chat.entries(), chat.messages(), chat.append("mine"), chat.path()
    unchanged = store.reads
    store.append("s", [first._replace(id="01890000-0000-7000-8000-000000000002")])

    assert len(chat.entries()) == 4
    assert (unchanged, store.reads) == (before, before + 1)


# B11
def test_each_row_that_an_image_reads_counts_as_one_change(
    store: Store, model: ScriptedModel
) -> None:
    chat = opened(store, model)
    before = store.changes("s")

    chat.append(nb.user("one"), nb.user("two"))
    chat.branch(1)

    assert store.changes("s") == before + 3
