"""Branching: where to, at what cost, and what is read there."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

import nbdurable as nb
from nbdurable.blocks import Message, ToolResultBlock
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stored import StoredEntry
from nbdurable.stores import Store
from nbdurable.stores.memory import MemoryStore
from nbdurable.toolstep import has_result


def look(what: str) -> str:
    """Look at something."""
    return f"saw {what}"


def texts(entries: Sequence[nb.Entry]) -> list[str]:
    return [entry.text for entry in entries if isinstance(entry, nb.MessageEntry)]


def results(messages: Sequence[Message]) -> list[ToolResultBlock]:
    return [result for message in messages for result in message.tool_results]


@pytest.fixture
def chat(store: Store, model: ScriptedModel) -> nb.Session:
    return nb.open("s", store=store, model=model)


# -- where to (B39) ----------------------------------------------------------------------------


# B39
def test_a_branch_goes_to_any_stored_entry(chat: nb.Session) -> None:
    chat.run("a", nb.meta("m"), show=None)
    chat.run("b", show=None)

    for entry in chat.entries():
        chat.branch(entry)
        assert chat.leaf_id == entry.id
        assert chat.path()[-1] == entry


# B39
def test_the_first_message_can_be_said_otherwise(chat: nb.Session, store: Store) -> None:
    chat.run("first", show=None)
    chat.branch(None)
    chat.run("second", show=None)

    again = nb.open("s", store=store, model="local")

    assert [node.n for node in again.tree().roots()] == [1, 3]
    assert texts(again.path()) == ["second", "A scripted answer."]
    assert texts(again.path(2)) == ["first", "A scripted answer."]


# B39
def test_the_model_reads_nothing_of_another_root(chat: nb.Session, model: ScriptedModel) -> None:
    chat.run("first", show=None)
    chat.branch(None)
    chat.run("second", show=None)

    assert [message.text for message in model.requests[-1].messages] == ["second"]


# B39
def test_nothing_is_lost_by_branching(chat: nb.Session) -> None:
    chat.run("a", show=None)
    chat.run("b", show=None)
    before = chat.entries()

    chat.branch(1)
    chat.run("c", show=None)

    assert chat.entries()[:4] == before
    assert texts(chat.leaves()) == ["A scripted answer."] * 2
    assert [entry.n for entry in chat.path()] == [1, 5, 6]


# B39
@pytest.mark.parametrize("kind", ["unknown", "foreign", "ephemeral"])
def test_a_branch_to_nowhere_changes_and_tells_nothing(
    store: Store, model: ScriptedModel, kind: str
) -> None:
    told: list[nb.SessionEvent] = []
    chat = nb.open("s", store=store, model=model, publisher=told.append)
    chat.run("q", nb.ephemeral("hush"), show=None)
    foreign = nb.open("other", store=store, model=model).append("x")[0]
    (hush,) = (e for e in chat.entries(nb.MessageEntry) if e.ephemeral)
    ref = {"unknown": "nosuch", "foreign": foreign.id, "ephemeral": hush.id}[kind]
    before = (chat.leaf_id, store.load_moves("s"), len(told))

    with pytest.raises(nb.errors.EntryNotFound, match=r"is ephemeral|is not in session 's'"):
        chat.branch(ref)

    assert (chat.leaf_id, store.load_moves("s"), len(told)) == before


# B39
def test_a_branch_to_an_ephemeral_entry_itself_is_refused(chat: nb.Session) -> None:
    chat.run("q", nb.ephemeral("hush"), show=None)
    (hush,) = (e for e in chat.entries(nb.MessageEntry) if e.ephemeral)

    with pytest.raises(nb.errors.EntryNotFound, match="ephemeral, so it has no place in the tree"):
        chat.branch(hush)


# B39
def test_a_branch_to_where_the_leaf_is_writes_nothing(chat: nb.Session, store: Store) -> None:
    run = chat.run("q", show=None)
    chat.branch(run)

    assert store.load_moves("s") == []


class Counting(MemoryStore):
    """A store that counts what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.read = 0
        self.written = 0

    def load_entries(self, session_id: str, after_n: int = 0) -> list[StoredEntry]:
        found = super().load_entries(session_id, after_n)
        self.read += len(found)
        return found

    def append(self, session_id: str, entries: Sequence[StoredEntry] = (), **more: object):  # type: ignore[no-untyped-def, override]
        self.written += len(entries)
        return super().append(session_id, entries, **more)  # type: ignore[arg-type]


# B39
def test_a_branch_reads_and_writes_no_entry_at_any_depth(model: ScriptedModel) -> None:
    store = Counting()
    chat = nb.open("s", store=store, model=model)
    made = chat.append(*(nb.user(str(n)) for n in range(3_000)))
    store.read = store.written = 0

    for entry in made[:: -len(made) // 30]:
        chat.branch(entry)

    assert (store.read, store.written) == (0, 0)


# -- onto open calls (B40) ---------------------------------------------------------------------


def with_calls(store: Store, *after: str) -> tuple[nb.Session, ScriptedModel]:
    wanted = [("look", {"what": what}) for what in ("up", "down", "left")]
    model = ScriptedModel(calls(*wanted), "seen", *after)  # type: ignore[arg-type]
    chat = nb.open("s", store=store, model=model, tools=[look])
    chat.run("q", show=None)
    return chat, model


# B40 case 29
def test_a_branch_onto_open_calls_reads_an_error_for_each(store: Store) -> None:
    chat, _ = with_calls(store)

    chat.branch(2)

    found = results(chat.messages())
    assert [result.call_id for result in found] == ["call_1_0", "call_1_1", "call_1_2"]
    assert all(result.is_error for result in found)
    assert len(chat.entries()) == 6


# B40
def test_a_branch_onto_one_of_several_results_keeps_it(store: Store) -> None:
    chat, _ = with_calls(store)

    chat.branch(4)

    found = results(chat.messages())
    assert [result.call_id for result in found] == ["call_1_0", "call_1_1", "call_1_2"]
    assert [result.is_error for result in found] == [False, False, True]
    assert [result.text for result in found[:2]] == ["saw up", "saw down"]


# B40
def test_a_run_from_open_calls_sends_each_call_one_result(store: Store) -> None:
    chat, model = with_calls(store, "and on")
    chat.branch(3)

    run = chat.run("what now?", show=None)

    sent = model.requests[-1].messages
    assert run.text == "and on"
    assert [message.role for message in sent] == ["user", "assistant", *["tool"] * 3, "user"]
    assert [result.is_error for result in results(sent)] == [False, True, True]
    assert run.entries[0].parent_id == chat[3].id


# B40
def test_a_run_without_input_continues_from_open_calls(store: Store) -> None:
    chat, model = with_calls(store, "continued")
    chat.branch(2)

    assert chat.run(show=None).text == "continued"
    assert [m.role for m in model.requests[-1].messages] == ["user", "assistant", *["tool"] * 3]


# B40
def test_the_branch_that_was_left_reads_as_before(store: Store) -> None:
    chat, _ = with_calls(store, "elsewhere")
    before = chat.messages()
    leaf = chat.leaf_id

    chat.run("aside", at=3, show=None)
    chat.branch(leaf)

    assert chat.messages() == before
    assert [result.is_error for result in results(before)] == [False] * 3


# -- the tree (B41) ----------------------------------------------------------------------------


class Shuffled(MemoryStore):
    """A store whose rows are read as the test wants them."""

    def __init__(self) -> None:
        super().__init__()
        self.read_as: dict[str, str | None] = {}  # entry id -> parent id

    def load_entries(self, session_id: str, after_n: int = 0) -> list[StoredEntry]:
        rows = super().load_entries(session_id, after_n)
        return [row._replace(parent_id=self.read_as.get(row.id, row.parent_id)) for row in rows]


# B41
def test_ten_thousand_entries_in_a_line(store: Store, model: ScriptedModel) -> None:
    chat = nb.open("s", store=store, model=model)
    pairs = [nb.user("q"), nb.assistant("a")] * 5_000
    made = chat.append(*pairs)
    chat.close()

    again = nb.open("s", store=store, model=model)

    assert len(again.path()) == len(again.entries()) == 10_000
    assert again.leaf_id == made[-1].id
    assert len(again.messages()) == 10_000 and len(again.transcript()) == 10_000
    assert [entry.n for entry in again.leaves()] == [10_000]
    again.branch(1)
    assert again.rerun(show=None).entries[0].parent_id == made[0].id
    assert again.rerun(10_000, show=None).entries[0].parent_id == made[9_998].id
    again.branch(made[-1])
    assert len(again.fork().path()) == 10_000


# B41 case 1
def test_children_before_parents_give_the_same_tree(model: ScriptedModel) -> None:
    store = Shuffled()
    chat = nb.open("s", store=store, model=model)
    ids = [entry.id for entry in chat.append(*(nb.user(str(n)) for n in range(30)))]
    choose = random.Random(1)
    order = ids[:]
    choose.shuffle(order)  # the line of entries, in an order that is not that of seq
    parents: list[str | None] = [None, *order[:-1]]
    store.read_as = dict(zip(order, parents, strict=True))
    chat.close()

    again = nb.open("s", store=store, model=model)

    assert [entry.id for entry in again.path(order[-1])] == order
    assert [node.id for node in again.tree().roots()] == [order[0]]
    assert [entry.id for entry in again.leaves()] == [order[-1]]
    assert [entry.id for entry in again.entries()] == ids


def damaged(model: ScriptedModel, parents: dict[int, int | str]) -> nb.Session:
    """Return a session of six alternate messages whose rows name other parents."""
    store = Shuffled()
    chat = nb.open("s", store=store, model=model)
    made = chat.append(*[nb.user("q"), nb.assistant("a")] * 3)
    of = {at: made[to - 1].id if isinstance(to, int) else to for at, to in parents.items()}
    store.read_as = {made[at - 1].id: parent for at, parent in of.items()}
    chat.close()
    return nb.open("s", store=store, model=model)


# B41
def test_an_orphan_is_a_root_and_flagged(model: ScriptedModel) -> None:
    chat = damaged(model, {3: "missing"})

    assert [entry.n for entry in chat.path()] == [3, 4, 5, 6]
    assert [node.n for node in chat.tree().roots()] == [1, 3]
    assert [node.n for node in chat.tree().orphans()] == [3]
    assert chat.run("on", show=None).entries[0].parent_id == chat[6].id


# B41
def test_a_cycle_ends_the_walk_and_is_reported(model: ScriptedModel) -> None:
    chat = damaged(model, {1: 4})

    assert [entry.n for entry in chat.path()] == [1, 2, 3, 4, 5, 6]
    assert chat.tree().cycles() == [tuple(chat[n].id for n in (1, 2, 3, 4))]
    assert chat.run("on", show=None).outcome == "done"


# B41 B42
@pytest.mark.parametrize("parents", [{2: 4, 4: 2}, {2: "missing"}, {2: 2}])
def test_a_rerun_without_a_question_above_is_refused(
    model: ScriptedModel, parents: dict[int, int | str]
) -> None:
    chat = damaged(model, parents)

    with pytest.raises(nb.errors.TreeError, match="has no user message above it"):
        chat.rerun(2, show=None)

    assert len(chat.entries()) == 6


# B41 B42
def test_a_rerun_in_a_ring_finds_the_question(model: ScriptedModel) -> None:
    chat = damaged(model, {1: 2})

    assert chat.rerun(2, show=None).entries[0].parent_id == chat[1].id


# B29 B41
def test_a_result_in_a_ring_of_parents_answers_no_call_outside_it() -> None:
    @nb.tool(effects=True)
    def pay() -> str:
        return "paid"

    store = Shuffled()
    with nb.open("s", store=store, model=ScriptedModel(calls(("pay", {})), "Done.")) as chat:
        made = chat.run("Pay.", tools=[pay], show=None).entries
    store.read_as = {made[2].id: made[3].id}  # the result below the answer that is below it
    again = nb.open("s", store=store, model=ScriptedModel("unused"))

    assert has_result(again.image, made[1].message.tool_calls[0]) is None
