"""A session's paths are those of its tree, however they were read before."""

from __future__ import annotations

import time
from collections.abc import Callable

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
from nbdurable.views import model_view

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


def seconds(action: Callable[[], object]) -> float:
    """Return the processor time of a call."""
    began = time.process_time()
    action()
    return time.process_time() - began


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
    below = row._replace(id="b", parent_id="a", seq=1, n=1, depth=1)
    image._take([below])
    orphaned = ids(image.path("b"))

    image._take([row._replace(seq=2, n=2, depth=1)])

    assert (orphaned, ids(image.path("b"))) == (["b"], ["a", "b"])


# B41
def test_a_ring_of_parents_has_the_paths_of_its_tree() -> None:
    row = StoredEntry(id="a", session_id="s", parent_id="b", kind="k", payload="{}", created_at=1)
    tree = Tree([row._replace(seq=1, depth=2), row._replace(id="b", parent_id="a", seq=2, depth=1)])

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

    assert kept == [ends[2], ends[3], ends[0], ends[4]]


# B39 B41
def test_a_run_at_the_end_of_a_long_path_costs_less_than_viewing_it_once() -> None:
    store, model = MemoryStore(), ScriptedModel("Answered.")
    with nb.open("long", store=store, model=model) as chat:
        chat.append(*(nb.user("Q") if n % 2 else nb.assistant("A") for n in range(LONG)))
        path = chat.path()

        running = min(seconds(lambda: chat.run("Go on.", show=None)) for _ in range(RUNS))
        viewing = min(seconds(lambda: model_view(path)) for _ in range(RUNS))

    assert running < viewing / 2
