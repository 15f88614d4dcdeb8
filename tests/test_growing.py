"""A view that grows is, at every look, the view that is made at once."""

from __future__ import annotations

from dataclasses import replace

from entry_words import any_entry, called, chained, compaction, kinds, result, said, shape, user
from hypothesis import given
from hypothesis import strategies as st

from nbdurable import growing
from nbdurable.entries import Entry
from nbdurable.growing import GrowingView, GrowingViews
from nbdurable.views import model_view

STEPS = st.tuples(any_entry(), st.integers(0, 5))


def stored(*entries: Entry) -> list[Entry]:
    """Chain entries and count them, as when they come from a store."""
    return [replace(entry, n=n) for n, entry in enumerate(chained(*entries), 1)]


@st.composite
def looks(draw: st.DrawFn) -> list[list[Entry]]:
    """Draw paths of one tree, as a session looks at them: most of them longer than the last."""
    paths: list[list[Entry]] = [[]]
    for number, (entry, back) in enumerate(draw(st.lists(STEPS, max_size=16))):
        above = paths[max(len(paths) - 1 - back, 0)] if back < 5 else []
        held = {**vars(entry), "id": f"e{number}", "seq": number, "n": number + 1}
        held["parent_id"] = above[-1].id if above else None
        paths.append([*above, type(entry)(**held)])
    order = draw(st.lists(st.sampled_from(paths), max_size=12))
    inputs = st.lists(any_entry(), max_size=2)
    return [[*path, *draw(inputs)] for path in [*order, *paths]]


# B44 B50
@given(looks(), st.sampled_from(["m", None]))
def test_at_every_look_it_is_the_view_made_at_once(
    paths: list[list[Entry]], model: str | None
) -> None:
    view = GrowingView(model, frozenset({"look"}))

    for path in paths:
        at_once = model_view(path, model=model, effects=frozenset({"look"}))
        assert view.of(path) == at_once


# B44
def test_a_result_that_comes_late_takes_the_place_of_its_excuse() -> None:
    path = stored(user("q"), called("c"), user("on"), result("c"))
    view = GrowingView()

    excused = shape(view.of(path[:3]))
    answered = shape(view.of(path))

    assert excused == ["u:q", "a:?c", "t:xc", "u:on"]
    assert answered == ["u:q", "a:?c", "t:=c", "u:on"]


# B44
def test_a_second_result_is_known_as_one_when_the_first_came_long_ago() -> None:
    path = stored(user("q"), called("c"), result("c"), result("c"))
    view = GrowingView()
    view.of(path[:3])

    assert kinds(view.of(path)) == ["duplicate_result"]


# B50
def test_a_summary_replaces_what_had_grown() -> None:
    path = stored(user("q"), said("a"), compaction("sum", None), user("on"))
    view = GrowingView()
    view.of(path[:2])

    assert [message.text for message in view.of(path).messages][1:] == ["on"]
    assert view.of(path).entry_ids == ("e2", "e3")


# B35
def test_what_is_not_stored_is_in_one_view_and_in_no_later_one() -> None:
    path = stored(user("q"), said("a"), user("on"))
    view = GrowingView()

    with_input = view.of([*path[:2], user("in flight")])

    assert shape(with_input) == ["u:q", "a:a", "u:in flight"]
    assert shape(view.of(path)) == ["u:q", "a:a", "u:on"]


# B44
def test_runs_that_part_at_one_entry_share_the_view_up_to_it() -> None:
    base = stored(*(said(f"a{n}") for n in range(4)))
    one, other = [*base, replace(user("1"), id="x", n=5)], [*base, replace(user("2"), id="y", n=6)]
    view = GrowingView()
    view.of(base)
    kept = view._messages

    first, second, again = view.of(one), view.of(other), view.of(one)

    assert (shape(first)[-1], shape(second)[-1], again) == ("u:1", "u:2", first)
    assert view._messages is kept


# B46
def test_each_model_has_a_view_of_its_own_and_the_ones_used_last_are_kept() -> None:
    path = stored(user("q"), said("a"))
    views = GrowingViews()

    for number in range(growing.MOST_VIEWS + 1):
        views.view(path, f"m{number}", frozenset())
    views.view(path, "m1", frozenset({"look"}))

    kept = [name for name, _, _ in views._views]
    assert kept == [*(f"m{number}" for number in range(2, growing.MOST_VIEWS + 1)), "m1"]


# B44
def test_branches_far_from_each_other_have_each_their_own_view() -> None:
    long, other = stored(*(user(f"{n}") for n in range(8))), stored(user("else"))
    other = [replace(other[0], id="x", n=9)]
    views = GrowingViews()

    for path in (long, other, long, other):
        assert views.view(path, "m", frozenset()) == model_view(path, model="m")

    assert [len(view._growths) for _, _, view in views._views] == [1, 1]


# B44 B50
@given(looks())
def test_the_views_of_a_session_are_at_every_look_those_made_at_once(
    paths: list[list[Entry]],
) -> None:
    views = GrowingViews()

    for path in paths:
        assert views.view(path, "m", frozenset()) == model_view(path, model="m")
