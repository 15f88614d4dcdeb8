"""A comparison as data: what is shared, what stands beside what, facts, votes, blindness."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from answering import answers, says
from html_reader import TRAPS

import nbdurable as nb
from nbdurable.errors import EntryNotFound, RunError
from nbdurable.handle import close_all
from nbdurable.models.scripted import calls
from nbdurable.notebook.compare.columns import MAX_COLUMNS, columns_of
from nbdurable.notebook.compare.comparing import SHOWN_CHARS, Comparing
from nbdurable.stores.base import Store
from nbdurable.stores.memory import MemoryStore


@pytest.fixture(autouse=True)
def no_other_session() -> Iterator[None]:
    """What other tests left open would make ordinals ambiguous."""
    close_all()
    yield
    close_all()


def comparing(*refs: object, **options: object) -> Comparing:
    return Comparing(columns_of(refs), **options)  # type: ignore[arg-type]


def fact(body: dict, name: str) -> list[str]:  # type: ignore[type-arg]
    return [
        f"{one['text']}{' best' if one['best'] else ''}"
        for column in body["columns"]
        for one in column["facts"]
        if one["name"] == name
    ]


def texts(body: dict) -> list[list[str | None]]:  # type: ignore[type-arg]
    """Return the texts of the columns, without what the base alone has, row by row."""
    return [
        [
            None if cell is None else "".join(t for kind, t in cell["runs"] if kind != "del")
            for cell in turn["cells"]
        ]
        for turn in body["turns"]
    ]


class TestWhatStandsWhere:
    def test_what_all_paths_begin_with_is_told_once(self, store: Store) -> None:
        body = comparing(*answers(store).runs).body()

        assert [row["n"] for row in body["shared"]["rows"]] == [1, 2, 3]
        assert body["title"] == "3 answers to #3, “Draft a reply.”"
        assert [turn["role"] for turn in body["turns"]] == ["assistant"]
        assert texts(body)[0][1] == "Your parcel ships today."

    def test_words_are_compared_with_the_chosen_column(self, store: Store) -> None:
        body = comparing(*answers(store).runs, base=2).body()

        first, base, _ = body["turns"][0]["cells"]
        assert base["runs"] == [["same", "Your parcel ships today."]]
        assert first["runs"][:2] == [["del", "Your parcel"], ["add", "Hello Ravi, it"]]

    def test_turns_stand_beside_each_other(self, store: Store) -> None:
        made = answers(store)
        longer = made.first.then("Shorter.", model=says("Ships today."))

        body = comparing(longer, made.second).body()

        assert [turn["role"] for turn in body["turns"]] == ["assistant", "user", "assistant"]
        assert texts(body)[1:] == [["Shorter.", None], ["Ships today.", None]]
        assert body["title"] == "2 branches from #3, “Draft a reply.”"

    def test_tools_stand_in_a_row_of_their_own(self, store: Store) -> None:
        def find(order: int) -> str:
            """Find an order."""
            return f"order {order} is late"

        chat = nb.open("s", store=store, model=says("Yes."), tools=[find])
        plain = chat.run("Is it late?")
        model = says("unused")
        model = type(model)(calls(("find", {"order": 7})), "It is late.", name="m")
        asked = chat.rerun(plain, model=model)

        body = comparing(plain, asked).body()

        assert [turn["role"] for turn in body["turns"]] == ["steps", "assistant"]
        assert texts(body) == [
            [None, "find(order=7)\n\n→ order 7 is late"],
            ["Yes.", "It is late."],
        ]

    def test_an_entry_above_another_keeps_its_own_text(self, store: Store) -> None:
        made = answers(store)

        body = comparing(made.chat[2], made.chat[4]).body()

        assert body["shared"]["count"] == 1
        assert texts(body)[0] == ["It left on Tuesday.", "It left on Tuesday."]

    def test_a_fork_and_its_source_share_what_was_copied(self, store: Store) -> None:
        made = answers(store)
        child = made.chat.fork("child", at=3)
        there = child.run(model=says("From the child."))

        body = comparing(made.first, there).body()

        assert body["shared"]["count"] == 3
        assert [column["name"] for column in body["columns"]] == ["s #4", "child #4"]
        assert texts(body)[0][1] == "From the child."

    def test_whole_sessions_are_compared_at_their_leaves(self, store: Store) -> None:
        one = nb.open("one", store=store, model=says("A."))
        other = nb.open("other", store=store, model=says("B."))
        empty = nb.open("empty", store=store, model=says("C."))
        one.run("Why?")
        other.run("How?")

        body = comparing(one, other, empty).body()

        assert body["title"] == "3 conversations"
        assert texts(body) == [["Why?", "How?", None], ["A.", "B.", None]]
        assert body["columns"][2]["name"] == "empty root"

    def test_meta_entries_are_left_out(self, store: Store) -> None:
        chat = nb.open("s", store=store, model=says("A."))
        one = chat.run("Q", nb.meta("a skill"))
        two = chat.run("Q", at=None)

        assert texts(comparing(one, two).body())[0] == ["Q", "Q"]


class TestFacts:
    def test_models_settings_and_figures_are_told_and_the_best_marked(self, store: Store) -> None:
        body = comparing(*answers(store).runs).body()

        assert fact(body, "model") == ["small", "tiny", "large"]
        assert fact(body, "system") == ["none", "none", "Be warm."]
        assert fact(body, "temperature") == ["0.2", "0.2", "0.9"]
        assert fact(body, "tokens") == ["29", "24 best", "39"]
        assert fact(body, "cost") == ["$0.0040", "$0.0010 best", "$0.0200"]

    def test_settings_that_all_share_are_left_out(self, store: Store) -> None:
        made = answers(store)

        assert fact(comparing(made.first, made.second).body(), "temperature") == []

    def test_figures_that_read_alike_have_no_best(self, store: Store) -> None:
        chat = nb.open("s", store=store, model=says("A.", cost_usd=0.1))
        chat.sample(2, "Q")

        assert fact(comparing(2, 3).body(), "cost") == ["$0.1000", "$0.1000"]

    def test_ratings_and_labels_are_told(self, store: Store) -> None:
        made = answers(store)
        made.chat.rate(made.first, 2, name="tone")
        made.chat.rate(made.second, 4, name="tone")
        made.chat.label(made.second, "sent")

        body = comparing(*made.runs).body()

        assert fact(body, "tone") == ["2", "4 best", "–"]
        assert body["columns"][1]["labels"] == ["sent"]

    def test_a_failed_answer_says_so(self, store: Store) -> None:
        chat = nb.open("s", store=store, model=says("A."))
        good = chat.run("Q")
        half = type(says(""))(("Half", nb.errors.ModelError("gone away")), name="m")
        with pytest.raises(nb.errors.ModelError, match="gone away") as failed:
            chat.rerun(good, model=half)

        body = comparing(good, failed.value.run).body()

        assert fact(body, "ended") == ["stop", "error"]
        assert "[error: gone away]" in str(texts(body)[0][1])

    def test_the_axes_of_an_experiment_are_told(self, store: Store) -> None:
        chat = nb.open("s", store=store, model=says("A."))
        exp = chat.grid({"warm": "Hi", "cold": "Hello"}, temperature=[0, 1])

        body = comparing(exp).body()

        assert body["axes"] == ["input", "temperature"]
        assert fact(body, "input") == ["warm", "warm", "cold", "cold"]
        assert fact(body, "temperature") == ["0", "1", "0", "1"]


class TestVotes:
    # B70
    def test_a_preference_is_stored_over_all_others(self, store: Store) -> None:
        made = answers(store)
        made_of = comparing(*made.runs)

        made_of.prefer(2)

        [said] = made.chat.annotations()
        assert (said.name, said.target_id) == ("prefer", made.chat[5].id)
        body = made_of.body()
        assert body["columns"][1]["badges"] == ["preferred"]
        assert (body["voted"], body["votes"]) == (2, {2: 1})

    # B70
    def test_a_change_of_mind_moves_the_badge_and_another_author_counts_too(
        self, store: Store
    ) -> None:
        made = answers(store)
        made_of = comparing(*made.runs)

        made_of.prefer(2)
        made_of.prefer(1)
        changed = made_of.body()
        made.chat.prefer(made.first, made.second, by="another")

        assert [column["badges"] for column in changed["columns"]][:2] == [
            ["base", "preferred"],
            [],
        ]
        assert made_of.body()["votes"] == {1: 2, 2: 1}

    def test_entries_of_several_sessions_are_rated_each(self, store: Store) -> None:
        one = nb.open("one", store=store, model=says("A."))
        other = nb.open("other", store=store, model=says("B."))
        one.run("Q")
        other.run("Q")
        made_of = comparing(one, other, by="me")

        made_of.prefer(2)

        assert [(a.name, a.value, a.by) for a in one.annotations()] == [("preferred", False, "me")]
        assert [a.value for a in other.annotations()] == [True]
        assert "preferred" in made_of.body()["columns"][1]["badges"]

    def test_nothing_that_tells_columns_apart_is_in_the_data_before_the_vote(
        self, store: Store
    ) -> None:
        made = answers(store)
        made.chat.label(made.third, "secret-label")
        made_of = comparing(*made.runs, blind=True, shuffle=list.reverse)

        body = made_of.body()

        assert [column["name"] for column in body["columns"]] == ["A", "B", "C"]
        assert texts(body)[0][0] == "Hi Ravi, it ships today!"  # as shuffled
        said = json.dumps(body["columns"]) + json.dumps(body["turns"])
        for secret in ("#4", "large", "tiny", "secret-label", "on path", "0.9", "Be warm"):
            assert secret not in said
        assert [column["n"] for column in body["columns"]] == [None] * 3

    def test_the_vote_is_for_what_was_seen_and_reveals_it_in_its_place(self, store: Store) -> None:
        made = answers(store)
        made_of = comparing(*made.runs, blind=True, shuffle=list.reverse)

        made_of.prefer(1)

        assert made.chat.annotations()[0].target_id == made.chat[6].id
        body = made_of.body()
        assert [column["name"] for column in body["columns"]] == ["#6", "#5", "#4"]
        assert not body["blind"]

    def test_getting_blind_again_shuffles_again(self, store: Store) -> None:
        seen: list[list[int]] = []
        made_of = comparing(*answers(store).runs, blind=True, shuffle=seen.append)

        made_of.choose(blind=False)
        made_of.choose(blind=True)

        assert len(seen) == 2
        assert made_of.base == 1

    def test_a_column_that_is_not_there_is_refused(self, store: Store) -> None:
        made_of = comparing(*answers(store).runs)

        with pytest.raises(RunError, match="column 4 is not in this comparison; it has 1 to 3"):
            made_of.prefer(4)
        with pytest.raises(RunError, match="column True is not in this comparison"):
            made_of.choose(base=True)


class TestReferences:
    def test_ordinals_and_labels_are_of_the_only_open_session(self, store: Store) -> None:
        made = answers(store)
        made.chat.label(5, "short")

        body = comparing(4, "short").body()

        assert [column["n"] for column in body["columns"]] == [4, 5]

    def test_ordinals_are_refused_where_several_sessions_are_open(self, store: Store) -> None:
        made = answers(store)
        other = nb.open("other", store=store, model=says("B."))

        with pytest.raises(EntryNotFound, match=r"4 may mean an entry of any .*'other', 's'\)"):
            columns_of([4, 5])
        assert [c.n for c in columns_of([4, 5], made.chat)] == [4, 5]
        other.close()

    def test_an_entry_of_a_closed_session_is_refused(self) -> None:
        made = answers(MemoryStore())
        entries = made.chat[4], made.chat[5]
        made.chat.close()

        with pytest.raises(EntryNotFound, match="is of no session that is open here; open its"):
            columns_of(entries)

    def test_fewer_than_two_or_twice_the_same_are_refused(self, store: Store) -> None:
        made = answers(store)

        with pytest.raises(RunError, match="shows two columns or more, and was given 1;"):
            columns_of([made.first])
        with pytest.raises(RunError, match="entry #4 of session 's' was given twice; give each"):
            columns_of([made.first, made.chat[4]])

    def test_runs_that_have_stored_nothing_yet_are_to_be_waited_for(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gate, append = threading.Event(), store.append
        chat = nb.open("s", store=store, model=says("A."))
        chat.append(nb.user("Q"))
        monkeypatch.setattr(store, "append", lambda *a, **k: gate.wait(30) and append(*a, **k))
        live = [chat.run("More", move=False, wait=False) for _ in range(2)]

        with pytest.raises(RunError, match="has stored nothing yet and still stands at entry #1"):
            columns_of(live)

        gate.set()
        assert len(columns_of([run.wait() for run in live])) == 2

    def test_too_many_are_refused(self, store: Store) -> None:
        chat = nb.open("s", store=store, model=says("A."))
        exp = chat.sample(MAX_COLUMNS + 1, "Q")

        with pytest.raises(RunError, match=r"shows 24 columns at most, and was given 25; .*whole"):
            columns_of([exp])

    def test_a_cell_without_an_answer_is_refused(self, store: Store) -> None:
        chat = nb.open("s", store=store, model=says("A."))
        exp = chat.sample(2, "Q", start=False)

        with pytest.raises(RunError, match="has no answer to compare; give one that ran"):
            columns_of([exp[0], exp[1]])


class TestLongTexts:
    # case 50
    @pytest.mark.slow
    def test_a_long_text_is_cut_and_the_rest_counted(self) -> None:
        chat = nb.open("s", store=":memory:", model=says(TRAPS["big_prompt"]))
        long = chat.run("Q", show=None)
        short = chat.rerun(long, model=says("Short."), show=None)

        cell = comparing(short, long).body()["turns"][0]["cells"][1]

        kept = sum(len(text) for kind, text in cell["runs"])
        assert kept == SHOWN_CHARS
        assert cell["hidden"] == f"… {len(TRAPS['big_prompt']) + 6 - kept:,} more characters"
