"""Where a session resumes, and the order of its entries."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from new_process import in_new_process

import nbdurable as nb
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores import Store


class Mark(nb.CustomEntry):
    kind = "mark of a position test"
    text: str = ""
    values: Any = None


def resumed(chat: nb.Session) -> str | None:
    """Return where a fresh reading of the store resumes, past all that this process knows."""
    store = chat.image.store
    rows, moves = store.load_entries(chat.id), store.load_moves(chat.id)
    moved = [(row.seq, row.id) for row in rows if row.moves_leaf]
    moved += [(move.seq, move.entry_id) for move in moves]
    return max(moved, key=lambda at: at[0], default=(0, None))[1]


def opened(store: Store, model: ScriptedModel) -> nb.Session:
    return nb.open("s", store=store, model=model)


# -- the position (B3) -------------------------------------------------------------------------


# B3
def test_a_fresh_handle_begins_where_the_last_run_ended(store: Store, model: ScriptedModel) -> None:
    run = opened(store, model).run("q", show=None)

    assert opened(store, model).leaf_id == run.leaf_id


# B3
def test_a_branch_is_where_a_fresh_handle_begins(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    question = chat.run("q", show=None).entries[0]
    chat.branch(question)

    assert opened(store, model).leaf_id == question.id == resumed(chat)


# B3
def test_a_branch_to_the_root_is_resumed_at_the_root(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    chat.run("q", show=None)
    chat.branch(None)

    assert opened(store, model).leaf_id is None
    assert resumed(chat) is None


# B3
def test_a_kill_after_a_pure_branch_comes_back_there() -> None:
    script = (
        "import sys, time, nbdurable as nb\n"
        "chat = nb.open('s', store='s.duckdb', model='local')\n"
        "first, _ = chat.append(nb.user('Q'), nb.assistant('A'))\n"
        "chat.branch(first)\n"
        "print(first.id, flush=True)\n"
        "sys.stdin.read()\n"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe, text=True) as it:
        assert it.stdout is not None
        branched_to = it.stdout.readline().strip()
        it.send_signal(signal.SIGKILL)

    with nb.open("s", store="s.duckdb", model="local") as chat:
        assert chat.leaf_id == branched_to
        assert len(chat.entries()) == 2


# B3
def test_a_message_moves_the_position_also_from_a_stale_handle(
    store: Store, model: ScriptedModel
) -> None:
    stale, other = opened(store, model), opened(store, model)
    other.append("there")

    (said,) = stale.append("here")

    assert said.parent_id is None
    assert opened(store, model).leaf_id == said.id == resumed(stale)


# B3
def test_a_custom_entry_at_the_position_moves_it(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    chat.append("q")
    (mark,) = chat.append(Mark("m"))

    assert opened(store, model).leaf_id == mark.id


# B3
def test_a_custom_entry_elsewhere_leaves_the_position(store: Store, model: ScriptedModel) -> None:
    stale, other = opened(store, model), opened(store, model)
    (there,) = other.append("there")

    (mark,) = stale.append(Mark("m"))

    assert stale.leaf_id == mark.id
    assert opened(store, model).leaf_id == there.id == resumed(stale)


# B3
def test_a_custom_entry_after_a_branch_by_another_leaves_the_position(
    store: Store, model: ScriptedModel
) -> None:
    chat = opened(store, model)
    first, _ = chat.append(nb.user("Q"), nb.assistant("A"))
    opened(store, model).branch(first)

    chat.append(Mark("m"))

    assert opened(store, model).leaf_id == first.id


# B3
def test_a_detached_run_leaves_the_position(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    here = chat.run("q", show=None).leaf_id

    beside = chat.run("beside", move=False, show=None)

    assert chat.leaf_id == here != beside.leaf_id
    assert opened(store, model).leaf_id == here == resumed(chat)


# B3
def test_a_compaction_moves_the_position(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    chat.run("q", show=None)
    entry = chat.compact()

    assert entry is not None
    assert opened(store, model).leaf_id == entry.id


# B3
def test_the_later_of_moves_and_messages_counts(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    places: list[str | None] = [None, *(entry.id for entry in chat.append("a", nb.user("b")))]
    choose = random.Random(5)

    for number in range(40):
        if choose.random() < 0.5:
            chat.branch(choose.choice(places))
        else:
            places.append(chat.append(f"message {number}")[0].id)
        assert opened(store, model).leaf_id == chat.leaf_id == resumed(chat)


# case 7
def test_an_answer_beside_a_custom_entry_stays_in_reach(store: Store, model: ScriptedModel) -> None:
    chat = opened(store, model)
    asked, answer = chat.append(nb.user("P"), nb.assistant("A"))
    chat.branch(asked)
    (mark,) = chat.append(Mark("S"))
    (turn,) = chat.append("next")

    again = opened(store, model)

    assert [entry.id for entry in again.path()] == [asked.id, mark.id, turn.id]
    assert [entry.id for entry in again.leaves()] == [answer.id, turn.id]
    again.branch(answer)
    assert [message.text for message in again.messages()] == ["P", "A"]


# -- order (B4) --------------------------------------------------------------------------------

YEAR_NS = 31_536_000 * 10**9


# B4 case 12
@pytest.mark.parametrize("step_ns", [0, -YEAR_NS // 20, YEAR_NS], ids=["equal", "back", "future"])
def test_the_clock_changes_no_order(
    store: Store, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch, step_ns: int
) -> None:
    now = [time.time_ns()]

    def odd_clock() -> int:
        now[0] += step_ns
        return now[0]

    chat = opened(store, model)
    with monkeypatch.context() as patched:
        patched.setattr("nbdurable.ids.time.time_ns", odd_clock)
        for number in range(12):
            chat.append(str(number))
        chat.branch(3)
        chat.append("under 3")
    chat.close()

    again = opened(store, model)
    assert [entry.text for entry in again.entries(nb.MessageEntry)] == [
        *map(str, range(12)),
        "under 3",
    ]
    assert [entry.n for entry in again.path()] == [1, 2, 3, 13]


# B4 case 12
def test_entries_of_one_instant_keep_their_order_in_a_new_process(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nb.open("s", store="s.duckdb", model=model) as chat:
        with monkeypatch.context() as patched:
            patched.setattr("nbdurable.ids.time.time_ns", lambda: 1_750_000_000 * 10**9)
            chat.append(*(nb.user(str(number)) for number in range(200)))

    found = in_new_process(
        "import json, nbdurable as nb\n"
        "entries = nb.open('s', store='s.duckdb', model='local').entries()\n"
        "print(json.dumps([[e.text for e in entries], len({e.created_at for e in entries})]))"
    )

    assert found == [[*map(str, range(200))], 1]


# B4
@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (Mark("m", values=[1.0, float("nan")]), r"values\[1\]"),
        (nb.ephemeral("gone"), "ephemeral"),
        (object(), "object"),
    ],
    ids=["NaN", "ephemeral", "no entry"],
)
def test_one_bad_entry_of_an_append_stores_none(
    store: Store, model: ScriptedModel, bad: object, error: str
) -> None:
    chat = opened(store, model)
    (before,) = chat.append("before")

    with pytest.raises(nb.errors.EntryError, match=error):
        chat.append(nb.user("good"), bad)

    assert chat.entries() == [before] and chat.leaf_id == before.id
    assert len(store.load_entries("s")) == 1


# B4 B5
def test_racing_appends_are_neither_split_nor_lost(store: Store, model: ScriptedModel) -> None:
    handles = [opened(store, model), opened(store, model)]
    start = threading.Barrier(4)

    def append(chat: nb.Session, name: str) -> None:
        start.wait()
        for number in range(6):
            chat.append(nb.user(f"{name}{number}?"), nb.assistant(f"{name}{number}!"))

    threads = [
        threading.Thread(target=append, args=(handles[at % 2], "abcd"[at])) for at in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    said = opened(store, model).entries(nb.MessageEntry)
    texts = [entry.text for entry in said]
    assert sorted(texts) == sorted(f"{c}{i}{m}" for c in "abcd" for i in range(6) for m in "?!")
    assert [entry.n for entry in said] == [*range(1, 49)]
    pairs = [*zip(said[::2], said[1::2], strict=True)]
    assert all(a.text == q.text[:-1] + "!" and a.parent_id == q.id for q, a in pairs)
    for chat in handles:  # each handle's own appends are one line
        assert len(chat.path()) == 24
    assert [entry.n for entry in handles[0].entries()] == [
        entry.n for entry in handles[1].entries()
    ]
