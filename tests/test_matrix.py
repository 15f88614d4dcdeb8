"""`Experiment.compare`: what varies against the samples, with agreement, scores and cost."""

from __future__ import annotations

import pytest
from answering import says
from html_reader import QUICK_TRAPS, TRAPS, Reader
from widget_page import Page

import nbdurable as nb
from nbdurable.models.base import ModelRequest
from nbdurable.models.scripted import ScriptedModel
from nbdurable.notebook.compare import matrixhtml
from nbdurable.notebook.compare.matrix import agreement, matrix_body
from nbdurable.stores.base import Store
from nbdurable.stores.memory import MemoryStore


def two_by_three(store: Store) -> nb.Session:
    """Open a session whose model answers alike when cold, and otherwise when warm."""
    said = iter(["One.", "One.", "Two."])

    def say(request: ModelRequest) -> str:
        return "Same." if request.params["temperature"] == 0 else next(said)

    return nb.open("s", store=store, model=ScriptedModel(say, repeat=True, cost_usd=0.25))


# B54
def test_a_matrix_stays_readable_when_its_session_is_closed(store: Store) -> None:
    chat = two_by_three(store)
    exp = chat.grid("Q", temperature=[0, 1], n=3, concurrency=1)
    exp.score(lambda cell: 0.5, name="tone")
    matrix = exp.compare()
    page = Page(matrix.widget())
    chat.close()
    store.close()

    assert page.state()["scores"] == ["tone"]
    assert page.ask("look")["title"] in matrix.html()
    assert len(matrix.df()) == 6


class TestRows:
    def test_models_and_inputs_that_begin_alike_are_told_apart(self) -> None:
        long = (
            "the same long beginning of a question that goes on and on and on and on and on until "
        )
        models = [says("A.", name=f"{host}/gpt-5") for host in ("openai", "azure")]
        with nb.open("s", store=MemoryStore(), model=says("A.")) as chat:
            by_model = chat.grid("Q", model=models, n=2, show=None)
            by_input = chat.grid(
                {"one": "1", "two": "2"}, system={long + "a": "a", long + "b": "b"}
            )

            labels = [row["labels"] for row in matrix_body(by_model)["rows"]]
            body = matrix_body(by_input)

        assert labels == [["openai/gpt-5"], ["azure/gpt-5"]]
        assert len({*body["heads"]}) == 2
        assert all(cell is not None for row in body["rows"] for cell in row["cells"])

    def test_axes_stand_against_samples(self, store: Store) -> None:
        exp = two_by_three(store).grid("Q", temperature=[0, 1], n=3, name="warmth", concurrency=1)

        body = matrix_body(exp)

        assert body["title"] == "warmth · 6 runs · $1.50"
        assert (body["axes"], body["across"]) == (["temperature"], "sample")
        assert [row["labels"] for row in body["rows"]] == [["0"], ["1"]]
        assert [cell["text"] for cell in body["rows"][0]["cells"]] == ["Same."] * 3

    def test_agreement_is_the_share_of_the_most_frequent_answer(self, store: Store) -> None:
        exp = two_by_three(store).grid("Q", temperature=[0, 1], n=3, concurrency=1)

        cold, warm = matrix_body(exp)["rows"]

        assert cold["agreement"] == 1
        assert warm["agreement"] == pytest.approx(2 / 3)
        assert sorted(cell["group"] for cell in warm["cells"]) == [0, 0, 1]
        assert warm["cost"] == 0.75

    def test_structured_answers_agree_by_their_data(self, store: Store) -> None:
        said = iter(['{"a": 1, "b": 2}', '{ "b": 2, "a": 1 }'])
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
        model = ScriptedModel(lambda request: next(said), repeat=True)
        chat = nb.open("s", store=store, model=model)

        exp = chat.sample(2, "Q", schema=schema, concurrency=1)

        assert matrix_body(exp)["rows"][0]["agreement"] == 1

    def test_one_answer_agrees_with_nothing(self) -> None:
        assert agreement([0]) is None
        assert agreement([]) is None

    def test_without_samples_the_last_axis_makes_the_columns(self, store: Store) -> None:
        chat = nb.open("s", store=store, model=says("A."))
        exp = chat.grid({"x": "X", "y": "Y"}, temperature=[0, 1])

        body = matrix_body(exp)

        assert (body["axes"], body["across"]) == (["input"], "temperature")
        assert body["heads"] == ["0", "1"]
        assert [row["labels"] for row in body["rows"]] == [["x"], ["y"]]

    def test_scores_are_told_as_means(self, store: Store) -> None:
        exp = two_by_three(store).grid("Q", temperature=[0, 1], n=3, concurrency=1)
        exp.score(lambda cell: {"tone": cell.i})

        body = matrix_body(exp)

        assert body["scores"] == ["score.tone"]
        assert [row["scores"]["score.tone"] for row in body["rows"]] == [1, 4]

    def test_cells_that_never_ran_say_so(self, store: Store) -> None:
        exp = two_by_three(store).grid("Q", temperature=[0, 1], start=False)

        body = matrix_body(exp)

        assert [cell["state"] for row in body["rows"] for cell in row["cells"]] == ["missing"] * 2
        assert "0 done" in body["title"]


class TestWidget:
    def test_chosen_cells_are_compared_and_preferred(self, store: Store) -> None:
        chat = two_by_three(store)
        exp = chat.grid("Q", temperature=[0, 1], n=3, concurrency=1)
        page = Page(exp.compare().widget())

        body = page.ask("compare_cells", cells=[0, 5])
        voted = page.act("compared", id=body["id"], prefer=2)

        assert [column["name"] for column in body["columns"]] == ["#2", "#7"]
        assert voted["voted"] == 2
        assert chat.annotations()[0].target_id == exp[5].entry.id  # type: ignore[union-attr]

    def test_a_comparison_that_is_no_longer_shown_is_refused(self, store: Store) -> None:
        exp = two_by_three(store).grid("Q", temperature=[0, 1], n=3, concurrency=1)
        page = Page(exp.compare().widget())

        with pytest.raises(AssertionError, match="no longer shown; compare again"):
            page.act("compared", id="old", base=2)

    def test_a_view_looks_again_while_cells_run(self, store: Store) -> None:
        exp = two_by_three(store).grid("Q", temperature=[0, 1], start=False)
        page = Page(exp.compare().widget())
        before = page.state()
        exp.resume()

        assert [cell["state"] for row in before["rows"] for cell in row["cells"]] == ["missing"] * 2
        after = page.ask("look")
        assert [cell["state"] for row in after["rows"] for cell in row["cells"]] == ["done"] * 2


class TestTable:
    def test_the_table_says_what_the_widget_says(self, store: Store) -> None:
        exp = two_by_three(store).grid("Q", temperature=[0, 1], n=3, concurrency=1)

        reader = Reader(exp.compare().html())

        assert "temperaturesample 1sample 2sample 3agreementcosttime" in reader.text
        assert "0Same.Same.Same.100%$0.7500" in reader.text

    # case 42
    def test_the_table_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(matrixhtml, "MAX_BYTES", 20_000)
        chat = nb.open("s", store=MemoryStore(), model=says("<&> " * 60))
        exp = chat.grid([f"Q{i}" for i in range(40)], show=None)

        html = exp.compare().html()

        assert len(html.encode()) <= 20_000
        assert "more row" in html

    # case 43
    @pytest.mark.parametrize("name", QUICK_TRAPS)
    def test_a_text_trap_makes_no_tag(self, name: str) -> None:
        trap = TRAPS[name]
        label = trap[:500].replace("\0", "").strip() or "blank"
        chat = nb.open("s", store=MemoryStore(), model=says(trap))
        exp = chat.grid({label: "Q", "other": "R"}, name=label, show=None)

        Reader(exp.compare().html())
