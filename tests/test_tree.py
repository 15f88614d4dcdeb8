from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbdurable.blocks import Message, Reply, TextBlock
from nbdurable.entries import CustomEntry, Entry, MessageEntry
from nbdurable.errors import EntryError, EntryNotFound
from nbdurable.stored import StoredEntry
from nbdurable.tree import Tree


@dataclass(frozen=True)
class Knot:
    id: str
    parent_id: str | None
    seq: int | None


def knots(*links: str) -> list[Knot]:
    """`"b<a"` is b under a, `"a"` a root; seq is the place in the list."""
    found = []
    for seq, link in enumerate(links, 1):
        id, _, parent = link.partition("<")
        found.append(Knot(id, parent or None, seq))
    return found


def line(length: int) -> list[Knot]:
    return [Knot(f"e{i}", f"e{i - 1}" if i else None, i + 1) for i in range(length)]


def ids(nodes: object) -> list[str]:
    return [node.id for node in nodes]  # type: ignore[attr-defined]


def random_knots(pointers: list[int], gaps: int = 3) -> list[Knot]:
    """Each entry points anywhere: at another, at itself, at nothing or at a missing one."""
    size = len(pointers)
    parents: list[str | None] = [f"e{i}" for i in range(size)]
    parents += [None] * gaps + [f"gone{i}" for i in range(gaps)]
    return [Knot(f"e{i}", parents[p % len(parents)], i + 1) for i, p in enumerate(pointers)]


anything = st.lists(st.integers(0, 60), max_size=40).map(random_knots)


def described(tree: Tree[Knot]) -> tuple[object, ...]:
    return (
        ids(tree.nodes),
        ids(tree.roots()),
        ids(tree.leaves()),
        ids(tree.orphans()),
        tree.cycles(),
        ids(tree.descend()),
        {node.id: ids(tree.path(node.id)) for node in tree.nodes},
        {node.id: ids(tree.children(node.id)) for node in tree.nodes},
        {node.id: ids(tree.siblings(node.id)) for node in tree.nodes},
    )


class TestOrder:
    # B41 case 1
    def test_children_before_parents_give_the_same_tree(self) -> None:
        root, child, grandchild = knots("a", "b<a", "c<b")

        tree = Tree([grandchild, child, root])

        assert (ids(tree.roots()), ids(tree.path("c")), ids(tree.leaves())) == (
            ["a"],
            ["a", "b", "c"],
            ["c"],
        )

    # B41 case 1
    @pytest.mark.parametrize("seed", range(20))
    def test_twenty_random_orders_of_thirty_entries_give_the_same_tree(self, seed: int) -> None:
        dice = random.Random(seed)
        links = ["e0"] + [f"e{i}<e{dice.randrange(i)}" for i in range(1, 30)]
        nodes = knots(*links)
        shuffled = dice.sample(nodes, len(nodes))

        assert described(Tree(shuffled)) == described(Tree(nodes))

    # B41
    @given(anything, st.randoms(use_true_random=False))
    def test_any_order_of_any_pointers_gives_the_same_tree(
        self, nodes: list[Knot], dice: random.Random
    ) -> None:
        shuffled = dice.sample(nodes, len(nodes))

        assert described(Tree(shuffled)) == described(Tree(nodes))

    # B41
    @given(anything, st.randoms(use_true_random=False))
    def test_growing_one_by_one_between_reads_gives_the_same_tree(
        self, nodes: list[Knot], dice: random.Random
    ) -> None:
        tree: Tree[Knot] = Tree()
        for node in dice.sample(nodes, len(nodes)):
            tree.add([node])
            described(tree)

        assert described(tree) == described(Tree(nodes))

    # B4 case 12
    def test_order_is_seq_and_not_the_order_of_ids_or_times(self) -> None:
        nodes = [Knot("root", None, 1), Knot("z", "root", 2), Knot("a", "root", 3)]

        tree = Tree(reversed(nodes))

        assert ids(tree.children("root")) == ids(tree.leaves()) == ["z", "a"]

    # B4 case 12
    def test_two_hundred_entries_of_one_frozen_clock_keep_their_append_order(self) -> None:
        rows = [
            StoredEntry(
                id=f"{i * 7919 % 200:03}",
                session_id="s",
                parent_id=None,
                kind="note",
                payload="{}",
                created_at=0,
                seq=i + 1,
            )
            for i in range(200)
        ]

        tree = Tree(random.Random(4).sample(rows, 200))

        assert list(tree.nodes) == rows

    # B35
    def test_an_entry_without_seq_comes_last_among_its_siblings(self) -> None:
        tree = Tree([Knot("r", None, 1), Knot("unstored", "r", None), Knot("b", "r", 2)])

        assert ids(tree.children("r")) == ["b", "unstored"]


class TestWalks:
    # B41
    @given(anything)
    def test_every_entry_is_walked_once_and_hangs_under_one_root(self, nodes: list[Knot]) -> None:
        tree = Tree(nodes)

        walked = ids(tree.descend())

        assert sorted(walked) == sorted(ids(nodes))
        assert {tree.path(id)[0].id for id in walked} == set(ids(tree.roots()))

    # B41
    @given(anything)
    def test_a_walk_meets_every_entry_after_its_path(self, nodes: list[Knot]) -> None:
        tree = Tree(nodes)
        place = {id: i for i, id in enumerate(ids(tree.descend()))}

        for id in place:
            path = [place[step] for step in ids(tree.path(id))]
            assert path == sorted(path)

    # B41
    @given(anything)
    def test_every_root_has_a_leaf_below_it(self, nodes: list[Knot]) -> None:
        tree = Tree(nodes)

        assert {tree.path(leaf.id)[0].id for leaf in tree.leaves()} == set(ids(tree.roots()))

    # B41
    @given(anything)
    def test_subtree_holds_what_has_the_entry_on_its_path(self, nodes: list[Knot]) -> None:
        tree = Tree(nodes)

        for node in nodes:
            below = [other.id for other in tree.nodes if node in tree.path(other.id)]
            assert ids(tree.subtree(node.id)) == below

    # B41
    def test_descend_gives_parents_first_and_children_by_seq(self) -> None:
        tree = Tree(knots("a", "b<a", "c<a", "d<b", "x"))

        assert ids(tree.descend()) == ["a", "b", "d", "c", "x"]
        assert ids(tree.descend("b")) == ["b", "d"]

    # B41 case 6
    @pytest.mark.parametrize("length", [10_000, 100_000])
    def test_a_long_line_is_walked_without_recursion(self, length: int) -> None:
        nodes = line(length)

        tree = Tree(reversed(nodes))

        last = nodes[-1].id
        assert tree.path(last) == nodes == tree.subtree("e0") == list(tree.descend())
        assert tree.depth(last) == length

    # B41 case 6
    def test_a_wide_tree_keeps_its_children_in_order(self) -> None:
        nodes = [Knot("r", None, 0)] + [Knot(f"k{i}", "r", i) for i in range(1, 20_001)]
        tree = Tree(random.Random(1).sample(nodes, len(nodes)))

        assert tree.children("r") == nodes[1:]

    # B39
    def test_several_entries_without_a_parent_are_several_roots(self) -> None:
        tree = Tree(knots("a", "b<a", "edited", "c<edited"))

        assert ids(tree.roots()) == ids(tree.children(None)) == ["a", "edited"]
        assert ids(tree.siblings("edited")) == ["a", "edited"]

    # B12 B39
    def test_the_path_to_the_root_is_empty(self) -> None:
        assert Tree(knots("a")).path(None) == []

    # B42
    def test_siblings_include_the_entry_itself(self) -> None:
        tree = Tree(knots("u", "a1<u", "a2<u"))

        assert ids(tree.siblings("a1")) == ["a1", "a2"]

    def test_depth_counts_the_entries_on_the_path(self) -> None:
        tree = Tree(knots("a", "b<a"))

        assert [tree.depth(None), tree.depth("a"), tree.depth("b")] == [0, 1, 2]


class TestDamage:
    # B41
    def test_an_orphan_is_an_extra_root_and_flagged(self) -> None:
        tree = Tree(knots("a", "lost<gone", "b<lost"))

        assert ids(tree.orphans()) == ["lost"]
        assert ids(tree.roots()) == ["a", "lost"]
        assert ids(tree.path("b")) == ["lost", "b"]

    # B41
    def test_an_orphan_is_none_once_its_parent_comes(self) -> None:
        tree = Tree(knots("lost<late"))
        tree.add([Knot("late", None, 2)])

        assert tree.orphans() == []
        assert ids(tree.path("lost")) == ["late", "lost"]

    # B41
    def test_a_ring_is_reported_and_cut_above_its_first_entry(self) -> None:
        tree = Tree(knots("a<c", "b<a", "c<b", "tail<b"))

        assert tree.cycles() == [("a", "b", "c")]
        assert ids(tree.path("tail")) == ["a", "b", "tail"]
        assert ids(tree.roots()) == ["a"]
        assert ids(tree.leaves()) == ["c", "tail"]

    # B41
    def test_an_entry_that_is_its_own_parent_ends_the_walk(self) -> None:
        tree = Tree(knots("a<a", "b<a"))

        assert tree.cycles() == [("a",)]
        assert ids(tree.path("b")) == ["a", "b"]
        assert ids(tree.siblings("a")) == ["a"]

    # B41 case 4
    def test_a_fragment_without_parent_hides_no_valid_leaf(self) -> None:
        tree = Tree(knots("u", "a<u", "fragment"))

        assert ids(tree.leaves()) == ["a", "fragment"]
        assert ids(tree.path("a")) == ["u", "a"]

    # B37 case 2
    def test_a_hidden_entry_in_mid_path_keeps_one_root(self) -> None:
        tree = Tree(knots("u1", "a1<u1", "hidden<a1", "u2<hidden", "a2<u2"))

        assert ids(tree.roots()) == ["u1"]
        assert len(tree.path("a2")) == 5

    # B3 case 7
    def test_a_custom_entry_beside_an_answer_hides_neither(self) -> None:
        said = Message("assistant", (TextBlock("yes"),), Reply())
        entries: list[Entry] = [
            MessageEntry(id="p", seq=1, message=Message("user", (TextBlock("q"),))),
            MessageEntry(id="answer", parent_id="p", seq=2, message=said),
            CustomEntry(id="note", parent_id="p", seq=3, stored_kind="note", fields_json="{}"),
            MessageEntry(id="next", parent_id="note", seq=4, message=Message("user")),
        ]

        tree = Tree(entries)

        assert ids(tree.path("next")) == ["p", "note", "next"]
        assert ids(tree.leaves()) == ["answer", "next"]


class TestRefusals:
    # B60
    def test_an_id_comes_twice_is_refused_and_adds_nothing(self) -> None:
        tree = Tree(knots("a"))

        with pytest.raises(EntryError, match=r"entry 'a' is already in the tree \(1 entries\)"):
            tree.add([Knot("b", "a", 2), Knot("a", None, 3)])

        assert ids(tree.nodes) == ["a"]
        assert "b" not in tree

    # B60
    def test_an_id_twice_in_one_call_is_refused(self) -> None:
        with pytest.raises(EntryError, match="give each entry an id of its own"):
            Tree([*knots("a"), replace(knots("a")[0], seq=9)])

    # B39
    @pytest.mark.parametrize("verb", ["path", "depth", "children", "siblings", "descend"])
    def test_an_unknown_id_is_named(self, verb: str) -> None:
        tree = Tree(knots("a"))

        with pytest.raises(EntryNotFound, match=r"entry 'e9' is not in the tree \(1 entries\)"):
            getattr(tree, verb)("e9")

    def test_get_gives_none_for_an_unknown_id(self) -> None:
        tree = Tree(knots("a"))

        assert (tree.get("a"), tree.get("b"), tree.get(None)) == (knots("a")[0], None, None)

    def test_an_empty_tree_has_nothing(self) -> None:
        tree: Tree[Knot] = Tree()

        assert len(tree) == 0
        assert tree.nodes == ()
        assert (tree.roots(), tree.leaves(), tree.cycles(), tree.subtree()) == ([], [], [], [])
