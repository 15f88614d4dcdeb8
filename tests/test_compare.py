"""`nb.compare`: one comparison as widget, static table and frame, all saying the same."""

from __future__ import annotations

import warnings

import pytest
from answering import answers, says
from html_reader import FRAME_TAGS, QUICK_TRAPS, TRAPS, Reader
from widget_page import Page

import nbdurable as nb
from nbdurable.notebook.compare.contrast import MAX_BYTES
from nbdurable.stores.base import Store
from nbdurable.stores.memory import MemoryStore


class Table(Reader):
    """Reads a comparison's HTML; it marks what is new by a tag more."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "ins":
            self.tags.append(tag)
            self.open.append(tag)
            return
        given = {name for name, _ in attrs if name not in ("scope",)}
        assert tag in FRAME_TAGS
        assert given <= {"class", "dir"}
        self.tags.append(tag)
        self.open.append(tag)


class TestWidget:
    def test_a_view_gets_the_comparison(self, store: Store) -> None:
        page = Page(nb.compare(*answers(store).runs).widget())

        assert [column["name"] for column in page.state()["columns"]] == ["#4", "#5", "#6"]

    def test_a_vote_in_a_view_is_stored_and_shown_in_all(self, store: Store) -> None:
        made = answers(store)
        comparison = nb.compare(*made.runs)
        page = Page(comparison.widget())

        body = page.act("compared", id=page.state()["id"], prefer=3)

        assert body["voted"] == 3
        assert made.chat.annotations()[0].target_id == made.chat[6].id
        changes = [message for message in page.heard if message["type"] == "ops"]
        assert changes[-1]["ops"][-1]["body"]["voted"] == 3
        assert comparison.df()["preferred"].tolist() == [False, False, True]

    def test_choices_of_a_view_change_the_frame_and_the_table_too(self, store: Store) -> None:
        comparison = nb.compare(*answers(store).runs)
        page = Page(comparison.widget())

        page.act("compared", id="any", base=2)

        assert comparison.df()["is_base"].tolist() == [False, True, False]

    def test_what_cannot_be_done_is_told_to_the_view(self, store: Store) -> None:
        widget = nb.compare(*answers(store).runs).widget()
        page = Page(widget)

        with pytest.raises(AssertionError, match="column 9 is not in this comparison; it has 1"):
            page.act("compared", id="any", prefer=9)
        assert widget.error.startswith("column 9")

    def test_a_blind_widget_says_no_name_before_the_vote(self, store: Store) -> None:
        comparison = nb.compare(*answers(store).runs, blind=True)
        page = Page(comparison.widget())

        page.state()
        page.act("compared", id="any", base=2)

        said = str(page.heard) + comparison.html() + comparison.df().to_json() + repr(comparison)
        for secret in ("#4", "#5", "#6", "large", "tiny", "Be warm"):
            assert secret not in said

    # B54
    def test_what_was_compared_stays_readable_when_its_session_is_closed(
        self, store: Store
    ) -> None:
        made = answers(store)
        comparison = nb.compare(*made.runs)
        made.chat.rate(4, 0.5, name="tone")
        page = Page(comparison.widget())
        made.chat.close()
        store.close()

        assert [column["name"] for column in page.state()["columns"]] == ["#4", "#5", "#6"]
        assert "tone" in comparison.html()
        assert len(comparison.df()) == 3
        with pytest.raises(AssertionError, match="was closed on this handle; open it again"):
            page.act("compared", id="any", prefer=2)

    def test_the_same_widget_is_given_until_it_is_closed(self, store: Store) -> None:
        comparison = nb.compare(*answers(store).runs)
        widget = comparison.widget()

        assert comparison.widget() is widget
        widget.close()
        assert comparison.widget() is not widget


class TestFrame:
    def test_a_row_tells_of_each_column(self, store: Store) -> None:
        frame = nb.compare(*answers(store).runs).df()

        assert frame["name"].tolist() == ["#4", "#5", "#6"]
        assert frame["model"].tolist() == ["openai/small", "tiny", "large"]
        assert frame["cost_usd"].tolist() == [0.004, 0.001, 0.02]
        assert frame["output_tokens"].tolist() == [9, 4, 19]
        assert frame["text"].iloc[1] == "Your parcel ships today."
        assert frame["words_added"].tolist() == [0, 2, 2]
        assert frame["system"].isna().tolist() == [True, True, False]

    def test_axes_are_columns(self, store: Store) -> None:
        chat = nb.open("s", store=store, model=says("A."))
        exp = chat.grid({"warm": "Hi", "cold": "Hello"})

        frame = nb.compare(exp).df()

        assert frame["input"].tolist() == ["warm", "cold"]


class TestTable:
    def test_the_table_says_what_the_frame_says(self, store: Store) -> None:
        comparison = nb.compare(*answers(store).runs)

        table = Table(comparison.html())

        assert "Compare 3 answers to #3" in table.text
        assert "3 shared entries" in table.text
        assert "modelsmalltinylarge" in table.text
        assert "cost$0.0040$0.0010 ✓$0.0200" in table.text
        assert {"ins", "del"} <= {*table.tags}
        assert not {"script", "img", "svg", "input", "button"} & {*table.tags}

    # case 42
    def test_the_table_is_bounded(self) -> None:
        chat = nb.open("s", store=":memory:", model=says("<&> " * 50_000))
        first = chat.run("Q", show=None)
        second = chat.rerun(first, model=says("Short."), show=None)

        html = nb.compare(first, second).html()

        assert len(html.encode()) <= MAX_BYTES
        assert "more characters" in html

    # case 43
    @pytest.mark.parametrize("name", QUICK_TRAPS)
    def test_a_text_trap_makes_no_tag_anywhere(self, name: str) -> None:
        trap = TRAPS[name][:2_000].replace("\0", "") or " "
        said = trap if trap.strip() else "blank"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a blank prompt warns of is tested elsewhere
            chat = nb.open(said, store=MemoryStore(), model=says(TRAPS[name]), system=said)
            run = chat.run(said, show=None)
            again = chat.rerun(run, model=says("other", name=said), stop=said, show=None)
        chat.label(run, said)
        chat.rate(run, 1, name=said)

        html = nb.compare(run, again).html()

        Table(html)
        assert "<script" not in html


class TestErrors:
    def test_one_reference_is_refused(self, store: Store) -> None:
        with pytest.raises(nb.errors.RunError, match="two columns or more, and was given 1"):
            nb.compare(answers(store).first)

    def test_a_base_that_is_not_there_is_refused(self, store: Store) -> None:
        with pytest.raises(nb.errors.RunError, match="column 7 is not in this comparison"):
            nb.compare(*answers(store).runs, base=7)


class TestInTheTree:
    def test_entries_are_compared_and_preferred_inside_the_tree(self, store: Store) -> None:
        made = answers(store)
        widget = made.chat.widget()
        page = Page(widget)

        body = page.ask("compare", ns=[4, 5, 6])
        voted = page.act("compared", id=body["id"], prefer=2)

        assert [column["name"] for column in body["columns"]] == ["#4", "#5", "#6"]
        assert voted["columns"][1]["badges"] == ["preferred"]
        assert made.chat.annotations()[0].target_id == made.chat[5].id
        widget.close()
