"""The sessions of a store as a table: sorted, searched, in windows; a row opens its tree."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from answering import answers, says
from html_reader import TRAPS, Reader
from widget_page import Page

import nbdurable as nb
from nbdurable.notebook.bridge import Refused
from nbdurable.notebook.sessions import SessionRows, SessionsWidget
from nbdurable.notebook.sessions.table import MAX_ROWS
from nbdurable.stored import SessionRecord
from nbdurable.stores.base import Store
from nbdurable.stores.memory import MemoryStore


def three(store: Store) -> nb.library.Library:
    """Return a library over sessions `s` (oldest), `tea` and `child`, a fork of it (newest)."""
    answers(store)
    tea = nb.open("tea", store=store, model=says("Green tea is brewed cooler.", "tiny"))
    tea.run("How hot for tea?")
    tea.fork("child").run("And black?")
    return nb.connect(store)


def looked(store: Store) -> SessionRows:
    rows = SessionRows(three(store))
    rows.look()
    return rows


def ids(rows: SessionRows, **asked: object) -> list[str]:
    return [row["id"] for row in rows.window(**asked)["rows"]]  # type: ignore[arg-type]


class TestRows:
    def test_a_row_tells_of_a_session(self, store: Store) -> None:
        newest, _, oldest = looked(store).window()["rows"]

        assert newest["parent"] == "tea"
        assert (oldest["title"], oldest["entries"]) == ("Where is order 1234?", 6)
        assert (oldest["branches"], oldest["cost"]) == (3, pytest.approx(0.025))
        assert {*oldest["models"].split(", ")} == {"small", "tiny", "large"}

    def test_the_last_used_stands_first_unless_sorted(self, store: Store) -> None:
        rows = looked(store)

        assert ids(rows) == ["child", "tea", "s"]
        assert ids(rows, sort="entries") == ["s", "child", "tea"]
        assert ids(rows, sort="entries", down=False) == ["tea", "child", "s"]

    def test_what_is_missing_comes_last_in_both_directions(self, store: Store) -> None:
        rows = looked(store)

        assert ids(rows, sort="parent")[0] == "child"
        assert ids(rows, sort="parent", down=False)[0] == "child"

    def test_titles_ids_models_and_sources_are_searched(self, store: Store) -> None:
        rows = looked(store)

        assert ids(rows, query="ORDER 1234") == ["s"]
        assert ids(rows, query="LARGE") == ["s"]
        assert ids(rows, query="chil") == ["child"]

    def test_what_was_said_is_searched_and_shown(self, store: Store) -> None:
        found = looked(store).window(query="brewed cooler")

        assert {row["id"] for row in found["rows"]} == {"tea", "child"}
        assert "Green tea is brewed cooler." in found["rows"][0]["found"]
        assert (found["found"], found["total"]) == (2, 3)

    def test_a_window_holds_only_the_rows_asked_for(self, store: Store) -> None:
        found = looked(store).window(first=1, size=1)

        assert [row["id"] for row in found["rows"]] == ["tea"]
        assert (found["first"], found["found"]) == (1, 3)

    def test_an_unknown_order_is_refused(self, store: Store) -> None:
        with pytest.raises(Refused, match="cannot be sorted by 'colour'; see title, entries"):
            looked(store).window(sort="colour")


class TestWidget:
    def test_a_view_gets_the_first_rows_only(self) -> None:
        store = MemoryStore()
        for at in range(1_000):
            store.create_session(SessionRecord(id=f"s{at}", created_at=at))

        state = Page(SessionsWidget(nb.connect(store))).state()

        assert (state["total"], len(state["rows"])) == (1_000, 100)

    def test_other_rows_are_asked_for(self, store: Store) -> None:
        page = Page(SessionsWidget(three(store)))
        page.state()

        body = page.ask("rows", query="", sort="entries", down=True, first=2, size=50)

        assert [row["id"] for row in body["rows"]] == ["tea"]

    def test_sessions_made_meanwhile_are_there_when_asked_afresh(self, store: Store) -> None:
        page = Page(SessionsWidget(three(store)))
        page.state()
        nb.open("late", store=store, model=says("A.")).append(nb.user("Hello"))

        assert page.ask("rows")["total"] == 3
        assert page.ask("rows", fresh=True)["total"] == 4

    def test_a_row_opens_its_session_and_the_next_one_takes_its_place(self, store: Store) -> None:
        widget = SessionsWidget(three(store))
        page = Page(widget)

        answer = page.act("open", id="s")
        first = widget.session
        page.act("open", id="tea")

        assert answer["code"] == f"nb.open('s', store={store.name!r})"
        assert first is not None and first._is_closed
        assert widget.session is not None and widget.session.id == "tea"
        assert page.state()["open"] == "tea"

    def test_a_row_that_is_opened_again_keeps_its_session(self, store: Store) -> None:
        widget = SessionsWidget(three(store))
        page = Page(widget)
        page.act("open", id="s")
        session = widget.session

        page.act("open", id="s")

        assert widget.session is session
        widget.close()

    def test_a_session_opens_with_its_last_model_and_says_nothing(self, store: Store) -> None:
        widget = SessionsWidget(three(store))

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Page(widget).act("open", id="s")

        assert widget.session is not None and widget.session.model == "large"

    def test_a_session_is_let_go_when_it_is_shut_or_the_table_closes(self, store: Store) -> None:
        widget = SessionsWidget(three(store))
        page = Page(widget)
        page.act("open", id="s")
        shut = widget.session
        page.act("shut")
        page.act("open", id="tea")
        left = widget.session

        widget.close()

        assert shut is not None and shut._is_closed
        assert left is not None and left._is_closed

    def test_a_session_that_is_not_there_is_refused_and_not_made(self, store: Store) -> None:
        library = three(store)
        page = Page(SessionsWidget(library))

        with pytest.raises(AssertionError, match="session 'gone' is no longer in"):
            page.act("open", id="gone")
        assert len(store.list_sessions()) == 3

    def test_what_a_closed_library_is_asked_is_refused(self) -> None:
        library = three(MemoryStore())
        page = Page(SessionsWidget(library))
        library.close()

        with pytest.raises(AssertionError, match="is closed; connect"):
            page.ask("rows", fresh=True)

    def test_a_page_that_is_loaded_again_shows_what_a_closed_library_knew(self) -> None:
        library = three(MemoryStore())
        widget = SessionsWidget(library)
        before = Page(widget).state()
        library.close()

        assert Page(widget).state() == before
        assert "3 sessions" in Reader(widget.html()).text


class TestMarimo:
    """Marimo shows what `_display_` returns; it has no output that another could write to."""

    def test_a_library_is_live_and_a_row_says_how_to_open_its_session(self, store: Store) -> None:
        widget = three(store)._display_()
        assert isinstance(widget, SessionsWidget)

        answer = Page(widget).act("open", id="s")

        assert answer["code"] == f"open it in a cell: nb.open('s', store={store.name!r})"
        assert widget.session is None

    def test_what_is_closed_is_shown_in_words(self, store: Store) -> None:
        library = three(store)
        chat = nb.open("s", store=store, model=says("A."))
        chat.close()
        library.close()

        assert "closed" in str(chat._display_())
        assert "closed" in str(library._display_())


class TestTable:
    def test_where_nothing_was_forked_no_column_says_from_where(self) -> None:
        store = MemoryStore()
        nb.open("one", store=store, model=says("A.")).append(nb.user("Q"))
        library = nb.connect(store)

        before = Reader(library._repr_html_()).text
        nb.open("one", store=store, model=says("A.")).fork("two")
        after = Reader(library._repr_html_()).text

        assert "forked from" not in before
        assert "forked from" in after

    def test_the_table_says_what_the_widget_says(self, store: Store) -> None:
        text = Reader(three(store)._repr_html_()).text

        assert "3 sessions" in text
        assert "Where is order 1234? s63" in text

    def test_the_table_is_bounded_and_the_rest_counted(self) -> None:
        store = MemoryStore()
        for at in range(250):
            store.create_session(SessionRecord(id=f"s{at}", created_at=at))

        text = Reader(nb.connect(store)._repr_html_()).text

        assert f"… {250 - MAX_ROWS} more sessions" in text

    # case 43
    @pytest.mark.parametrize("name", TRAPS)
    def test_a_text_trap_makes_no_tag(self, name: str) -> None:
        store = MemoryStore()
        said = TRAPS[name][:3_000].replace("\0", "").strip() or "blank"
        chat = nb.open(said, store=store, model=says("A.", name=said))
        chat.run(TRAPS[name] if TRAPS[name].strip() else "blank", show=None)
        chat.fork("child")

        Reader(nb.connect(store)._repr_html_())

    def test_the_file_is_named_and_not_whose_folders_it_is_in(self, tmp_path: Path) -> None:
        path = tmp_path / "talks.duckdb"
        nb.open("one", store=path, model=says("A.")).close()
        library = nb.connect(path)

        open_html = library._repr_html_()
        library.close()
        closed_html = library._repr_html_()

        assert "talks.duckdb · 1 session" in Reader(open_html).text
        assert "talks.duckdb, closed" in Reader(closed_html).text
        assert str(tmp_path) not in open_html + closed_html

    def test_a_closed_library_is_shown_in_words(self) -> None:
        library = three(MemoryStore())
        library.close()

        assert "closed" in Reader(library._repr_html_()).text
