"""A session's paths are those of its tree, however they were read before."""

from __future__ import annotations

import time
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

import nbdurable as nb
from nbdurable import paths
from nbdurable.loaded import Leaf, Loaded
from nbdurable.models.scripted import ScriptedModel
from nbdurable.paths import Line, Paths
from nbdurable.stored import SessionRecord, StoredEntry
from nbdurable.stores.memory import MemoryStore
from nbdurable.tree import Tree

LONG = 20_000
RUNS = 5


class Mark(nb.CustomEntry):
    kind = "mark in a test of paths"
    notes: list[str]


def image_of(store: MemoryStore) -> Loaded:
    store.create_session(SessionRecord(id="s", created_at=1))
    return Loaded(store, "s")


def ids(entries: list[nb.Entry]) -> list[str]:
    return [entry.id for entry in entries]


# B41
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30), st.booleans()), max_size=30))
def test_a_path_is_that_of_the_tree_at_any_time(steps: list[tuple[bool, int, bool]]) -> None:
    image = image_of(MemoryStore())
    known: list[str | None] = [None]
    for reads, back, is_custom in steps:
        leaf_id = known[max(len(known) - 1 - back, 0)]
        if not reads:
            draft = Mark([]) if is_custom else nb.user("q")
            (made,) = image.append([draft], Leaf(leaf_id))
            known.append(leaf_id := made.id)
        assert ids(image.path(leaf_id)) == [node.id for node in image.tree.path(leaf_id)]

    for leaf_id in known:
        assert ids(image.path(leaf_id)) == [node.id for node in image.tree.path(leaf_id)]


# B10
def test_a_path_is_the_readers_own() -> None:
    image, leaf = image_of(MemoryStore()), Leaf(None)
    image.append([nb.user("q"), Mark(["as stored"]), nb.user("on")], leaf)

    read = image.path(leaf.id)
    read[1].notes.append("changed by its reader")
    del read[0]

    assert len(image.path(leaf.id)) == 3
    assert image.path(leaf.id)[1].notes == ["as stored"]


# B41
def test_a_missing_parent_that_comes_lengthens_the_paths_below_it() -> None:
    image = image_of(MemoryStore())
    row = StoredEntry(id="a", session_id="s", parent_id=None, kind="k", payload="{}", created_at=1)
    below = replace(row, id="b", parent_id="a", seq=1, n=1, depth=1)
    image._take([below])
    orphaned = ids(image.path("b"))

    image._take([replace(row, seq=2, n=2, depth=1)])

    assert (orphaned, ids(image.path("b"))) == (["b"], ["a", "b"])


# B41
def test_a_ring_of_parents_has_the_paths_of_its_tree() -> None:
    row = StoredEntry(id="a", session_id="s", parent_id="b", kind="k", payload="{}", created_at=1)
    tree = Tree([replace(row, seq=1, depth=2), replace(row, id="b", parent_id="a", seq=2, depth=1)])

    line, rest = Paths(tree).split("b")

    assert (line, rest) == (Line(), tree.path("b"))


# B41
def test_the_lines_used_last_are_kept_and_no_more() -> None:
    image, ends = image_of(MemoryStore()), []
    for _ in range(paths.MOST_LINES + 1):
        (made,) = image.append([nb.user("q")], Leaf(None))
        ends.append(made.id)
        image.path(ends[0]), image.path(made.id)

    kept = [line.entries[-1].id for line in image._paths._lines]

    assert kept == [ends[0], *ends[-paths.MOST_LINES + 1 :]] or kept[-2:] == [ends[0], ends[-1]]
    assert len(kept) == paths.MOST_LINES


# B39 B41
def test_a_run_costs_the_same_at_the_end_of_a_long_path_as_at_the_root() -> None:
    store, model = MemoryStore(), ScriptedModel("Answered.")
    with nb.open("long", store=store, model=model) as chat:
        chat.append(*(nb.user("Q") if n % 2 else nb.assistant("A") for n in range(LONG)))
        end = chat.leaf_id
        chat.run("Once.", show=None)  # what is read and made once

        def seconds_at(ref: str | None) -> float:
            began = time.process_time()
            chat.run("Again.", at=ref, show=None)
            return time.process_time() - began

        at_end, at_root = (min(seconds_at(ref) for _ in range(RUNS)) for ref in (end, None))

    assert at_end < 3 * at_root
